// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Area is what one quota asks of the webhook configuration.
type Area struct {
	// Selector chooses the namespaces. A webhook can't be restricted by
	// annotations: the labels alone count, which is a wider area, and is
	// everything where there are only annotations. The zero Selector asks for
	// nothing.
	Selector Selector
	// Rules are what is asked about there. Equal strings are equal rules; order
	// and duplicates don't matter. An area without rules asks for nothing, but
	// entries say whether they meet it.
	Rules []string
	// Owner names who asks. If there is room, an entry lies in all areas of the
	// owners that it meets. Areas without an owner don't keep entries apart.
	Owner string
}

// Entry is one of several label selectors of which no set of labels meets two.
type Entry struct {
	// Selector has sorted matchExpressions only, in a form that depends on
	// nothing but what they choose. Without any it matches everything.
	Selector metav1.LabelSelector
	// Rules are those of all Areas, sorted.
	Rules []string
	// Areas are the indices of the areas that have labels in common with this
	// entry, sorted. An area may go beyond the entry, and the entry beyond it.
	Areas []int
	// Around are those of Areas that the whole entry lies in, sorted: whatever
	// meets the entry is in them, as far as labels decide.
	Around []int
	// where is what Selector chooses.
	where conjunction
}

// Disjoint returns entries that match all labels that some area with rules
// selects, each by exactly one entry, and match no others. Each entry says of the
// label with the namespace's name that it is none of protected. No more than most
// entries are returned, and most is at least 1:
//
//  1. For all that an entry matches, the same owners want all of its rules.
//  2. If that takes too many, owners no longer keep entries apart: for all that
//     an entry matches, all of its rules are wanted.
//  3. If that takes too many, rules don't either: each entry has the rules of all
//     areas that it has anything in common with.
//  4. If that takes too many as well, exact is false, and one entry matches
//     labels that no area selects, too. Each label is one that it is in some
//     area, whatever the others are.
//
// But for Entry.Areas and Entry.Around the result depends only on what the areas
// choose and want, not on their order.
//
// The fewest entries take exponential time to find, and aren't searched for;
// nor is a split pursued once it has several times most parts. So 500 areas
// that have one label take 2 ms, and 500 that overlap at random take 25 ms to
// end in step 4, on one core.
func Disjoint(areas []Area, protected []string, most int) (entries []Entry, exact bool) {
	requests := requestsIn(areas, protected)
	asking := slices.DeleteFunc(slices.Clone(requests), func(r request) bool { return len(r.rules) == 0 })
	if len(asking) == 0 {
		return nil, true
	}
	ruled := regionsOf(asking)
	for _, regions := range [][]region{ownedBy(asking), ruled, withoutRules(ruled)} {
		if split, ok := split(regions, most); ok {
			return entriesFor(split, requests), true
		}
	}
	return entriesFor([]region{{where: around(asking, protected)}}, requests), false
}

// region is where the same rules are wanted.
type region struct {
	where conjunction
	rules []string // sorted, without duplicates; shared, not changed
}

// widestFirst orders regions so that none comes before another that it lies in.
// It leaves no two in the order that they were given in.
func widestFirst(a, b region) int {
	return cmp.Or(cmp.Compare(len(a.where), len(b.where)), cmp.Compare(b.where.width(), a.where.width()),
		a.where.compare(b.where), slices.Compare(a.rules, b.rules))
}

// including returns the region cut where the other's rules begin to be wanted.
func (r region) including(other region) []region {
	if !r.where.overlaps(other.where) || includes(r.rules, other.rules) {
		return []region{r}
	}
	inside, outside := r.where.cut(other.where)
	parts := []region{{inside, sortedSet(r.rules, other.rules)}}
	for _, part := range outside {
		parts = append(parts, region{part, r.rules})
	}
	return parts
}

// includes reports whether all of some are there. Both are sorted.
func includes(all, some []string) bool {
	return !slices.ContainsFunc(some, func(rule string) bool {
		_, found := slices.BinarySearch(all, rule)
		return !found
	})
}

// request is an area that selects something.
type request struct {
	region
	owner string
	area  int // index
}

func requestsIn(areas []Area, protected []string) []request {
	var requests []request
	for i, area := range areas {
		if where, satisfiable := unprotected(area.Selector, protected); satisfiable {
			requests = append(requests, request{region{where, sortedSet(area.Rules)}, area.Owner, i})
		}
	}
	return requests
}

// unprotected returns what the selector asks of the labels of namespaces that
// aren't protected. It is false for one that no labels meet.
func unprotected(selector Selector, protected []string) (conjunction, bool) {
	where, satisfiable := conjunctionOf(selector)
	if !satisfiable {
		return nil, false
	}
	return where.with(corev1.LabelMetadataName, allBut(protected))
}

func allBut(protected []string) valueSet {
	return valueSet{absent: true, except: true, listed: sortedSet(protected)}
}

func regionsOf(asking []request) []region {
	regions := make([]region, 0, len(asking))
	for _, request := range asking {
		regions = append(regions, request.region)
	}
	return regions
}

// ownedBy returns the regions, in which each owner is one more rule, so that what
// different owners ask for stays apart. No rule begins with a zero byte.
func ownedBy(asking []request) []region {
	regions := make([]region, 0, len(asking))
	for _, request := range asking {
		if request.owner != "" {
			request.rules = sortedSet(request.rules, []string{"\x00" + request.owner})
		}
		regions = append(regions, request.region)
	}
	return regions
}

func withoutRules(regions []region) []region {
	bare := make([]region, 0, len(regions))
	for _, ruled := range regions {
		bare = append(bare, region{where: ruled.where})
	}
	return bare
}

// around returns the narrowest conjunction that a LabelSelector can express
// and that has all that is asked for in it, but for what is protected.
func around(asking []request, protected []string) conjunction {
	var all conjunction
	for _, need := range asking[0].where {
		allowed := make([]valueSet, 0, len(asking))
		for _, request := range asking {
			allowed = append(allowed, request.where.allowed(need.key))
		}
		if together := union(allowed); together.isExpressible() {
			all, _ = all.with(need.key, together)
		}
	}
	all, _ = all.with(corev1.LabelMetadataName, allBut(protected))
	return all
}

func entriesFor(regions []region, requests []request) []Entry {
	slices.SortFunc(regions, func(a, b region) int { return a.where.compare(b.where) })
	entries := make([]Entry, 0, len(regions))
	for _, region := range regions {
		entry := Entry{Selector: region.where.labelSelector(), where: region.where}
		var rules [][]string
		for _, request := range requests {
			if !request.where.overlaps(region.where) {
				continue
			}
			entry.Areas = append(entry.Areas, request.area)
			rules = append(rules, request.rules)
			if region.where.within(request.where) {
				entry.Around = append(entry.Around, request.area)
			}
		}
		entry.Rules = sortedSet(rules...)
		entries = append(entries, entry)
	}
	return entries
}
