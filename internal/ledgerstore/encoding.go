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

// In encoding 2 a reservation is eight fields separated by spaces, "-" for an empty
// one:
//
//	uid attempt from group/version/resource namespace name expiry amounts
//
// expiry is in Unix seconds, with a question mark if the reservation is doubtful; amounts are name=quantity, separated
// by commas and sorted. All text is escaped as in a path, also text from users: no reservation makes a ledger
// unreadable.
const (
	fields   = 8
	doubtful = "?"
)

// format is how a reservation is written and read.
type format struct {
	encode func(ledger.Reservation) string
	decode func(string) (ledger.Reservation, error)
}

// Decoder returns the function that reads reservations of an encoding; false for
// an encoding that this release doesn't know.
func Decoder(encoding int32) (decode func(string) (ledger.Reservation, error), known bool) {
	if encoding > newest {
		return nil, false
	}
	return formatOf(encoding).decode, true
}

var errFields = errors.New("want 8 fields separated by spaces")

// Encode returns a reservation in encoding 2.
func Encode(reservation ledger.Reservation) string {
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

// Decode reads the text that Encode wrote.
func Decode(text string) (ledger.Reservation, error) {
	part := strings.Split(text, " ")
	if len(part) != fields {
		return ledger.Reservation{}, fmt.Errorf("decoding reservation %q: %w", text, errFields)
	}
	gvr, err := decodeResource(part[3])
	if err != nil {
		return ledger.Reservation{}, fmt.Errorf("decoding reservation %q: %w", text, err)
	}
	expiry, isDoubtful := strings.CutSuffix(part[6], doubtful)
	seconds, err := strconv.ParseInt(expiry, 10, 64)
	if err != nil {
		return ledger.Reservation{}, fmt.Errorf("decoding reservation %q: expiry: %w", text, err)
	}
	for _, field := range []int{0, 1, 2, 4, 5} {
		if part[field], err = url.PathUnescape(orEmpty(part[field])); err != nil {
			return ledger.Reservation{}, fmt.Errorf("decoding reservation %q: field %d: %w", text, field+1, err)
		}
	}
	amounts, err := decodeAmounts(orEmpty(part[7]))
	if err != nil {
		return ledger.Reservation{}, fmt.Errorf("decoding reservation %q: %w", text, err)
	}
	return ledger.Reservation{
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
		strconv.FormatInt(fence.Generation, 10), strconv.FormatInt(fence.Until.Unix(), 10), orDash(encodeAmounts(fence.Hard)),
	}, " ")
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
	return ledger.Fence{Generation: generation, Hard: hard, Until: time.Unix(seconds, 0)}, nil
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
