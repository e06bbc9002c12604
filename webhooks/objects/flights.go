// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// flightLife is how long a request counts as under way at most. Nearly all are stored, or fail, much earlier.
const flightLife = 2 * time.Second

// flights are the requests that this replica has let through and whose objects it has not seen stored yet.
// The zero value has none.
type flights struct {
	// mu guards the fields below.
	mu sync.Mutex
	// key -> the requests that are under way
	tallies map[string]*tally
	// begun are the requests of the last flightLife, the oldest first.
	begun []*flight
}

// tally is of all requests with a key that have begun within flightLife.
type tally struct {
	number int
	// sum is the amounts that are under way.
	sum corev1.ResourceList
	// used is the use of the quota when it was seen last, at a version.
	used    corev1.ResourceList
	version uint64
}

// flight is a request that is under way.
type flight struct {
	key     string
	amounts corev1.ResourceList
	until   time.Time
}

// begin adds a request. It returns the amounts that were under way without it.
func (f *flights) begin(now time.Time, key string, amounts corev1.ResourceList) (*flight, corev1.ResourceList) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.under(now, key)
	return f.add(now, key, amounts), before
}

// end removes requests that have failed.
func (f *flights) end(failed []*flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range failed {
		if at := slices.Index(f.begun, one); at >= 0 {
			f.begun = slices.Delete(f.begun, at, at+1)
			f.drop(one)
		}
	}
}

// under returns the amounts that are under way. The lock must be held.
func (f *flights) under(now time.Time, key string) corev1.ResourceList {
	for len(f.begun) > 0 && now.After(f.begun[0].until) {
		f.drop(f.begun[0])
		f.begun = f.begun[1:]
	}
	if under, ok := f.tallies[key]; ok {
		return under.sum
	}
	return nil
}

// add adds a request. The lock must be held.
func (f *flights) add(now time.Time, key string, amounts corev1.ResourceList) *flight {
	if f.tallies == nil {
		f.tallies = map[string]*tally{}
	}
	under := f.tallies[key]
	if under == nil {
		under = &tally{}
		f.tallies[key] = under
	}
	added := &flight{key: key, amounts: amounts, until: now.Add(flightLife)}
	f.begun = append(f.begun, added)
	under.number++
	under.sum = quota.Add(under.sum, amounts)
	return added
}

func (f *flights) drop(one *flight) {
	under := f.tallies[one.key]
	under.sum = quota.Subtract(under.sum, one.amounts)
	under.number--
	if under.number == 0 {
		delete(f.tallies, one.key)
	}
}

// land takes the rise of a quota's use since it was seen last as that of the oldest requests: their objects
// are stored. It returns the newest use that was seen. The lock must be held.
func (f *flights) land(key string, version uint64, used corev1.ResourceList) corev1.ResourceList {
	under, ok := f.tallies[key]
	switch {
	case !ok:
		return used
	case version <= under.version:
		return under.used
	}
	grown := quota.SubtractWithNonNegativeResult(used, under.used)
	if under.version == 0 {
		grown = nil
	}
	under.version, under.used = version, used
	for _, one := range f.begun {
		if one.key == key && !quota.IsZero(grown) {
			left := quota.SubtractWithNonNegativeResult(one.amounts, grown)
			landed := quota.Subtract(one.amounts, left)
			grown, one.amounts, under.sum = quota.Subtract(grown, landed), left, quota.Subtract(under.sum, landed)
		}
	}
	return used
}
