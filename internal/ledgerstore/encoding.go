// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledgerstore

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// In encoding 2 a record is eight fields separated by spaces, "-" for an empty
// one:
//
//	uid attempt from group/version/resource namespace name expiry amounts
//
// expiry is in Unix seconds, with a question mark if it is doubtful; amounts are name=quantity, separated
// by commas and sorted. All text is escaped as in a path, also text from users: no reservation makes a ledger
// unreadable.
const (
	fields   = 8
	doubtful = "?"
)

// record is the content of one text. A reservation is stored as it is; escrows, suspects and surgers are folded into the
// fields of one, because each release must read the ledgers of the others.
type record = ledger.Reservation

// format is how a record is written and read.
type format struct {
	encode func(record) string
	decode func(string) (record, error)
}

// Encode returns the texts of all reservations, escrows, suspects and surgers of a state, sorted.
func Encode(state ledger.State) []string {
	texts := make([]string, 0, len(state.Reservations)+len(state.Escrows)+len(state.Suspects)+len(state.Surgers))
	format := formatOf(written)
	for _, reservation := range state.Reservations {
		texts = append(texts, format.encode(reservation))
	}
	for _, escrow := range state.Escrows {
		texts = append(texts, format.encode(foldEscrow(escrow)))
	}
	for _, suspect := range state.Suspects {
		texts = append(texts, format.encode(foldSuspect(suspect)))
	}
	for _, surger := range state.Surgers {
		texts = append(texts, format.encode(foldSurger(surger)))
	}
	slices.Sort(texts)
	return texts
}

// Decode reads the texts of an encoding into a state that has nothing else. It returns the texts that it can't read, which
// are all of them if this release doesn't know the encoding.
func Decode(encoding int32, texts []string) (state ledger.State, undecoded []string) {
	state = ledger.State{
		Reservations: make(map[ledger.Key]ledger.Reservation, len(texts)), Escrows: map[ledger.EscrowKey]ledger.Escrow{},
		Suspects: map[string]ledger.Suspect{}, Surgers: map[types.UID]ledger.Surger{},
	}
	if !Knows(encoding) {
		return state, texts
	}
	format := formatOf(encoding)
	for _, text := range texts {
		record, err := format.decode(text)
		if err == nil {
			err = unfold(record, &state)
		}
		if err != nil {
			undecoded = append(undecoded, text)
		}
	}
	return state, undecoded
}

// Knows reports whether this release reads an encoding.
func Knows(encoding int32) bool { return encoding <= newest }

// These are the resources of a record that is an escrow or a surger. Nothing serves them.
var (
	escrows = schema.GroupVersionResource{Group: "quota.sharedquota.dev", Version: "v1", Resource: "escrows"}
	surgers = schema.GroupVersionResource{Group: "quota.sharedquota.dev", Version: "v1", Resource: "surgers"}
)

// recalled is the From of an escrow that is asked back.
const recalled = "recalled"

// foldEscrow gives an escrow a name that no other has, and another one in each renewal. By that, older releases know one from
// another.
func foldEscrow(escrow ledger.Escrow) record {
	number := strconv.Itoa(escrow.Number)
	folded := record{
		Object: ledger.Object{
			Resource: escrows, UID: escrow.Process,
			Name: strings.Join([]string{escrow.Holder, string(escrow.Process), number, strconv.Itoa(escrow.Renewal)}, "/"),
		},
		Attempt: number, Amounts: escrow.Amounts, Expiry: escrow.Expiry,
	}
	if escrow.Recalled {
		folded.From = recalled
	}
	return folded
}

// foldSuspect makes a doubtful record without amounts.
func foldSuspect(suspect ledger.Suspect) record {
	return record{Object: suspect.Object, Attempt: suspect.Attempt, Expiry: suspect.Expiry, Doubtful: true}
}

// foldSurger makes a record without amounts. An older release takes it for a reservation of nothing.
func foldSurger(surger ledger.Surger) record {
	return record{
		Object: ledger.Object{Resource: surgers, Namespace: surger.Namespace, Name: surger.Kind + "/" + surger.Name, UID: surger.UID},
		Expiry: surger.Since,
	}
}

