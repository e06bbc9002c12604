// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// asking is the input that an Area is compiled from.
type asking struct {
	selector quotav1.ClusterResourceQuotaSelector
	rules    []string
	owner    string
}

// wants reports whether the rules are wanted for these labels, in the plainest
// words.
func (a asking) wants(set map[string]string) bool {
	byLabels := a.selector
	byLabels.AnnotationSelector = nil
	return selects(byLabels, set, nil)
}

// anyAsking draws selectors by the labels a and b and by name, of so few
// requirements that they often overlap and seldom contradict themselves.
func anyAsking() *rapid.Generator[asking] {
	return rapid.Custom(func(t *rapid.T) asking {
		expressions := rapid.SliceOfN(anyRequirement(), 0, 2).Draw(t, "expressions")
		if rapid.IntRange(0, 3).Draw(t, "other than one") == 0 {
			// It takes two selectors to ask for all labels but these two.
			expressions = append(expressions, requirement("a", "Exists"), requirement("a", "NotIn", "1"))
		}
		for i := range expressions {
			if expressions[i].Key == "c" {
				expressions[i].Key = nameLabel
			}
		}
		selector := byLabels(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), rapid.SampledFrom([]string{"", "1", "2"}), 0, 1).
			Draw(t, "labels"), expressions...)
		if isEmpty(selector) || rapid.IntRange(0, 9).Draw(t, "with annotations") == 0 {
			selector.AnnotationSelector = map[string]string{"owner": "alice"}
		}
		rules := rapid.SliceOfN(rapid.SampledFrom([]string{"pods", "pods", "claims"}), 1, 2).Draw(t, "rules")
		return asking{selector: selector, rules: rules}
	})
}

func anyAskings(most int) *rapid.Generator[[]asking] { return rapid.SliceOfN(anyAsking(), 0, most) }

// anyOwned draws areas of quotas, each with its own owner, some of which ask about
// nothing.
func anyOwned(most int) *rapid.Generator[[]asking] {
	return rapid.Custom(func(t *rapid.T) []asking {
		askings := anyAskings(most).Draw(t, "areas")
		for i := range askings {
			askings[i].owner = fmt.Sprint("quota ", i)
			if rapid.IntRange(0, 9).Draw(t, "asks about nothing") == 0 {
				askings[i].rules = nil
			}
		}
		return askings
	})
}

func anyProtected() *rapid.Generator[[]string] {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2"}), 0, 2)
}

// anyBounds draws bounds by number, and half the time by size, too.
func anyBounds(most ...int) *rapid.Generator[Bounds] {
	return rapid.Custom(func(t *rapid.T) Bounds {
		bounds := upTo(rapid.SampledFrom(most).Draw(t, "most"))
		if rapid.Bool().Draw(t, "by number alone") {
			return bounds
		}
		bounds.Bytes = rapid.IntRange(0, 100).Draw(t, "room")
		bounds.Narrow = rapid.IntRange(0, 10).Draw(t, "narrow")
		bounds.Size = func(entry Entry) int { return len(fmt.Sprint(entryLines([]Entry{entry}))) }
		return bounds
	})
}

func areasOf(t interface{ Fatal(...any) }, askings []asking) []Area {
	areas := make([]Area, 0, len(askings))
	for _, asking := range askings {
		areas = append(areas, Area{Selector: mustSelect(t, asking.selector), Rules: asking.rules, Owner: asking.owner})
	}
	return areas
}

// allLabels are all sets of labels that the selectors drawn can distinguish: each
// label absent, with a value that they name, and with a value that they don't.
func allLabels() []map[string]string {
	sets := []map[string]string{{}}
	for _, key := range []string{"a", "b", nameLabel} {
		for _, set := range slices.Clone(sets) {
			for _, value := range []string{"", "1", "2", "none"} {
				larger := maps.Clone(set)
				larger[key] = value
				sets = append(sets, larger)
			}
		}
	}
	return sets
}

// entryMatch is an entry as the API server reads it.
type entryMatch struct {
	Entry
	selector labels.Selector
}

func entryMatches(t interface{ Fatal(...any) }, entries []Entry) []entryMatch {
	var matches []entryMatch
	for _, entry := range entries {
		selector, err := metav1.LabelSelectorAsSelector(&entry.Selector)
		if err != nil {
			t.Fatal(err)
		}
		matches = append(matches, entryMatch{entry, selector})
	}
	return matches
}

func isProtected(set map[string]string, protected []string) bool {
	name, named := set[nameLabel]
	return named && slices.Contains(protected, name)
}

