// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"slices"
)

// slack bounds the regions on the way, for each entry that there may be in the
// end: so many hardly ever join into so few. It bounds the work, too.
const slack = 4

// split returns disjoint regions for which the same rules are wanted as for
// the given ones. It is false if there are more than most, and if the
// slack makes it unlikely that there would not be.
//
//  1. Join regions that differ in one label.
//  2. Take the regions one by one, the widest first: nothing is left of regions
//     that lie in another and want no more. Each cuts the regions taken before
//     where it adds rules to them, and adds the part of itself that is outside
//     them all.
//  3. Join again: parts that were cut may have come to want the same.
func split(regions []region, most int) ([]region, bool) {
	limit := slack * most
	wanted, ok := joined(regions, limit)
	if !ok {
		return nil, false
	}
	slices.SortFunc(wanted, widestFirst)
	var taken []region
	for i := range wanted {
		if taken, ok = take(taken, wanted[:i], wanted[i], limit); !ok {
			return nil, false
		}
		if len(taken) <= limit/2 && i < len(wanted)-1 {
			continue
		}
		// The other half is room to cut in.
		if taken, ok = joined(taken, limit); !ok || len(taken) > limit/2 {
			return nil, false
		}
	}
	return taken, len(taken) <= most
}

// take adds a region to disjoint ones, which are the parts of the regions taken
// earlier. They stay disjoint. It is false once there are more than limit.
func take(taken, earlier []region, added region, limit int) ([]region, bool) {
	var all []region
	for _, old := range taken {
		all = append(all, old.including(added)...)
	}
	// The region without the earlier regions is the region without the taken
	// ones, in fewer parts: the taken ones have been cut since.
	fresh := []conjunction{added.where}
	for _, old := range earlier {
		left := make([]conjunction, 0, len(fresh))
		for _, where := range fresh {
			left = append(left, where.minus(old.where)...)
		}
		if fresh = left; len(all)+len(fresh) > limit {
			return nil, false
		}
	}
	for _, where := range fresh {
		all = append(all, region{where, added.rules})
	}
	return all, true
}

// joined returns fewer regions that are together the same for each set of
// rules, and that a LabelSelector can express each. Disjoint ones stay
// disjoint. It is false if one of them can't be expressed in limit parts.
func joined(regions []region, limit int) ([]region, bool) {
	var parts []region
	for _, whole := range regions {
		expressible, ok := whole.where.expressible(limit)
		if !ok {
			return nil, false
		}
		for _, where := range expressible {
			parts = append(parts, region{where, whole.rules})
		}
	}
	for {
		var fewer []region
		for _, alike := range grouped(parts, func(r region) string { return fmt.Sprintf("%q", r.rules) + r.where.keys() }) {
			fewer = append(fewer, joinedAlike(alike)...)
		}
		if len(fewer) == len(parts) {
			return parts, true
		}
		parts = fewer
	}
}

// joinedAlike joins regions that differ in one label, and picks the label that
// leaves the fewest. They all have the same rules and need the same labels.
func joinedAlike(alike []region) []region {
	fewest := alike
	for i := range alike[0].where {
		if len(alike) == 1 {
			break
		}
		if along := joinedAlong(alike, i); len(along) < len(fewest) {
			fewest = along
		}
	}
	return fewest
}

// joinedAlong joins the regions that differ in nothing but the need at i.
func joinedAlong(alike []region, i int) []region {
	var result []region
	for _, group := range grouped(alike, func(r region) string { return r.where.without(i) }) {
		if len(group) == 1 {
			result = append(result, group[0])
			continue
		}
		allowed := make([]valueSet, 0, len(group))
		for _, member := range group {
			allowed = append(allowed, member.where[i].allowed)
		}
		for _, part := range union(allowed).expressible() {
			result = append(result, region{group[0].where.replaced(i, part), group[0].rules})
		}
	}
	return result
}

// grouped returns the regions by their names, in the order of the names.
func grouped(regions []region, name func(region) string) [][]region {
	groups := map[string][]region{} // name -> regions
	for _, region := range regions {
		group := name(region)
		groups[group] = append(groups[group], region)
	}
	result := make([][]region, 0, len(groups))
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		result = append(result, groups[group])
	}
	return result
}
