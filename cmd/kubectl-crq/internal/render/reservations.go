// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/report"
)

// APIVersion of all that no API server serves, and Kind of a Ledger, where they are printed as objects.
const (
	APIVersion = "crq.sharedquota.dev/v1"
	Kind       = "Reservations"
)

// Attempts that a reservation may be for.
const (
	Create = "create"
	Update = "update"
	// Escrow is no attempt yet: a replica of the operator holds room for future requests.
	Escrow = "escrow"
)

// Ledger is a decoded ledger.
type Ledger struct {
	metav1.TypeMeta `json:",inline"`
	// Quota is the quota's name.
	Quota string `json:"quota"`
	// Generation of the quota's spec that was counted last.
	Generation int64 `json:"generation"`
	// Encoding of the ledger, and whether it is known here. If not, there are no reservations.
	Encoding int32 `json:"encoding"`
	Known    bool  `json:"known"`
	// Intact is false if the ledger was written by a client other than the operator.
	Intact bool `json:"intact"`
	// Sealed is since when nothing is admitted by it; unset for an open ledger.
	Sealed *metav1.Time `json:"sealed,omitempty"`
	// Used is the counted amount. Reserved is the sum of the reservations: of
	// several attempts at one object the largest counts.
	Used     corev1.ResourceList `json:"used"`
	Reserved corev1.ResourceList `json:"reserved"`
	// Reservations that could be decoded, the first to expire first.
	Reservations []Reservation `json:"reservations"`
	// Suspected are namespaces that may hold a part of the free amount, and no more, because their requests failed
	// after they were admitted; sorted by name.
	Suspected []Suspected `json:"suspected,omitempty"`
	// Undecoded are entries that could not be, as they are stored.
	Undecoded []string `json:"undecoded,omitempty"`
}

// Suspected is a namespace whose requests failed.
type Suspected struct {
	Namespace string `json:"namespace"`
	// Until is when it may hold as much as any other again.
	Until metav1.Time `json:"until"`
}