// wantedBy returns the indices of the areas that want rules for these labels, and
// all those rules.
func wantedBy(askings []asking, set map[string]string) (indices []int, rules []string) {
	for i, asking := range askings {
		if asking.wants(set) {
			indices = append(indices, i)
			rules = append(rules, asking.rules...)
		}
	}
	slices.Sort(rules)
	return indices, slices.Compact(rules)
}

// Selected labels meet one entry, with the rules wanted there and no others;
// labels that aren't selected meet none; and an entry knows all the areas it has
// a part of.
func TestEntriesAskWhatIsWantedAndNoMore(t *testing.T) {
	universe := allLabels()
	outcomes := map[int]int{} // entries met -> sets of labels
	rapid.Check(t, func(t *rapid.T) {
		askings, protected := anyAskings(5).Draw(t, "areas"), anyProtected().Draw(t, "protected")
		entries, exact := Disjoint(areasOf(t, askings), protected, upTo(1000))
		if !exact {
			t.Fatal("not exact, with room to be")
		}
		met := make([][]int, len(entries)) // entry -> areas
		matches := entryMatches(t, entries)
		for _, set := range universe {
			indices, rules := wantedBy(askings, set)
			want := 0
			if len(indices) > 0 && !isProtected(set, protected) {
				want = 1
			}
			got := 0
			for i, match := range matches {
				if !match.selector.Matches(labels.Set(set)) {
					continue
				}
				got++
				met[i] = append(met[i], indices...)
				if diff := cmp.Diff(rules, match.Rules); diff != "" {
					t.Fatalf("%v is in %v, rules (-want,+got):\n%s", set, entryLines(entries), diff)
				}
			}
			if got != want {
				t.Fatalf("%v meets %d of %v, want %d", set, got, entryLines(entries), want)
			}
			outcomes[want]++
		}
		for i, entry := range entries {
			slices.Sort(met[i])
			if diff := cmp.Diff(slices.Compact(met[i]), entry.Areas); diff != "" {
				t.Fatalf("areas of %v (-want,+got):\n%s", entryLines(entries[i:i+1]), diff)
			}
		}
	})
	if outcomes[0] == 0 || outcomes[1] == 0 {
		t.Errorf("want labels that are selected and that aren't, got %v", outcomes)
	}
}

// With any bound there are no more entries, none of them leaves out selected
// labels, and all are exact if that is returned.
func TestBoundedEntriesLeaveNobodyOut(t *testing.T) {
	universe := allLabels()
	outcomes := map[string]int{}
	wanted := []string{"exact true", "exact false", "wider rules", "several widened"}
	checkUntil(t, outcomes, wanted, func(t *rapid.T) {
		askings, protected := anyAskings(6).Draw(t, "areas"), anyProtected().Draw(t, "protected")
		bounds := anyBounds(1, 2, 3, 4).Draw(t, "bounds")
		entries, exact := Disjoint(areasOf(t, askings), protected, bounds)
		if len(entries) > bounds.Entries || !bounds.fit(entries) && len(entries) > 1 || !exact && bounds.Size == nil && len(entries) != 1 {
			t.Fatalf("exact: %t, with %d entries of %d: %v", exact, len(entries), bounds.Entries, entryLines(entries))
		}
		if !exact && len(entries) > 1 {
			outcomes["several widened"]++
		}
		matches := entryMatches(t, entries)
		for _, set := range universe {
			indices, rules := wantedBy(askings, set)
			selected := len(indices) > 0 && !isProtected(set, protected)
			got := 0
			for _, match := range matches {
				if !match.selector.Matches(labels.Set(set)) {
					continue
				}
				got++
				if !includes(match.Rules, rules) {
					t.Fatalf("%v misses some of %v in %v", set, rules, entryLines(entries))
				}
				if isProtected(set, protected) || (exact && !selected) {
					t.Fatalf("%v must not meet any of %v", set, entryLines(entries))
				}
				if len(match.Rules) > len(rules) {
					outcomes["wider rules"]++
				}
			}
			if got > 1 || (selected && got != 1) {
				t.Fatalf("%v meets %d of %v", set, got, entryLines(entries))
			}
		}
		outcomes[fmt.Sprint("exact ", exact)]++
	})
}

// checkUntil checks a property again and again until all wanted outcomes have happened. One check draws a hundred
// times, and a rare outcome may be in none of them.
func checkUntil(t *testing.T, outcomes map[string]int, wanted []string, property func(*rapid.T)) {
	t.Helper()
	const most = 50
	for range most {
		rapid.Check(t, property)
		if !slices.ContainsFunc(wanted, func(outcome string) bool { return outcomes[outcome] == 0 }) {
			return
		}
	}
	t.Errorf("want each of %q in %d checks, got %v", wanted, most, outcomes)
}

