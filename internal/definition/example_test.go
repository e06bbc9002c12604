// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

// A namespace is selected if both its labels and its annotations match. An empty selector
// is an error, so that no quota limits everything by mistake.
func ExampleCompileSelector() {
	selector, err := definition.CompileSelector(quotav1.ClusterResourceQuotaSelector{
		LabelSelector:      &metav1.LabelSelector{MatchLabels: map[string]string{"team": "payments"}},
		AnnotationSelector: map[string]string{"owner": "alice"},
	})
	fmt.Println(selector, err)
	labels := map[string]string{"team": "payments", "tier": "prod"}
	fmt.Println(selector.Matches(labels, map[string]string{"owner": "alice"}))
	fmt.Println(selector.Matches(labels, map[string]string{"owner": "bob"}))

	_, err = definition.CompileSelector(quotav1.ClusterResourceQuotaSelector{})
	fmt.Println(err != nil)

	// Output:
	// team=payments [owner=alice] <nil>
	// true
	// false
	// true
}

// One quota limits pods for a team, another one services in production. A namespace
// meets exactly one entry if some quota selects it. The entry has the rules of the
// quotas that select it.
func ExampleDisjoint() {
	area := func(owner, key, value, rule string) definition.Area {
		selector, err := definition.CompileSelector(quotav1.ClusterResourceQuotaSelector{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
		})
		if err != nil {
			panic(err)
		}
		return definition.Area{Selector: selector, Rules: []string{rule}, Owner: owner}
	}
	entries, exact := definition.Disjoint([]definition.Area{
		area("payments", "team", "payments", "pods"),
		area("production", "tier", "prod", "services"),
	}, nil, definition.Bounds{Entries: 10})
	for i := range entries {
		fmt.Println(metav1.FormatLabelSelector(&entries[i].Selector), entries[i].Rules)
	}
	fmt.Println("exact:", exact)

	// Output:
	// team notin (payments),tier in (prod) [services]
	// team in (payments),tier notin (prod) [pods]
	// team in (payments),tier in (prod) [pods services]
	// exact: true
}
