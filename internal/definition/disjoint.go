// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Area is one quota's demand on the webhook configuration.
type Area struct {
	// Selector chooses the namespaces. A webhook can't be restricted by
	// annotations: the labels alone count, which is a wider area, and is
	// everything where there are only annotations. The zero Selector asks for
	// nothing.
	Selector Selector
	// Rules are the rules of the requests that must be asked about there. Equal
	// strings are equal rules; order and duplicates don't matter. An area without
	// rules asks for nothing, but entries say whether they meet it.
	Rules []string
	// Owner names the quota that asks. If there is room, an entry lies in all
	// areas of the owners that it meets. Areas without an owner don't keep
	// entries apart.
	Owner string
}

// Entry is one of several label selectors of which no set of labels meets two.
type Entry struct {
	// Selector has sorted matchExpressions only, in a form that depends only on
	// the labels that they choose. Without any it matches everything.
	Selector metav1.LabelSelector
	// Rules are those of all Areas, sorted.
	Rules []string
	// Areas are the indices of the areas that have labels in common with this
	// entry, sorted. An area may go beyond the entry, and the entry beyond it.
	Areas []int
	// Around are the Areas that the whole entry lies in, sorted: a namespace that
	// meets the entry is in them, as far as labels decide.
	Around []int
	// where is the conjunction that Selector chooses.
	where conjunction
}

// Bounds limit the size of all entries together.
type Bounds struct {
	// Entries is how many there may be, at least 1.
	Entries int
	// Narrow is up to which size, in bytes, selectors aren't widened. No wider one is larger.
	Narrow int
	// Bytes bound the entries' size as Size computes it, which counts each listed value at least once. A nil Size means
	// no bound.
	Bytes int
	Size  func(Entry) int
}

func (b Bounds) fit(entries []Entry) bool {
	room := b.Bytes
	for i := 0; i < len(entries) && b.Size != nil && room >= 0; i++ {
		room -= b.Size(entries[i])
	}
	return room >= 0
}

// hopeless returns how many of the largest requests must be widened, because the values that all list take too much however they are
// split. Each try to split them took seconds. No more than Narrow allows are returned.
func (b Bounds) hopeless(asking []request, large int) int {
	listed, room := map[[2]string]bool{}, b.Bytes
	for i := len(asking) - 1; i >= 0 && b.Size != nil; i-- {
		for _, need := range asking[i].where {
			for _, value := range need.allowed.listed {
				if name := [2]string{need.key, value}; !listed[name] {
					listed[name], room = true, room-len(value)
				}
			}
		}
		if room < 0 {
			return min(i+1, large)
		}
	}
	return 0
}

// Disjoint returns entries that match all labels that some area with rules
// selects, each by exactly one entry, and match no others. Each entry says of the
// label with the namespace's name that it is none of protected. The entries keep
// within the bounds:
//
//  1. For all that an entry matches, the same owners want all of its rules.
//  2. If that takes too much, owners no longer keep entries apart: for all that
//     an entry matches, all of its rules are wanted.
//  3. If that takes too much, rules don't either: each entry has the rules of all
//     areas that it has anything in common with.
//  4. If that takes too much, the largest selectors are widened, and steps 1 to 3
//     are taken again: exact is false, and entries match labels that no area
//     selects, too.
//  5. If that takes too much as well, there is one entry. Each label is as in
//     some area, with all other labels free, and if that is too large, in some
//     area as widened. This one is returned even if it doesn't fit.
//
// But for Entry.Areas and Entry.Around the result depends only on the labels that
// the areas choose and the rules that they want, not on their order.
//
// The fewest entries take exponential time to find, and aren't searched for;
// nor is a split pursued once it has several times as many parts as there may be
// entries. So 500 areas that have one label take 2 ms, and 500 that overlap at
// random take 25 ms to end in step 5, on one core.
func Disjoint(areas []Area, protected []string, within Bounds) (entries []Entry, exact bool) {
	requests := requestsIn(areas, protected)
	asking := slices.DeleteFunc(slices.Clone(requests), func(r request) bool { return len(r.rules) == 0 })
	if len(asking) == 0 {
		return nil, true
	}
	slices.SortFunc(asking, largestFirst)
	large := 0
	for large < len(asking) && asking[large].where.size() > within.Narrow {
		large++
	}
	for widened := within.hopeless(asking, large); ; widened = min(max(1, widenFaster*widened), large) {
		for _, apart := range []func(request) []string{request.owned, request.ruled, request.bare} {
			split, ok := split(regionsOf(widest(asking[:widened], asking[widened:], within.Narrow, protected), apart), within.Entries)
			if !ok {
				continue
			}
			if entries := entriesFor(split, requests); within.fit(entries) {
				return entries, widened == 0
			}
		}
		if widened == large {
			break
		}
	}
	entries = entriesFor([]region{{where: around(asking, protected)}}, requests)
	if !within.fit(entries) {
		where := around(widest(asking[:large], asking[large:], within.Narrow, protected), protected)
		entries = entriesFor([]region{{where: where}}, requests)
	}
	return entries, false
}