// witness is the entries' knowledge of the areas' owners, for one set of labels.
func witness(t *rapid.T, askings []asking, match entryMatch, exact bool, set map[string]string, indices []int) {
	t.Helper()
	for _, i := range match.Around {
		if !slices.Contains(indices, i) {
			t.Fatalf("%v is in %v, which doesn't lie in area %d", set, entryLines([]Entry{match.Entry}), i)
		}
	}
	for _, i := range indices {
		if !slices.Contains(match.Areas, i) {
			t.Fatalf("%v is in %v, which doesn't know of area %d", set, entryLines([]Entry{match.Entry}), i)
		}
	}
	var selectors []Selector
	for _, i := range match.Areas {
		selectors = append(selectors, mustSelect(t, askings[i].selector))
	}
	if match.LiesIn(selectors) && len(indices) == 0 {
		t.Fatalf("%v is in %v and in no area", set, entryLines([]Entry{match.Entry}))
	}
	if exact && !match.LiesIn(selectors) {
		t.Fatalf("%v doesn't lie in its areas", entryLines([]Entry{match.Entry}))
	}
}

// An entry's knowledge of the areas' owners is true for every namespace that
// meets it, in each step. If there is room, it has exactly these owners.
func TestEntriesKnowTheAreasThatTheyLieIn(t *testing.T) {
	universe := allLabels()
	outcomes := map[string]int{}
	wanted := []string{"exact true, apart true", "exact true, apart false", "exact false, apart false", "exact false, apart true"}
	checkUntil(t, outcomes, wanted, func(t *rapid.T) {
		askings, protected := anyOwned(5).Draw(t, "areas"), anyProtected().Draw(t, "protected")
		bounds := anyBounds(1, 2, 4, 8, 1000).Draw(t, "bounds")
		entries, exact := Disjoint(areasOf(t, askings), protected, bounds)
		for _, match := range entryMatches(t, entries) {
			asking := slices.DeleteFunc(slices.Clone(match.Areas), func(i int) bool { return len(askings[i].rules) == 0 })
			apart := includesAll(match.Around, asking)
			if bounds.Entries == 1000 && bounds.Size == nil && !apart {
				t.Fatalf("%v meets areas that it doesn't lie in, with room not to", entryLines([]Entry{match.Entry}))
			}
			for _, set := range universe {
				if match.selector.Matches(labels.Set(set)) {
					indices, _ := wantedBy(askings, set)
					witness(t, askings, match, exact, set, indices)
				}
			}
			outcomes[fmt.Sprintf("exact %t, apart %t", exact, apart)]++
		}
	})
}

func includesAll(all, some []int) bool {
	return !slices.ContainsFunc(some, func(i int) bool { return !slices.Contains(all, i) })
}

// The configuration doesn't change with the order of a list.
func TestEntriesDoNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		askings := rapid.OneOf(anyAskings(6), anyOwned(6)).Draw(t, "areas")
		protected := anyProtected().Draw(t, "protected")
		backwards := make([]int, 0, len(askings))
		for i := range askings {
			backwards = append(backwards, len(askings)-1-i)
		}
		for _, order := range [][]int{backwards, rapid.Permutation(backwards).Draw(t, "order")} {
			wantInOrder(t, askings, order, protected, anyBounds(1, 2, 4, 8, 1000).Draw(t, "bounds"))
		}
	})
}

// wantInOrder wants the same entries of the areas in this order.
func wantInOrder(t *rapid.T, askings []asking, order []int, protected []string, bounds Bounds) {
	t.Helper()
	reordered := make([]asking, 0, len(askings))
	for _, i := range order {
		reordered = append(reordered, askings[i])
	}
	want, wantExact := Disjoint(areasOf(t, askings), protected, bounds)
	got, gotExact := Disjoint(areasOf(t, reordered), slices.Sorted(slices.Values(protected)), bounds)
	for i := range got {
		for _, indices := range [][]int{got[i].Areas, got[i].Around} {
			for j, area := range indices {
				indices[j] = order[area]
			}
			slices.Sort(indices)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Entry{})); diff != "" || wantExact != gotExact {
		t.Fatalf("in the order %v, exact is %t, not %t, entries (-want,+got):\n%s", order, gotExact, wantExact, diff)
	}
}