// Reservation is a charge held for one object.
type Reservation struct {
	// Group and Resource of the object, in the words of the API: apps, deployments.
	Group     string    `json:"group,omitempty"`
	Version   string    `json:"version"`
	Resource  string    `json:"resource"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Attempt is create, update or escrow.
	Attempt string `json:"attempt"`
	// From is the resourceVersion that an update started from.
	From string `json:"from,omitempty"`
	// Amounts are the charged amounts.
	Amounts corev1.ResourceList `json:"amounts"`
	// Expires is when the operator looks whether the object came to be.
	Expires metav1.Time `json:"expires"`
	// Doubtful: the request seems to have failed, for its object has not appeared.
	Doubtful bool `json:"doubtful,omitempty"`
}

// LedgerOf decodes a ledger. Reservations that can't be decoded are kept as they are.
func LedgerOf(object *quotav1.QuotaLedger) Ledger {
	entries := object.Entries
	known := ledgerstore.Knows(entries.Encoding)
	view := Ledger{
		Quota:      object.Name,
		Generation: entries.Generation,
		Encoding:   entries.Encoding,
		Known:      known,
		Intact:     ledgerstore.Intact(object),
		Sealed:     entries.Sealed,
		Used:       entries.Used,
		// An empty list and not null, for programs that read it as JSON.
		Reservations: []Reservation{},
	}
	state, undecoded := ledgerstore.Decode(entries.Encoding, entries.Reservations)
	view.Undecoded, view.Reserved = undecoded, state.Reserved()
	for _, suspect := range state.Suspects {
		view.Suspected = append(view.Suspected, Suspected{Namespace: suspect.Namespace, Until: metav1.NewTime(suspect.Expiry)})
	}
	for _, reservation := range state.Reservations {
		view.Reservations = append(view.Reservations, reservationOf(reservation))
	}
	for _, escrow := range state.Escrows {
		view.Reservations = append(view.Reservations, escrowOf(escrow))
	}
	slices.SortFunc(view.Suspected, func(a, b Suspected) int { return cmp.Compare(a.Namespace, b.Namespace) })
	slices.SortFunc(view.Reservations, func(a, b Reservation) int {
		return cmp.Or(a.Expires.Compare(b.Expires.Time), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID), cmp.Compare(a.From, b.From))
	})
	return view
}

func escrowOf(from ledger.Escrow) Reservation {
	of := Reservation{
		Group: quotav1.GroupVersion.Group, Version: quotav1.GroupVersion.Version, Resource: "escrows",
		Name: from.Holder, UID: from.Process, Attempt: Escrow, Amounts: from.Amounts, Expires: metav1.NewTime(from.Expiry),
	}
	if from.Recalled {
		of.From = "recalled"
	}
	return of
}

func reservationOf(from ledger.Reservation) Reservation {
	attempt := Create
	if from.From != "" {
		attempt = Update
	}
	return Reservation{
		Group: from.Resource.Group, Version: from.Resource.Version, Resource: from.Resource.Resource,
		Namespace: from.Namespace, Name: from.Name, UID: from.UID,
		Attempt: attempt, From: from.From,
		Amounts: from.Amounts, Expires: metav1.NewTime(from.Expiry), Doubtful: from.Doubtful,
	}
}

// Reservations returns a line for each reservation, below the warnings about the whole ledger.
func Reservations(ledger Ledger, wide bool, style Style, now time.Time) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s\n", style.paint(bold, "Ledger of "+ledger.Quota+":"), reservationsCount(ledger))
	for _, warning := range ledgerWarnings(ledger, now) {
		text.WriteString(style.paint(yellow, warning) + "\n")
	}
	for _, suspected := range ledger.Suspected {
		fmt.Fprintf(&text, "Namespace %s may hold only a part of what is free for another %s, "+
			"because requests in it failed after they were admitted.\n",
			suspected.Namespace, duration.HumanDuration(suspected.Until.Sub(now)))
	}
	if len(ledger.Reservations) > 0 {
		text.WriteString(reservationsTable(ledger, wide, style, now).text(""))
	}
	for _, entry := range ledger.Undecoded {
		text.WriteString("not decoded: " + Visible(entry) + "\n")
	}
	return text.String()
}

func reservationsCount(ledger Ledger) string {
	count, undecoded := len(ledger.Reservations), len(ledger.Undecoded)
	switch {
	case count+undecoded == 0 && len(ledger.Suspected) > 0:
		return "nothing is reserved."
	case count+undecoded == 0:
		return "nothing is reserved; what was admitted has been observed."
	case undecoded > 0:
		return fmt.Sprintf("%d of its reservations decoded, %d not.", count, undecoded)
	case count == 1:
		return fmt.Sprintf("1 reservation, of %s.", report.Amounts(ledger.Reserved))
	default:
		return fmt.Sprintf("%d reservations, of %s.", count, report.Amounts(ledger.Reserved))
	}
}

// ledgerWarnings say why nothing is admitted by the ledger, and with which effect.
func ledgerWarnings(ledger Ledger, now time.Time) []string {
	var warnings []string
	switch {
	case !ledger.Known:
		warnings = append(warnings, fmt.Sprintf(
			"It has encoding %d, which this plugin doesn't know: use the plugin of the operator's version.", ledger.Encoding))
	case !ledger.Intact:
		warnings = append(warnings, "Somebody else than the operator has written it. "+
			"Nothing is admitted by it until the operator has rebuilt it, which takes moments while one runs.")
	}
	if ledger.Sealed != nil {
		warnings = append(warnings, fmt.Sprintf("The operator made this ledger anew %s ago. The mode Deny refuses what the quota limits "+
			"until requests that were under way have ended: the condition Ready says when.",
			duration.HumanDuration(now.Sub(ledger.Sealed.Time))))
	}
	return warnings
}

func reservationsTable(ledger Ledger, wide bool, style Style, now time.Time) *table {
	made := &table{}
	heading := plains("NAMESPACE", "OBJECT", "ATTEMPT", "EXPIRES", "AMOUNTS")
	if wide {
		heading = append(heading, plains("FROM", "UID")...)
	}
	made.add(style.headings(heading)...)
	for _, one := range ledger.Reservations {
		cells := plains(orDash(one.Namespace), objectText(one), one.Attempt)
		cells = append(cells, expiryCell(one, style, now), plain(report.Amounts(one.Amounts)))
		if wide {
			cells = append(cells, plains(orDash(one.From), string(one.UID))...)
		}
		made.add(cells...)
	}
	return made
}

// objectText is as in kubectl get -o name: "deployments.apps/web". Of an escrow it is the replica.
func objectText(of Reservation) string {
	if of.Attempt == Escrow {
		return "replica/" + of.Name
	}
	return schema.GroupResource{Group: of.Group, Resource: of.Resource}.String() + "/" + of.Name
}

// expiryCell marks reservations that should have gone and didn't, and reservations whose request seems to have failed.
func expiryCell(of Reservation, style Style, now time.Time) cell {
	left := of.Expires.Sub(now)
	if left <= 0 {
		return style.cell(yellow, duration.HumanDuration(-left)+" ago")
	}
	if of.Doubtful {
		return style.cell(yellow, "in "+duration.HumanDuration(left)+", doubtful")
	}
	return plain("in " + duration.HumanDuration(left))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
