// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

// record is what is kept of an object. There is one for each counted object of
// the cluster, so its size matters: 56 bytes, and the strings of name and UID.
// With two times and the rest of the footprint in it, it was 112; a counted pod
// then took 246 bytes in all, now 177 (BenchmarkMemory).
type record struct {
	uid       types.UID
	version   uint64
	footprint evaluation.Footprint
	// asOf is the time that its usage was last evaluated for, in nanoseconds.
	asOf int64
}

// at returns the record as of a time.
func (r record) at(now time.Time) record {
	r.asOf = now.UnixNano()
	return r
}

// used is what the object uses, as of the record's own time: what was added to
// a slice is what is subtracted later, whatever the time is then.
func (r record) used() evaluation.Footprint {
	return r.footprint.At(time.Unix(0, r.asOf))
}

// willChange reports whether time alone will change what is used.
func (r record) willChange() bool {
	at, ages := r.footprint.ChangesAt()
	return ages && r.asOf < at.UnixNano()
}

// records are the records of one resource, by namespace and name.
type records map[string]map[string]record

func (r records) get(key types.NamespacedName) (record, bool) {
	record, known := r[key.Namespace][key.Name]
	return record, known
}

func (r records) put(key types.NamespacedName, current record) {
	objects := r[key.Namespace]
	if objects == nil {
		objects = map[string]record{}
		r[key.Namespace] = objects
	}
	objects[key.Name] = current
}

func (r records) remove(key types.NamespacedName) {
	delete(r[key.Namespace], key.Name)
	if len(r[key.Namespace]) == 0 {
		delete(r, key.Namespace)
	}
}

// newestIn returns the newest version of an object in a namespace; zero for none.
func (r records) newestIn(namespace string) uint64 {
	newest := uint64(0)
	for _, record := range r[namespace] {
		newest = max(newest, record.version)
	}
	return newest
}

// alike tells for what is used how many objects use it.
type alike map[evaluation.Footprint]int

// alikeIn gathers the records of a namespace by what they use.
func (r records) alikeIn(namespace string) alike {
	gathered := alike{}
	for _, record := range r[namespace] {
		gathered[record.used()]++
	}
	return gathered
}