// widenFaster is the factor by which more selectors are widened after a failed try: each try costs as much as three
// splits.
const widenFaster = 4

// largestFirst sorts requests by size, and leaves no two of them in the order that they were given in, unless they are
// alike.
func largestFirst(a, b request) int {
	return cmp.Or(cmp.Compare(b.where.size(), a.where.size()), a.where.compare(b.where),
		slices.Compare(a.rules, b.rules), cmp.Compare(a.owner, b.owner))
}

// widest returns all requests, the large ones widened.
func widest(large, others []request, narrow int, protected []string) []request {
	wide := slices.Concat(large, others)
	for i := range large {
		wide[i].where = wide[i].where.widened(narrow, protected)
	}
	return wide
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

// unprotected returns the selector's needs of the labels of namespaces that
// aren't protected. It is false for a selector that no labels meet.
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

// regionsOf returns the regions of requests, which these rules keep apart.
func regionsOf(asking []request, apart func(request) []string) []region {
	regions := make([]region, 0, len(asking))
	for _, request := range asking {
		regions = append(regions, region{request.where, apart(request)})
	}
	return regions
}

// owned returns the rules, of which the owner is one more. No rule begins with a zero byte.
func (r request) owned() []string {
	if r.owner == "" {
		return r.rules
	}
	return sortedSet(r.rules, []string{"\x00" + r.owner})
}

func (r request) ruled() []string { return r.rules }

func (request) bare() []string { return nil }

// around returns the narrowest conjunction that a LabelSelector can express and
// that has all the requests in it, but for protected names.
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

// entriesFor returns an entry for each region in which something is asked for. If requests were widened, the regions go
// beyond their areas.
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
		if entry.Rules = sortedSet(rules...); len(entry.Rules) > 0 {
			entries = append(entries, entry)
		}
	}
	return entries
}

// maxPieces bounds the work of Covered and of Entry.LiesIn.
const maxPieces = 10000

// A Where is the conjunction that a label selector chooses.
type Where struct {
	where conjunction
	some  bool
}

// WhereOf returns the Where of a label selector; it matches nothing if the selector is nil. It doesn't validate the
// selector, as the API server has: each look at a large configuration spent most of its time on that.
func WhereOf(selector *metav1.LabelSelector) Where {
	if selector == nil {
		return Where{}
	}
	expressions := slices.Clone(selector.MatchExpressions)
	for key, value := range selector.MatchLabels {
		expressions = append(expressions, metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value},
		})
	}
	where := Where{some: true}
	for _, expression := range expressions {
		allowed := valueSet{listed: sortedSet(expression.Values)}
		switch expression.Operator {
		case metav1.LabelSelectorOpIn:
		case metav1.LabelSelectorOpNotIn:
			allowed.absent, allowed.except = true, true
		case metav1.LabelSelectorOpExists:
			allowed = valueSet{except: true}
		case metav1.LabelSelectorOpDoesNotExist:
			allowed = valueSet{absent: true}
		default:
			return Where{}
		}
		if where.where, where.some = where.where.with(expression.Key, allowed); !where.some {
			return Where{}
		}
	}
	return where
}

// Covered reports whether label selectors together match every namespace that the
// selector matches by its labels, but for the protected ones. If the answer would
// take too long to compute, it is false.
func Covered(selector Selector, protected []string, by []Where) bool {
	wanted, some := unprotected(selector, protected)
	if !some {
		return true // it matches nothing
	}
	var covering []conjunction
	for _, one := range by {
		if one.some {
			covering = append(covering, one.where)
		}
	}
	return wanted.liesIn(covering)
}

// LiesIn reports whether the selectors together match, by their labels, every
// namespace that meets the entry. If that would take too long to find out, it is
// false.
func (e Entry) LiesIn(selectors []Selector) bool {
	var around []conjunction
	for _, selector := range selectors {
		if where, some := conjunctionOf(selector); some {
			around = append(around, where)
		}
	}
	return e.where.liesIn(around)
}
