// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// upTo bounds the entries by their number alone.
func upTo(most int) Bounds { return Bounds{Entries: most, Narrow: 1 << 20} }

const nameLabel = "kubernetes.io/metadata.name"

// wanting is the area of a selector with these rules, separated by spaces.
func wanting(rules string, selector quotav1.ClusterResourceQuotaSelector) Area {
	compiled, err := CompileSelector(selector)
	if err != nil {
		panic(err)
	}
	return Area{Selector: compiled, Rules: strings.Fields(rules)}
}

// podsOf is the area of a selector by labels, each "key=value", with one rule.
func podsOf(matchLabels ...string) Area { return wanting("pods", withLabels(matchLabels...)) }

func withLabels(matchLabels ...string) quotav1.ClusterResourceQuotaSelector {
	labels := map[string]string{}
	for _, label := range matchLabels {
		key, value, _ := strings.Cut(label, "=")
		labels[key] = value
	}
	return byLabels(labels)
}

func podsWhere(key string, operator metav1.LabelSelectorOperator, values ...string) Area {
	return wanting("pods", byLabels(nil, requirement(key, operator, values...)))
}

// entryLines are the entries in a form that can be read.
func entryLines(entries []Entry) []string {
	var lines []string
	for i := range entries {
		lines = append(lines, fmt.Sprintf("%s: %s %v", metav1.FormatLabelSelector(&entries[i].Selector), strings.Join(entries[i].Rules, " "), entries[i].Areas))
	}
	return lines
}

