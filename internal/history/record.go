// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// Days is how many days are kept, today included.
	Days = 30
	// periodDays is how many days of workloads are counted together.
	periodDays = 3
	// mostResources, mostNamespaces and mostTrials bound what is kept of one quota.
	mostResources, mostNamespaces, mostTrials = 512, 500, 4
	// longestName bounds names of objects, namespaces and kinds, and longestResource those of resources.
	longestName, longestResource = 253, 400
)

// trial is what limits that are tried would have refused.
type trial struct {
	// since is when they were first judged.
	since int64
	// resource name -> its requests
	resources map[corev1.ResourceName]*tried
}

type tried struct {
	requests int64
	// need is as that of a day.
	need *resource.Quantity
	// last is when the last request was sent.
	last int64
}

// record is what a part knows of one quota.
type record struct {
	// since is when the first of it was noted, and touched when it was known last that there is such a quota.
	since, touched int64
	// resource name -> what it has seen
	series map[corev1.ResourceName]*series
	// live is how many resources were counted at last.
	live int
	// period, a day divided by periodDays -> the workloads that were refused most
	workloads map[int32]tally
	// today is the day of namespaces.
	today int32
	// namespace name -> requests that didn't fit
	namespaces map[string]int64
	// digest of the limits -> what they would have refused
	trials map[string]*trial
	edits  []Edit
}

func newRecord() *record {
	return &record{
		series: map[corev1.ResourceName]*series{}, workloads: map[int32]tally{}, namespaces: map[string]int64{},
		trials: map[string]*trial{},
	}
}

func (r *record) touch(at int64) {
	r.touched = max(r.touched, at)
	if r.since == 0 || at < r.since {
		r.since = at
	}
}

// seriesOf returns that of a resource, and makes it if there is room; nil if there is none.
func (r *record) seriesOf(name corev1.ResourceName, mayGrow bool) *series {
	known, ok := r.series[name]
	if !ok && mayGrow && len(r.series) < mostResources && len(name) <= longestResource {
		known = &series{}
		r.series[corev1.ResourceName(strings.Clone(string(name)))] = known
	}
	return known
}

// hold notes what is used and reserved, and reports whether a peak has changed.
func (r *record) hold(at int64, amounts corev1.ResourceList, mayGrow bool) (changed bool) {
	r.touch(at)
	held := 0
	for name, amount := range amounts {
		of := r.seriesOf(name, mayGrow)
		if of == nil {
			continue
		}
		if of.current().amount == nil {
			r.live++
		}
		changed = of.hold(at, amount) || changed
		held++
	}
	if r.live > held {
		r.end(at, amounts)
	}
	return changed
}

// end notes that all other resources aren't counted any more.
func (r *record) end(at int64, amounts corev1.ResourceList) {
	r.live = 0
	for name, of := range r.series {
		if _, counted := amounts[name]; !counted && of.current().amount != nil {
			of.end(at)
		}
		if of.current().amount != nil {
			r.live++
		}
	}
}

// miss notes a request that didn't fit.
func (r *record) miss(at int64, refusal *Refusal, mayGrow bool) {
	r.touch(at)
	if refusal.Tried {
		r.missTrial(at, refusal)
		return
	}
	number := dayOf(at)
	for name, need := range refusal.Needed {
		if of := r.seriesOf(name, mayGrow); of != nil {
			of.day(number).miss(1, &need)
		}
	}
	for _, name := range refusal.Missing {
		if of := r.seriesOf(name, mayGrow); of != nil {
			of.day(number).miss(1, nil)
		}
	}
	period := number / periodDays
	if r.workloads[period] == nil {
		r.workloads[period] = tally{}
	}
	namespace := bounded(refusal.Namespace)
	r.workloads[period].count(workload{namespace, bounded(refusal.Kind), bounded(refusal.Name)}, 1)
	r.missIn(number, namespace, mayGrow)
}

// missIn counts a request of a namespace. Only those of the newest day are kept. If there is no room, the namespace takes
// the place of that with the fewest.
func (r *record) missIn(number int32, namespace string, mayGrow bool) {
	if _, known := r.namespaces[namespace]; !known && number == r.today && (!mayGrow || len(r.namespaces) >= mostNamespaces) {
		if len(r.namespaces) == 0 {
			return
		}
		delete(r.namespaces, r.fewest())
	}
	r.addIn(number, namespace, 1)
}

// addIn adds requests of a namespace, which may leave more than mostNamespaces.
func (r *record) addIn(number int32, namespace string, requests int64) {
	if number < r.today {
		return
	}
	if number > r.today {
		r.today, r.namespaces = number, map[string]int64{}
	}
	r.namespaces[namespace] += requests
}

// byRequests returns the namespaces, that with the most requests first.
func (r *record) byRequests() []string { return slices.SortedFunc(maps.Keys(r.namespaces), r.compare) }

