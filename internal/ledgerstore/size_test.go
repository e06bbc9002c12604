// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledgerstore

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// storedLedger is one with so many reservations, as the API server has it.
func storedLedger(name string, reservations int) *quotav1.QuotaLedger {
	state := benchLedger()
	state.Quota, state.Digest = "6d2c1f0e-8a55-4b0e-9f3c-0d1b8a1c7e55", "7c1e5c2f9a8b4d60"
	var one ledger.Reservation
	for _, one = range state.Reservations {
		break
	}
	clear(state.Reservations)
	for i := range reservations {
		one.UID = types.UID(fmt.Sprintf("e2a1ad51-59d1-4a1f-8f52-%012d", i))
		state.Reservations[one.Key()] = one
	}
	for i := range reservations / 100 {
		state.Counted[schema.GroupResource{Group: "example.com", Resource: fmt.Sprintf("widgets%d", i)}] = 1234567
	}
	object := encode(name, state, edition{"u", 2})
	object.TypeMeta = metav1.TypeMeta{APIVersion: quotav1.GroupVersion.String(), Kind: "QuotaLedger"}
	object.UID, object.ResourceVersion, object.Generation = "e2a1ad51-59d1-4a1f-8f52-0123456789ab", "123456789", 4711
	object.CreationTimestamp, object.ManagedFields = metav1.NewTime(time.Unix(1_800_000_000, 0)), nil
	return object
}

func TestSizeIsThatOfTheStoredLedger(t *testing.T) {
	annotated := storedLedger("annotated", 1)
	annotated.Annotations = map[string]string{"example.com/note": "somebody's, and long: " + fmt.Sprint(make([]int, 1000))}
	sealed := storedLedger("sealed", 0)
	sealed.Entries.Sealed, sealed.Entries.Used = &metav1.Time{Time: time.Unix(1_800_000_000, 0)}, nil
	for name, object := range map[string]*quotav1.QuotaLedger{
		"nothing in flight": storedLedger("t", 0),
		"one":               storedLedger("team", 1),
		"as many as it may hold, under a long name": storedLedger(
			"a-quota-that-has-a-long-name-and-many-parts-which-are-all-part-of-the-name-of-its-ledger-too", 5000),
		"with an annotation": annotated,
		"sealed":             sealed,
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if got := Size(object); got < len(text)-50 || got > len(text)+50 {
				t.Errorf("got %d, and the JSON has %d bytes:\n%.1500s", got, len(text), text)
			}
		})
	}
}

// A full ledger is refused before it is written, by the largest size of each
// reservation.
func TestAReservationTakesNoMoreThanItsSize(t *testing.T) {
	for _, amount := range []string{
		"0", "1", "10", "1000", "1001", "-1", "-20", "100m", "1500m", "-250m", "1u", "1001n", "12345678901n", "1Ki", "1Gi", "1.5Gi", "1536",
		"1e3", "1e-3", "100e-3", "9223372036854775807", "9223372036854775807e3", "9223372036854775.807", "1E", "8Ei", "16Ei",
	} {
		for _, format := range []resource.Format{resource.DecimalSI, resource.BinarySI, resource.DecimalExponent} {
			quantity := resource.MustParse(amount)
			quantity = *quantity.ToDec()
			for _, quantity := range []resource.Quantity{resource.MustParse(amount), quantity} {
				quantity.Format = format
				quantity.Add(resource.Quantity{}) // forgets the text
				one := ledger.Reservation{
					Object:  ledger.Object{UID: "1-2", Namespace: "a/b", Name: "\xff", Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}},
					Attempt: "~", Expiry: time.Unix(1_800_000_000, 0), Doubtful: true,
					Amounts: corev1.ResourceList{"requests.cpu": quantity},
				}
				escrow := ledger.Escrow{
					EscrowKey: ledger.EscrowKey{Process: "7e1c6a52-3d1b-4f0e-9a55-0a8f6b0c9b11", Number: math.MaxInt}, Holder: "replica/1",
					Renewal: math.MaxInt, Recalled: true, Amounts: one.Amounts, Expiry: one.Expiry,
				}
				suspect := ledger.Suspect{Object: one.Object, Attempt: one.Attempt, Expiry: one.Expiry}
				for _, test := range []struct{ size, stored int }{
					{one.Size(), len(encodeRecord(one))}, {escrow.Size(), len(encodeRecord(foldEscrow(escrow)))},
					{suspect.Size(), len(encodeRecord(foldSuspect(suspect)))},
				} {
					if stored := test.stored + len(`"",`); test.size < stored || test.size > stored+32 {
						t.Errorf("amount %s as %s: got a size of %d, and it takes %d", amount, format, test.size, stored)
					}
				}
			}
		}
	}
}