func TestAreasAreSplitIntoDisjointEntries(t *testing.T) {
	for name, test := range map[string]struct {
		areas     []Area
		protected []string
		want      []string
	}{
		"one quota is one entry":       {areas: []Area{podsOf("team=a", "tier=prod")}, want: []string{"team in (a),tier in (prod): pods [0]"}},
		"the zero selector has no say": {areas: []Area{{Rules: []string{"pods"}}, podsOf("team=a")}, want: []string{"team in (a): pods [1]"}},
		"teams that want the same share an entry": {
			areas: []Area{podsOf("team=b"), podsOf("team=a"), podsOf("team=c")},
			want:  []string{"team in (a,b,c): pods [0 1 2]"},
		},
		"one selector twice is one entry with the rules of both": {
			areas: []Area{podsOf("team=a"), wanting("claims", withLabels("team=a"))},
			want:  []string{"team in (a): claims pods [0 1]"},
		},
		"two quotas of each team share one entry all the same": {
			areas: []Area{podsOf("team=a"), wanting("claims", withLabels("team=a")), podsOf("team=b"), wanting("claims", withLabels("team=b"))},
			want:  []string{"team in (a,b): claims pods [0 1 2 3]"},
		},
		"a selector within another that wants the same adds nothing": {
			areas: []Area{podsOf("team=a", "tier=prod"), podsWhere("team", "Exists")},
			want:  []string{"team: pods [0 1]"},
		},
		"a selector within another that wants more is cut out of it": {
			areas: []Area{podsWhere("team", "Exists"), wanting("pods claims", withLabels("team=a"))},
			want:  []string{"team,team notin (a): pods [0]", "team in (a): claims pods [0 1]"},
		},
		"what two selectors have in common is asked about once": {
			areas: []Area{podsOf("team=a"), podsOf("tier=prod")},
			want:  []string{"team notin (a),tier in (prod): pods [1]", "team in (a): pods [0 1]"},
		},
		"what two selectors that want different rules have in common is a third entry": {
			areas: []Area{podsOf("team=a"), wanting("claims", withLabels("tier=prod"))},
			want: []string{
				"team notin (a),tier in (prod): claims [1]",
				"team in (a),tier notin (prod): pods [0]",
				"team in (a),tier in (prod): claims pods [0 1]",
			},
		},
		"selectors are joined by the label that leaves the fewest": {
			areas: []Area{podsOf("team=a", "tier=x"), podsOf("team=a", "tier=y"), podsOf("team=b", "tier=y"), podsOf("team=b", "tier=z")},
			want:  []string{"team in (a),tier in (x,y): pods [0 1]", "team in (b),tier in (y,z): pods [2 3]"},
		},
		"a team and all others are everything": {
			areas: []Area{podsOf("team=a"), podsWhere("team", "NotIn", "a")},
			want:  []string{"<none>: pods [0 1]"},
		},
		"what no two of the quotas leave out is left out by none": {
			areas: []Area{podsWhere("team", "NotIn", "a", "b"), podsWhere("team", "NotIn", "b", "c")},
			want:  []string{"team notin (b): pods [0 1]"},
		},
		"without a team or with one of some takes two entries": {
			areas: []Area{podsOf("team=a"), podsWhere("team", "DoesNotExist"), podsOf("team=b")},
			want:  []string{"team in (a,b): pods [0 2]", "!team: pods [1]"},
		},
		"what isn't another team takes two entries": {
			areas: []Area{wanting("pods", byLabels(nil, requirement("team", "Exists"), requirement("team", "NotIn", "a"))), podsOf("tier=prod")},
			want:  []string{"team,team notin (a): pods [0 1]", "team in (a),tier in (prod): pods [1]", "!team,tier in (prod): pods [1]"},
		},
		"an empty value is a value": {
			areas: []Area{podsOf("team="), wanting("claims", byLabels(nil, requirement("team", "DoesNotExist")))},
			want:  []string{"team in (): pods [0]", "!team: claims [1]"},
		},
		"several requirements for a label become one": {
			areas: []Area{wanting("pods", byLabels(nil, requirement("team", "In", "c", "a", "b"), requirement("team", "NotIn", "b"),
				requirement("team", "Exists")))},
			want: []string{"team in (a,c): pods [0]"},
		},
		"a contradiction asks for nothing": {
			areas: []Area{wanting("pods", byLabels(nil, requirement("team", "In", "a"), requirement("team", "DoesNotExist")))},
		},
		"annotations alone may be anywhere": {
			areas: []Area{podsOf("team=a"), wanting("claims", byAnnotations(map[string]string{"owner": "alice"}))},
			want:  []string{"team notin (a): claims [1]", "team in (a): claims pods [0 1]"},
		},
		"protected namespaces meet no entry": {
			areas: []Area{podsOf("team=a"), wanting("claims", withLabels("team=b"))}, protected: []string{"operator", "kube-system"},
			want: []string{
				nameLabel + " notin (kube-system,operator),team in (a): pods [0]",
				nameLabel + " notin (kube-system,operator),team in (b): claims [1]",
			},
		},
		"namespaces chosen by name are joined without the protected ones": {
			areas:     []Area{podsWhere(nameLabel, "In", "kube-system", "b"), podsOf(nameLabel + "=a")},
			protected: []string{"kube-system"},
			want:      []string{nameLabel + " in (a,b): pods [0 1]"},
		},
		"namespaces left out by name are left out with the protected ones": {
			areas: []Area{podsWhere(nameLabel, "NotIn", "a")}, protected: []string{"kube-system"},
			want: []string{nameLabel + " notin (a,kube-system): pods [0]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			entries, exact := Disjoint(test.areas, test.protected, upTo(10))
			if diff := cmp.Diff(test.want, entryLines(entries)); diff != "" || !exact {
				t.Errorf("exact: %t, entries (-want,+got):\n%s", exact, diff)
			}
		})
	}
}

// owned are the areas, each with an owner of its own.
func owned(areas ...Area) []Area {
	for i := range areas {
		areas[i].Owner = fmt.Sprint("quota ", i)
	}
	return areas
}