// A quota that asks for nothing new adds no entry.
func TestAreasWithinOthersAddNoEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		askings, protected := anyAskings(5).Draw(t, "areas"), anyProtected().Draw(t, "protected")
		if len(askings) == 0 {
			return
		}
		within := rapid.SampledFrom(askings).Draw(t, "within")
		within.selector = *within.selector.DeepCopy()
		within.selector.LabelSelector.MatchExpressions = append(within.selector.LabelSelector.MatchExpressions,
			rapid.SliceOfN(anyRequirement(), 0, 2).Draw(t, "narrower")...)
		for _, most := range []int{2, 8, 1000} {
			want, wantExact := Disjoint(areasOf(t, askings), protected, upTo(most))
			got, gotExact := Disjoint(areasOf(t, append(slices.Clone(askings), within)), protected, upTo(most))
			if len(got) > len(want) || gotExact != wantExact {
				t.Fatalf("with %v exact is %t, not %t:\n%v, not\n%v", within, gotExact, wantExact, entryLines(got), entryLines(want))
			}
		}
	})
}

// adversaries are areas of up to 500 quotas whose split would be huge.
func adversaries() map[string][]Area {
	const quotas = 500
	random := rand.New(rand.NewPCG(1, 2))
	key := func(i int) string { return fmt.Sprint("key", i) }
	value := func() string { return fmt.Sprint(random.IntN(20)) }
	all := map[string][]Area{}
	add := func(name, rules string, selector quotav1.ClusterResourceQuotaSelector) {
		all[name] = append(all[name], wanting(rules, selector))
	}
	for i := range quotas {
		add("a label of its own each, and rules of its own", fmt.Sprint("rule", i), withLabels(key(i)+"=x"))
		add("a label of its own each that must have another value", "pods",
			byLabels(nil, requirement(key(i), "Exists"), requirement(key(i), "NotIn", "x")))
		add("two labels in common with some", "pods", withLabels(key(i%23)+"="+value(), key(i%29)+"="+value()))
		add("two labels of its own each", "pods", withLabels(key(2*i)+"=x", key(2*i+1)+"=x"))
		add("three labels of few", "pods", withLabels("a="+value(), "b="+value(), "c="+value()))
		add("three labels of few, without some values", fmt.Sprint("rule", i%7), byLabels(nil,
			requirement("a", "NotIn", value(), value()), requirement("b", "NotIn", value()), requirement("c", "In", value(), value(), value())))
		names := func(count int) (names []string) {
			for j := range count {
				names = append(names, fmt.Sprint("namespace-", i*count/2+j))
			}
			return names
		}
		add("fifty names each, half of them another's", fmt.Sprint("rule", i%7), byLabels(nil, requirement(nameLabel, "In", names(50)...)))
		add("fifty names each that are left out, and a label", fmt.Sprint("rule", i%7),
			byLabels(map[string]string{key(i % 5): value()}, requirement(nameLabel, "NotIn", names(50)...)))
		if i < 24 {
			add("a thousand names each, and a label of its own", fmt.Sprint("rule", i), byLabels(map[string]string{key(i): "x"},
				requirement(nameLabel, "In", names(1000)...)))
		}
		labels := map[string]string{}
		for range 20 {
			labels[key(random.IntN(100))] = value()
		}
		add("twenty labels of a hundred", fmt.Sprint("rule", i%7), byLabels(labels))
	}
	// No two of these overlap, which makes them few parts. They leave as many
	// parts of another area as 2 to the power of their number.
	const apart = 18
	pairwise, other := "a label for any two that keeps them apart", map[string]string{}
	for i := range apart {
		labels := map[string]string{}
		for j := range apart {
			if i != j {
				labels[fmt.Sprint(min(i, j), "-", max(i, j))] = fmt.Sprint(i < j)
			}
		}
		add(pairwise, "pods", byLabels(labels))
		other[key(i)] = "x"
	}
	add(pairwise, "pods", byLabels(other))
	for _, areas := range all {
		owned(areas...)
	}
	return all
}

// Memory stands for work here: it is the same on every machine.
func TestAdversariesDoNotTakeLong(t *testing.T) {
	for name, areas := range adversaries() {
		t.Run(name, func(t *testing.T) {
			var entries []Entry
			bounds := Bounds{Entries: 32, Narrow: 512, Bytes: 1 << 18, Size: func(entry Entry) int { return entry.where.size() }}
			allocations := testing.AllocsPerRun(1, func() { entries, _ = Disjoint(areas, []string{"kube-system"}, bounds) })
			if len(entries) == 0 || len(entries) > 32 || allocations > 1e6 || !bounds.fit(entries) {
				t.Errorf("%d entries, which fit: %t, after %.0f allocations", len(entries), bounds.fit(entries), allocations)
			}
		})
	}
}
