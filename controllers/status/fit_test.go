// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// slicesOf are so many slices, of so many resources each, of which every other is used.
func slicesOf(namespaces, resources int) []quotav1.ResourceQuotaStatusByNamespace {
	hard, used := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range resources {
		name := corev1.ResourceName(fmt.Sprintf("count/thing%ds.example.com", i))
		hard[name], used[name] = resource.MustParse("1000000"), *resource.NewQuantity(int64(i%2*1234), resource.DecimalSI)
	}
	all := make([]quotav1.ResourceQuotaStatusByNamespace, namespaces)
	for i := range all {
		all[i].Namespace = fmt.Sprintf("namespace-%05d", i)
		all[i].Status = corev1.ResourceQuotaStatus{Hard: hard, Used: used}
	}
	return all
}

// etcd takes 1.5 MiB. A status that can't be stored is of no use.
func TestSlicesCanBeStored(t *testing.T) {
	for name, test := range map[string]struct {
		namespaces, resources int
		// hard and used are how many entries the first slice has, and last the last one.
		hard, used, last int
		// names is how long the selector is that lists the namespaces, and left how many of them have a slice, if not all.
		names, left int
	}{
		"few":                             {namespaces: 100, resources: 10, hard: 10, used: 10, last: 10},
		"many namespaces":                 {namespaces: 2000, resources: 8, used: 8, last: 8},
		"many resources":                  {namespaces: 150, resources: 256, used: 128, last: 128},
		"many of both":                    {namespaces: 500, resources: 256, used: 128},
		"more namespaces than most ever":  {namespaces: 10_000, resources: 20, used: 10},
		"namespaces without any resource": {namespaces: 500},
		"as many names as a selector may": {namespaces: 13_000, resources: 1, names: 950 << 10, left: 3148},
	} {
		t.Run(name, func(t *testing.T) {
			given := quotav1.ClusterResourceQuotaSelector{AnnotationSelector: map[string]string{"names": strings.Repeat("n", test.names)}}
			room := roomBeside(given)
			fitted := fit(slicesOf(test.namespaces, test.resources), room)
			text, err := json.Marshal(fitted)
			if err != nil {
				t.Fatal(err)
			}
			if estimated := bytesOf(fitted); len(text) > room || estimated < len(text) {
				t.Errorf("%d bytes, and %d by the estimate; want %d at most, and no less by the estimate", len(text), estimated, room)
			}
			first, last := fitted[0].Status, fitted[len(fitted)-1].Status
			if len(first.Hard) != test.hard || len(first.Used) != test.used || len(last.Used) != test.last || len(fitted) != cmp.Or(test.left, test.namespaces) {
				t.Errorf("got %d slices, the first of %d limits and %d amounts, the last of %d amounts",
					len(fitted), len(first.Hard), len(first.Used), len(last.Used))
			}
		})
	}
}

// An annotation in a selector may have any text. Half a character is stored as another one, so the status would never equal it.
func TestALongSelectorIsCutBetweenCharacters(t *testing.T) {
	got := shortened(strings.Repeat("ä", maxSelector))
	if want := strings.Repeat("ä", maxSelector/2) + "..."; got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
	got = shortened("a" + strings.Repeat("ä", maxSelector))
	if want := "a" + strings.Repeat("ä", maxSelector/2-1) + "..."; got != want {
		t.Errorf("behind an odd byte: got %q at the end", got[len(got)-6:])
	}
}
