// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestEqualListsAreSharedAndOthersAreNot(t *testing.T) {
	lists := newSharedLists()
	list := lists.share(amountsOf("cpu", "1", "memory", "1Gi"))
	for name, test := range map[string]struct {
		other corev1.ResourceList
		want  bool
	}{
		"the same":                        {amountsOf("memory", "1Gi", "cpu", "1"), true},
		"the same in other words":         {amountsOf("memory", "1024Mi", "cpu", "1000m"), true},
		"zeros make no difference":        {amountsOf("memory", "1Gi", "cpu", "1", "pods", "0"), true},
		"less of one":                     {amountsOf("memory", "1Gi", "cpu", "999m"), false},
		"one more":                        {amountsOf("memory", "1Gi", "cpu", "1", "pods", "1"), false},
		"a name that looks like an entry": {amountsOf("cpu=1 6:memory", "1Gi"), false},
		"or like one without its length":  {amountsOf("cpu=1 :memory", "1Gi"), false},
		"nothing":                         {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lists.share(test.other) == list; got != test.want {
				t.Errorf("want shared %v, got %v", test.want, got)
			}
		})
	}
	runtime.KeepAlive(list)
}

func TestListsAreNotChangedThroughWhatTheyGaveOrGot(t *testing.T) {
	const large = "8000000000000000000000000000" // Too large to be copied with its quantity.
	given := amountsOf("cpu", large)
	list := newSharedLists().share(given)
	taken := list.masked(given)
	for _, amounts := range []corev1.ResourceList{given, taken} {
		amount := amounts["cpu"]
		amount.Add(amountsOf("more", "1")["more"])
	}
	if diff := cmp.Diff(amountsOf("cpu", large), list.masked(given)); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

func TestListsThatNobodyUsesAreForgotten(t *testing.T) {
	lists := newSharedLists()
	kept := lists.share(amountsOf("cpu", "1"))
	for range 3 {
		lists.share(amountsOf("cpu", "2"))
	}
	for range 1000 {
		if lists.len() == 1 {
			break
		}
		runtime.GC()
	}
	if got := lists.len(); got != 1 {
		t.Errorf("want the one list in use, got %d", got)
	}
	if lists.share(amountsOf("cpu", "1")) != kept {
		t.Error("a list in use was forgotten")
	}
}

func TestAListInUseOutlivesTheOneBeforeIt(t *testing.T) {
	lists := newSharedLists()
	list := lists.share(amountsOf("cpu", "1"))
	lists.forget(list.key()) // As after an earlier list with the same amounts.
	if lists.share(amountsOf("cpu", "1")) != list {
		t.Error("a list in use was forgotten")
	}
}

func (s *sharedLists) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byKey)
}
