// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// MaxEncoded bounds a part as it is published. A ConfigMap holds 1 MiB.
	MaxEncoded = 900 << 10
	// maxDecoded bounds it when it is read.
	maxDecoded = 8 << 20
	// longestAmount bounds a quantity that is read. A sum of amounts from 1n to 1e30 has fewer characters.
	longestAmount = 64
)

var (
	errTooLarge = errors.New("it is too large")
	errOwner    = errors.New("it isn't of a workload that can wait")
	errAmount   = errors.New("it isn't a quantity")
)

// part is the form in which a replica publishes its records.
type part struct {
	Owners []entry `json:"owners"`
}

// entry is a Record with short names, because there may be thousands. Times are in nanoseconds since
// 1970; zero for none.
type entry struct {
	Kind      Kind              `json:"k"`
	Namespace string            `json:"n"`
	Name      string            `json:"m"`
	UID       types.UID         `json:"u"`
	Quota     string            `json:"q"`
	Requested map[string]string `json:"r,omitempty"`
	Short     map[string]string `json:"s,omitempty"`
	Replaces  bool              `json:"p,omitempty"`
	Since     int64             `json:"f,omitempty"`
	Last      int64             `json:"l,omitempty"`
	Refusals  int               `json:"c,omitempty"`
	Ended     int64             `json:"e,omitempty"`
}

// Encode returns records as they are published. If they take more than MaxEncoded, the records with the oldest news are
// left out.
func Encode(records []Record) ([]byte, error) {
	newest := slices.SortedFunc(slices.Values(records), func(a, b Record) int {
		return cmp.Or(b.heard().Compare(a.heard()), inOrder(a, b))
	})
	for {
		encoded, err := encode(newest)
		if err != nil || len(encoded) <= MaxEncoded || len(newest) == 0 {
			return encoded, err
		}
		newest = newest[:len(newest)/2]
	}
}

// encode writes records as compressed JSON.
func encode(records []Record) ([]byte, error) {
	made := part{Owners: make([]entry, 0, len(records))}
	for i := range records {
		made.Owners = append(made.Owners, entryOf(&records[i]))
	}
	var encoded bytes.Buffer
	packed, err := gzip.NewWriterLevel(&encoded, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("packing who waits: %w", err)
	}
	if err := errors.Join(json.NewEncoder(packed).Encode(made), packed.Close()); err != nil {
		return nil, fmt.Errorf("packing who waits: %w", err)
	}
	return encoded.Bytes(), nil
}

func entryOf(record *Record) entry {
	return entry{
		Kind: record.Kind, Namespace: record.Namespace, Name: record.Name, UID: record.UID, Quota: record.Quota,
		Requested: amountsOf(record.Requested), Short: amountsOf(record.Short), Replaces: record.Replaces,
		Since: nanoseconds(record.Since), Last: nanoseconds(record.Last), Refusals: record.Refusals, Ended: nanoseconds(record.Ended),
	}
}

// Decode returns the records that Encode was given. It leaves out owners that can't be read, and says so by an error
// beside the others, because one of them must not hide all.
func Decode(encoded []byte) ([]Record, error) {
	read, err := unpack(encoded)
	if err != nil {
		return nil, fmt.Errorf("reading who waits: %w", err)
	}
	records := make([]Record, 0, len(read.Owners))
	for i := range read.Owners {
		owner := &read.Owners[i]
		record, wrong := owner.record()
		if wrong == nil {
			records = append(records, record)
		} else if err == nil {
			err = fmt.Errorf("reading who waits: %q %q/%q: %w", owner.Kind, owner.Namespace, owner.Name, wrong)
		}
	}
	return records, err
}

func unpack(encoded []byte) (read part, err error) {
	packed, err := gzip.NewReader(bytes.NewReader(encoded))
	if err != nil {
		return read, err //nolint:wrapcheck // the caller wraps it
	}
	text, err := io.ReadAll(io.LimitReader(packed, maxDecoded+1))
	if err != nil {
		return read, err //nolint:wrapcheck // the caller wraps it
	}
	if len(text) > maxDecoded {
		return read, errTooLarge
	}
	err = json.Unmarshal(text, &read)
	return read, err //nolint:wrapcheck // the caller wraps it
}

func (e *entry) record() (Record, error) {
	requested, requestedErr := listOf(e.Requested)
	short, shortErr := listOf(e.Short)
	record := Record{
		Refusal: Refusal{
			Owner: Owner{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, UID: e.UID},
			Quota: e.Quota, Requested: requested, Short: short, Replaces: e.Replaces,
		},
		Since: timeOf(e.Since), Last: timeOf(e.Last), Refusals: e.Refusals, Ended: timeOf(e.Ended),
	}
	if !record.isValid() || !isName(e.Quota, longestQuota) {
		return Record{}, errOwner
	}
	return record, errors.Join(requestedErr, shortErr)
}

// Publish returns this replica's own records, to be published, and their version; nothing if no owner waits.
func (l *List) Publish() (encoded []byte, version uint64, err error) {
	records, version := l.Own()
	if len(records) == 0 {
		return nil, version, nil
	}
	encoded, err = Encode(records)
	return encoded, version, err
}

// Receive takes another replica's published records, in place of its earlier ones; nothing if it deleted them. If some
// of it can't be read, the rest is taken.
func (l *List) Receive(replica string, encoded []byte) error {
	if len(encoded) == 0 {
		l.Follow(replica, nil)
		return nil
	}
	records, err := Decode(encoded)
	if err == nil || len(records) > 0 {
		l.Follow(replica, records)
	}
	return err
}

func amountsOf(list corev1.ResourceList) map[string]string {
	amounts := make(map[string]string, len(list))
	for name, amount := range list {
		amounts[string(name)] = amount.String()
	}
	return amounts
}

func listOf(amounts map[string]string) (corev1.ResourceList, error) {
	var list corev1.ResourceList
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount, err := parseAmount(amounts[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if list == nil {
			list = make(corev1.ResourceList, len(amounts))
		}
		list[corev1.ResourceName(name)] = amount
	}
	return list, nil
}

// parseAmount reads a quantity whose exponent has two digits at most: to read 1e-999999999 takes more
// memory than a machine has.
func parseAmount(text string) (resource.Quantity, error) {
	if len(text) > longestAmount {
		return resource.Quantity{}, errAmount
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 && len(strings.TrimLeft(text[at+1:], "+-")) > 2 {
		return resource.Quantity{}, errAmount
	}
	amount, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("%w: %w", errAmount, err)
	}
	return amount, nil
}

func nanoseconds(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixNano()
}

func timeOf(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}