func TestOwnersAreKeptApartIfThereIsRoom(t *testing.T) {
	for name, test := range map[string]struct {
		areas []Area
		most  int
		want  []string
	}{
		"an entry for each": {
			areas: owned(podsOf("team=a"), podsOf("team=b")), most: 2,
			want: []string{"team in (a): pods [0] in [0]", "team in (b): pods [1] in [1]"},
		},
		"one entry for all, without room": {
			areas: owned(podsOf("team=a"), podsOf("team=b")), most: 1, want: []string{"team in (a,b): pods [0 1] in []"},
		},
		"what two have in common is cut out of both": {
			areas: owned(podsOf("team=a"), podsOf("tier=x")), most: 3, want: []string{
				"team notin (a),tier in (x): pods [1] in [1]",
				"team in (a),tier notin (x): pods [0] in [0]",
				"team in (a),tier in (x): pods [0 1] in [0 1]",
			},
		},
		"the same selector twice is one entry": {
			areas: owned(podsOf("team=a"), wanting("claims", withLabels("team=a"))), most: 3,
			want: []string{"team in (a): claims pods [0 1] in [0 1]"},
		},
		"an area without rules has no entry, but is known": {
			areas: owned(podsOf("team=a"), wanting("", byLabels(nil, requirement("team", "Exists"))), wanting("", withLabels("tier=x")),
				wanting("", withLabels("team=b"))), most: 3,
			want: []string{"team in (a): pods [0 1 2] in [0 1]"},
		},
		"an area without an owner keeps nothing apart": {
			areas: append(owned(podsOf("team=a")), podsWhere("team", "Exists")), most: 3,
			want: []string{"team,team notin (a): pods [1] in [1]", "team in (a): pods [0 1] in [0 1]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			entries, exact := Disjoint(test.areas, nil, upTo(test.most))
			lines := entryLines(entries)
			for i := range lines {
				lines[i] += fmt.Sprint(" in ", entries[i].Around)
			}
			if diff := cmp.Diff(test.want, lines); diff != "" || !exact {
				t.Errorf("exact: %t, entries (-want,+got):\n%s", exact, diff)
			}
		})
	}
}

func TestEntriesWidenWhereTheyWouldBeTooMany(t *testing.T) {
	byTeam := []Area{podsOf("team=a"), wanting("claims", withLabels("team=b")), wanting("services", withLabels("team=c"))}
	byTwo := []Area{podsOf("team=a", "tier=x"), wanting("claims", withLabels("team=b", "tier=y"))}
	apart := []Area{podsOf("team=a"), wanting("claims", withLabels("tier=x"))}

	for name, test := range map[string]struct {
		areas     []Area
		protected []string
		most      int
		want      []string
		inexact   bool
	}{
		"as many as there may be":                               {areas: byTeam, most: 3, want: []string{"team in (a): pods [0]", "team in (b): claims [1]", "team in (c): services [2]"}},
		"rules don't keep entries apart at the cost of others":  {areas: byTeam, most: 2, want: []string{"team in (a,b,c): claims pods services [0 1 2]"}},
		"one entry has all values of each label":                {areas: byTwo, most: 1, want: []string{"team in (a,b),tier in (x,y): claims pods [0 1]"}, inexact: true},
		"one entry for nothing in common is for everything":     {areas: apart, most: 1, want: []string{"<none>: claims pods [0 1]"}, inexact: true},
		"one entry for everything but the protected namespaces": {areas: apart, most: 1, protected: []string{"kube-system"}, want: []string{nameLabel + " notin (kube-system): claims pods [0 1]"}, inexact: true},
		"one entry that can't ask for no name or one of some leaves out the protected namespaces": {
			areas: []Area{podsWhere(nameLabel, "DoesNotExist"), podsOf(nameLabel + "=a")}, most: 1, protected: []string{"kube-system"},
			want: []string{nameLabel + " notin (kube-system): pods [0 1]"}, inexact: true,
		},
		"one entry can't ask for no team or one of some": {
			areas: []Area{podsWhere("team", "DoesNotExist"), podsOf("team=a")}, most: 1, want: []string{"<none>: pods [0 1]"}, inexact: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			entries, exact := Disjoint(test.areas, test.protected, upTo(test.most))
			if diff := cmp.Diff(test.want, entryLines(entries)); diff != "" || exact == test.inexact {
				t.Errorf("exact: %t, entries (-want,+got):\n%s", exact, diff)
			}
		})
	}
}
