// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

const (
	// MaxEncoded bounds a part as it is published. A ConfigMap holds 1 MiB.
	MaxEncoded = 900 << 10
	// maxDecoded bounds it when it is read.
	maxDecoded = 24 << 20
	// mostAdopted is how many ids of adopted parts are remembered.
	mostAdopted = 1000
)

var errQuota = errors.New("it isn't what a quota has seen")

// part is what a process published.
type part struct {
	id      string
	version uint64
	// written is when something was noted last.
	written int64
	// adopted are the ids of the parts that it includes.
	adopted map[string]int64
	// quota -> what the process knows of it
	records map[key]*record
	// quota -> hash of how it was written
	hashes map[key]uint64
}

// wirePart is a part as it is written.
type wirePart struct {
	ID      string            `json:"id"`
	Version uint64            `json:"v"`
	Written int64             `json:"w"`
	Adopted map[string]int64  `json:"a,omitempty"`
	Quotas  []json.RawMessage `json:"q"`
}

// Publish implements exchange.Content. If it is too large, the oldest days are left out.
func (r *Recorder) Publish() (encoded []byte, version uint64, err error) {
	version = r.version.Load()
	r.mu.RLock()
	made := wirePart{ID: r.id, Version: version, Adopted: maps.Clone(r.adopted)}
	own := maps.Clone(r.own)
	r.mu.RUnlock()
	if len(own)+len(made.Adopted) == 0 {
		return nil, version, nil
	}
	order := make([]key, 0, len(own))
	for of, known := range own {
		known.mu.Lock()
		made.Written = max(made.Written, known.record.touched)
		known.mu.Unlock()
		order = append(order, of)
	}
	slices.SortFunc(order, func(a, b key) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid)) })
	for days := Days; ; days = days * 2 / 3 {
		if days == 0 {
			order = order[:len(order)/2]
		}
		made.Quotas = made.Quotas[:0]
		for _, of := range order {
			text, err := own[of].encode(of, dayOf(made.Written), days)
			if err != nil {
				return nil, version, err
			}
			made.Quotas = append(made.Quotas, text)
		}
		encoded, err = pack(made)
		if err != nil || len(encoded) <= MaxEncoded || len(order) == 0 {
			return encoded, version, err
		}
	}
}

// encode writes what is known of a quota, without what is older than the last so many days.
func (e *entry) encode(of key, today int32, days int) (json.RawMessage, error) {
	e.mu.Lock()
	written := e.record
	if days < Days {
		written = written.clone()
		written.prune(today, days)
	}
	made := wireOf(of, written)
	e.mu.Unlock()
	text, err := json.Marshal(made)
	if err != nil {
		return nil, fmt.Errorf("writing the history of quota %s: %w", of.name, err)
	}
	return text, nil
}

func pack(made wirePart) ([]byte, error) {
	encoded, err := waiting.Pack(made)
	if err != nil {
		return nil, fmt.Errorf("packing the history: %w", err)
	}
	return encoded, nil
}

// decode reads a part; nil if it can't be read at all. Quotas that can't be read are left out, with an error. What is
// written as in the part before isn't read again.
func decode(encoded []byte, before *part) (*part, error) {
	var wire wirePart
	if err := waiting.Unpack(encoded, maxDecoded, &wire); err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	if wire.ID == "" || len(wire.ID) > longestName {
		return nil, fmt.Errorf("reading the history: %w", errQuota)
	}
	read := &part{
		id: wire.ID, version: wire.Version, written: wire.Written, adopted: newestIDs(wire.Adopted),
		records: map[key]*record{}, hashes: map[key]uint64{},
	}
	var wrong error
	for _, text := range wire.Quotas[:min(len(wire.Quotas), mostQuotas)] {
		if err := read.take(text, before); err != nil && wrong == nil {
			wrong = err
		}
	}
	return read, wrong
}

// wireName is what identifies a quota.
type wireName struct {
	Name string    `json:"n"`
	UID  types.UID `json:"u"`
}

func (p *part) take(text json.RawMessage, before *part) error {
	var name wireName
	if err := json.Unmarshal(text, &name); err != nil {
		return fmt.Errorf("reading the history of a quota: %w", err)
	}
	if name.Name == "" || len(name.Name) > longestName || len(name.UID) > longestName {
		return fmt.Errorf("reading the history of a quota: %w", errQuota)
	}
	of, hash := key{name.Name, name.UID}, fnv.New64a()
	_, _ = hash.Write(text) // it never fails
	sum := hash.Sum64()
	if before != nil && before.records[of] != nil && before.hashes[of] == sum {
		p.records[of], p.hashes[of] = before.records[of], sum
		return nil
	}
	read, err := readRecord(text)
	if err != nil {
		return fmt.Errorf("reading the history of quota %s: %w", name.Name, err)
	}
	p.records[of], p.hashes[of] = read, sum
	return nil
}

// differing returns the quotas of which two versions of a part say something else.
func differing(before, current *part) []string {
	names := map[string]bool{}
	for _, pair := range [][2]*part{{before, current}, {current, before}} {
		if pair[0] == nil {
			continue
		}
		for of, hash := range pair[0].hashes {
			if pair[1] == nil || pair[1].hashes[of] != hash {
				names[of.name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// newestIDs bounds adopted parts.
func newestIDs(adopted map[string]int64) map[string]int64 {
	kept := make(map[string]int64, len(adopted))
	order := slices.SortedFunc(maps.Keys(adopted), func(a, b string) int {
		return cmp.Or(cmp.Compare(adopted[b], adopted[a]), cmp.Compare(a, b))
	})
	for _, id := range order[:min(len(order), mostAdopted)] {
		if len(id) <= longestName {
			kept[id] = adopted[id]
		}
	}
	return kept
}