// unfold puts the reservation, escrow, suspect or surger that a record was made of into a state.
func unfold(from record, state *ledger.State) error {
	switch {
	case from.Resource == escrows:
		escrow, err := unfoldEscrow(from)
		if err != nil {
			return err
		}
		state.Escrows[escrow.EscrowKey] = escrow
	case from.Resource == surgers:
		kind, name, _ := strings.Cut(from.Name, "/")
		state.Surgers[from.UID] = ledger.Surger{UID: from.UID, Kind: kind, Namespace: from.Namespace, Name: name, Since: from.Expiry}
	case from.Doubtful && len(from.Amounts) == 0:
		state.Suspects[from.Namespace] = ledger.Suspect{Object: from.Object, Attempt: from.Attempt, Expiry: from.Expiry}
	default:
		state.Reservations[from.Key()] = from
	}
	return nil
}

var errEscrow = errors.New("want a name of holder, process, number and renewal")

func unfoldEscrow(from record) (ledger.Escrow, error) {
	escrow := ledger.Escrow{
		EscrowKey: ledger.EscrowKey{Process: from.UID}, Recalled: from.From == recalled, Amounts: from.Amounts, Expiry: from.Expiry,
	}
	part := strings.Split(from.Name, "/")
	if len(part) != 4 {
		return escrow, fmt.Errorf("decoding escrow %q: %w", from.Name, errEscrow)
	}
	escrow.Holder = part[0]
	var errs [2]error
	escrow.Number, errs[0] = strconv.Atoi(from.Attempt)
	escrow.Renewal, errs[1] = strconv.Atoi(part[3])
	if err := errors.Join(errs[:]...); err != nil {
		return escrow, fmt.Errorf("decoding escrow %q: %w", from.Name, err)
	}
	return escrow, nil
}

var errFields = errors.New("want 8 fields separated by spaces")

// encodeRecord returns a record in encoding 2.
func encodeRecord(reservation record) string {
	gvr, expiry := reservation.Resource, strconv.FormatInt(reservation.Expiry.Unix(), 10)
	if reservation.Doubtful {
		expiry += doubtful
	}
	return strings.Join([]string{
		escape(string(reservation.UID)),
		escape(reservation.Attempt),
		escape(reservation.From),
		url.PathEscape(gvr.Group) + "/" + url.PathEscape(gvr.Version) + "/" + url.PathEscape(gvr.Resource),
		escape(reservation.Namespace),
		escape(reservation.Name),
		expiry,
		orDash(encodeAmounts(reservation.Amounts)),
	}, " ")
}

// decodeRecord reads the text that encodeRecord wrote.
func decodeRecord(text string) (record, error) {
	part := strings.Split(text, " ")
	if len(part) != fields {
		return record{}, fmt.Errorf("decoding reservation %q: %w", text, errFields)
	}
	gvr, err := decodeResource(part[3])
	if err != nil {
		return record{}, fmt.Errorf("decoding reservation %q: %w", text, err)
	}
	expiry, isDoubtful := strings.CutSuffix(part[6], doubtful)
	seconds, err := strconv.ParseInt(expiry, 10, 64)
	if err != nil {
		return record{}, fmt.Errorf("decoding reservation %q: expiry: %w", text, err)
	}
	for _, field := range []int{0, 1, 2, 4, 5} {
		if part[field], err = url.PathUnescape(orEmpty(part[field])); err != nil {
			return record{}, fmt.Errorf("decoding reservation %q: field %d: %w", text, field+1, err)
		}
	}
	amounts, err := decodeAmounts(orEmpty(part[7]))
	if err != nil {
		return record{}, fmt.Errorf("decoding reservation %q: %w", text, err)
	}
	return record{
		Object: ledger.Object{
			Resource: gvr, Namespace: part[4], Name: part[5], UID: types.UID(part[0]),
		},
		Attempt: part[1],
		From:    part[2],
		Amounts: amounts,
		Expiry:  time.Unix(seconds, 0), Doubtful: isDoubtful,
	}, nil
}