// fewest returns the last of these. Each refusal may ask for it, so it sorts nothing.
func (r *record) fewest() string {
	var last string
	for namespace := range r.namespaces {
		if last == "" || r.compare(namespace, last) > 0 {
			last = namespace
		}
	}
	return last
}

func (r *record) compare(a, b string) int {
	return cmp.Or(cmp.Compare(r.namespaces[b], r.namespaces[a]), cmp.Compare(a, b))
}

func (r *record) missTrial(at int64, refusal *Refusal) {
	of := r.judge(at, digestOf(refusal.Trial))
	for name, need := range refusal.Needed {
		of.miss(name, tried{requests: 1, need: &need, last: at})
	}
	for _, name := range refusal.Missing {
		of.miss(name, tried{requests: 1, last: at})
	}
}

// judge returns the trial of limits with this digest, which have been judged since a time at the latest.
func (r *record) judge(at int64, digest string) *trial {
	of, known := r.trials[digest]
	if !known {
		of = &trial{since: at, resources: map[corev1.ResourceName]*tried{}}
		r.trials[digest] = of
		if len(r.trials) > mostTrials {
			delete(r.trials, oldest(r.trials))
		}
	}
	of.since = min(of.since, at)
	return of
}

// oldest returns the trial that began first.
func oldest(trials map[string]*trial) string {
	return slices.MinFunc(slices.Collect(maps.Keys(trials)), func(a, b string) int {
		return cmp.Or(cmp.Compare(trials[a].since, trials[b].since), cmp.Compare(a, b))
	})
}

func (t *trial) miss(name corev1.ResourceName, seen tried) {
	if len(name) > longestResource {
		return
	}
	of, known := t.resources[name]
	if !known {
		if len(t.resources) >= mostResources {
			return
		}
		of = &tried{}
		t.resources[name] = of
	}
	of.requests += seen.requests
	of.need = larger(of.need, seen.need)
	of.last = max(of.last, seen.last)
}

// add adds what another part knows. There may be more workloads and namespaces than are kept after that.
func (r *record) add(other *record) {
	if other.since != 0 {
		r.touch(other.since)
	}
	r.touched = max(r.touched, other.touched)
	for name, of := range other.series {
		if own := r.seriesOf(name, true); own != nil {
			own.add(of)
		}
	}
	for period, of := range other.workloads {
		if r.workloads[period] == nil {
			r.workloads[period] = tally{}
		}
		r.workloads[period].add(of)
	}
	for namespace, requests := range other.namespaces {
		r.addIn(other.today, namespace, requests)
	}
	for _, digest := range slices.Sorted(maps.Keys(other.trials)) {
		r.addTrial(digest, other.trials[digest])
	}
	r.edits = append(r.edits, other.edits...)
}

func (r *record) addTrial(digest string, other *trial) {
	of := r.judge(other.since, digest)
	for name, seen := range other.resources {
		of.miss(name, *seen)
	}
}

// settle brings the bounds into force again after add.
func (r *record) settle() {
	r.live = 0
	for _, of := range r.series {
		if of.current().amount != nil {
			r.live++
		}
	}
	for _, of := range r.workloads {
		of.fit()
	}
	if len(r.namespaces) > mostNamespaces {
		for _, namespace := range r.byRequests()[mostNamespaces:] {
			delete(r.namespaces, namespace)
		}
	}
	r.edits = newestEdits(r.edits)
}

// prune drops what is older than the last so many days.
func (r *record) prune(today int32, days int) {
	first := today - int32(days) + 1 //nolint:gosec // thirty at most
	for name, of := range r.series {
		of.prune(first)
		if len(of.days) == 0 && of.before.amount == nil {
			delete(r.series, name)
		}
	}
	for period := range r.workloads {
		if period < first/periodDays {
			delete(r.workloads, period)
		}
	}
	if r.today < today {
		r.namespaces = map[string]int64{}
	}
	r.edits = slices.DeleteFunc(r.edits, func(e Edit) bool { return e.At.UnixMilli() < startOf(today-1) })
}

// size is how much is kept, as a number of entries.
func (r *record) size() int {
	size := 1 + len(r.namespaces) + len(r.edits)
	for _, of := range r.series {
		size += 1 + len(of.days)
	}
	for _, of := range r.workloads {
		size += len(of)
	}
	for _, of := range r.trials {
		size += 1 + len(of.resources)
	}
	return size
}

// clone returns a copy. What edits say is shared, because nobody changes it.
func (r *record) clone() *record {
	own := newRecord()
	own.add(r)
	own.live = r.live
	return own
}

func bounded(name string) string {
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName], "")
	}
	return strings.Clone(name)
}

// digestOf identifies limits.
func digestOf(hard corev1.ResourceList) string {
	hash := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		amount := hard[name]
		_, _ = fmt.Fprintf(hash, "%s=%s;", name, amount.String()) // it never fails
	}
	return fmt.Sprintf("%016x", hash.Sum64())
}