// Reservations are bounded by bytes, with any content.
func TestAFullLedgerIsBelowAMebibyte(t *testing.T) {
	short := ledger.Reservation{Object: ledger.Object{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: "a"}}
	long := strings.Repeat
	many := corev1.ResourceList{}
	for i := range 256 {
		many[corev1.ResourceName(fmt.Sprintf("count/widgets%d.%s.example.com", i, long("a", 200)))] = resource.MustParse("1")
	}
	for name, test := range map[string]struct {
		change func(*ledger.Reservation)
		least  int
	}{
		"short ones":                    {change: func(*ledger.Reservation) {}, least: ledger.MaxReservations},
		"long names":                    {change: func(r *ledger.Reservation) { r.Name = long("a", 249) }, least: 2000},
		"names that have to be escaped": {change: func(r *ledger.Reservation) { r.Name = long("/", 249) }, least: 800},
		"ampersands":                    {change: func(r *ledger.Reservation) { r.Name = long("&", 249) }, least: 800},
		"names that aren't text":        {change: func(r *ledger.Reservation) { r.Name = long("\xff", 249) }, least: 800},
		"dashes":                        {change: func(r *ledger.Reservation) { r.Name, r.Namespace, r.Attempt = "-", "-", "-" }, least: ledger.MaxReservations},
		"hostile UIDs":                  {change: func(r *ledger.Reservation) { r.Attempt, r.From = long("\"", 128), long(" ", 128) }, least: 800},
		"many amounts":                  {change: func(r *ledger.Reservation) { r.Amounts = many }, least: 10},
	} {
		t.Run(name, func(t *testing.T) {
			limits := ledger.Limits{Basis: ledger.Basis{Quota: "q"}, Hard: corev1.ResourceList{"pods": resource.MustParse("100k")}}
			used := corev1.ResourceList{"pods": resource.MustParse("0")}
			changed := short
			test.change(&changed)
			for name := range changed.Amounts {
				limits.Hard[name], used[name] = resource.MustParse("100k"), resource.MustParse("0")
			}
			draft := ledger.Edit(ledger.State{Basis: limits.Basis, Used: used})
			reserved := 0
			for ; ; reserved++ {
				one := short
				one.Amounts = corev1.ResourceList{"pods": resource.MustParse("1")}
				one.UID = types.UID(fmt.Sprintf("e2a1ad51-59d1-4a1f-8f52-%012d", reserved))
				test.change(&one)
				one.Name += strconv.Itoa(reserved) // or else all would share a slot
				decision := draft.Reserve(ledger.Charge{Limits: limits, Reservation: one})
				if undecided, ok := decision.(ledger.Undecided); ok && undecided.Reason == ledger.Full {
					break
				} else if ok {
					t.Fatalf("got %+v", undecided)
				}
			}
			text, err := json.Marshal(encode("team", draft.State(), edition{"u", 2}))
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > 1<<20 || reserved < test.least {
				t.Errorf("got %d reservations in %d bytes, want at least %d in 1 MiB", reserved, len(text), test.least)
			}
			t.Logf("%d reservations in %d bytes", reserved, len(text))
		})
	}
}

// BenchmarkSize is the cost of a scrape for one ledger with 5000 reservations,
// and the cost of marshalling it.
func BenchmarkSize(b *testing.B) {
	object := storedLedger("team", 5000)
	b.Run("added up", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Size(object)
		}
	})
	b.Run("marshalled", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(object); err != nil {
				b.Fatal(err)
			}
		}
	})
}