func decodeResource(text string) (schema.GroupVersionResource, error) {
	part := strings.Split(text, "/")
	if len(part) != 3 {
		return schema.GroupVersionResource{}, fmt.Errorf("resource %q: want group/version/resource", text)
	}
	for i, escaped := range part {
		var err error
		if part[i], err = url.PathUnescape(escaped); err != nil {
			return schema.GroupVersionResource{}, fmt.Errorf("resource %q: %w", text, err)
		}
	}
	return schema.GroupVersionResource{Group: part[0], Version: part[1], Resource: part[2]}, nil
}

// separators would end a resource's name in a list of amounts.
//
//nolint:gochecknoglobals // a constant, which Go has no literal for
var separators = strings.NewReplacer("%", "%25", " ", "%20", ",", "%2C", "=", "%3D")

func encodeAmounts(amounts corev1.ResourceList) string {
	pairs := make([]string, 0, len(amounts))
	for name, quantity := range amounts {
		pairs = append(pairs, separators.Replace(string(name))+"="+quantity.String())
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

func decodeAmounts(text string) (corev1.ResourceList, error) {
	amounts := corev1.ResourceList{}
	if text == "" {
		return amounts, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(pair, "=")
		if !found {
			return nil, fmt.Errorf("amount %q: want name=quantity", pair)
		}
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			return nil, fmt.Errorf("amount %q: %w", pair, err)
		}
		if name, err = url.PathUnescape(name); err != nil {
			return nil, fmt.Errorf("amount %q: %w", pair, err)
		}
		amounts[corev1.ResourceName(name)] = quantity
	}
	return amounts, nil
}

// encodeFence returns a fence as generation, end in Unix seconds and limits, separated
// by spaces; empty if there never was one.
func encodeFence(fence ledger.Fence) string {
	if fence.Generation == 0 && fence.Until.IsZero() {
		return ""
	}
	return strings.Join([]string{
		strconv.FormatInt(fence.Generation, 10), strconv.FormatInt(fence.Until.Unix(), 10), orDash(encodeAmounts(withSurge(fence))),
	}, " ")
}

// surging begins the names of surge among a fence's limits. An older release takes them for limits of resources that no
// object uses.
const surging = "surge/"

func withSurge(fence ledger.Fence) corev1.ResourceList {
	if len(fence.Surge) == 0 {
		return fence.Hard
	}
	all := fence.Hard.DeepCopy()
	for name, amount := range fence.Surge {
		all[surging+name] = amount
	}
	return all
}

// withoutSurge takes the surge out of limits, and returns it; nil for none.
func withoutSurge(hard corev1.ResourceList) (surge corev1.ResourceList) {
	for name, amount := range hard {
		if limited, ok := strings.CutPrefix(string(name), surging); ok {
			if surge == nil {
				surge = corev1.ResourceList{}
			}
			surge[corev1.ResourceName(limited)] = amount
			delete(hard, name)
		}
	}
	return surge
}

var errFence = errors.New("want generation, seconds and limits")

func decodeFence(text string) (ledger.Fence, error) {
	if text == "" {
		return ledger.Fence{}, nil
	}
	part := strings.Split(text, " ")
	if len(part) != 3 {
		return ledger.Fence{}, fmt.Errorf("decoding fence %q: %w", text, errFence)
	}
	generation, err := strconv.ParseInt(part[0], 10, 64)
	if err != nil {
		return ledger.Fence{}, fmt.Errorf("decoding fence %q: generation: %w", text, err)
	}
	seconds, err := strconv.ParseInt(part[1], 10, 64)
	if err != nil {
		return ledger.Fence{}, fmt.Errorf("decoding fence %q: end: %w", text, err)
	}
	hard, err := decodeAmounts(orEmpty(part[2]))
	if err != nil {
		return ledger.Fence{}, fmt.Errorf("decoding fence %q: %w", text, err)
	}
	surge := withoutSurge(hard)
	return ledger.Fence{Generation: generation, Hard: hard, Surge: surge, Until: time.Unix(seconds, 0)}, nil
}

// escape returns text as one field.
func escape(text string) string {
	if text == "-" {
		return "%2D"
	}
	return orDash(strings.ReplaceAll(url.PathEscape(text), "&", "%26")) // JSON writes six bytes for an ampersand
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func orEmpty(text string) string {
	if text == "-" {
		return ""
	}
	return text
}
