// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// findings are differences, a line each.
type findings []error

func (f *findings) addf(where, format string, args ...any) {
	*f = append(*f, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}

// compare finds every resource of which another amount is given than wanted.
func (f *findings) compare(where string, want, given corev1.ResourceList) {
	for _, name := range union(want, given) {
		wanted, limited := want[name]
		got, found := given[name]
		switch {
		case !found:
			f.addf(where, "%s is missing, want %s", name, wanted.String())
		case !limited:
			f.addf(where, "%s is %s, and the quota doesn't limit it", name, got.String())
		case wanted.Cmp(got) != 0:
			f.addf(where, "%s is %s, want %s", name, got.String(), wanted.String())
		}
	}
}

// wantNone finds every resource of which there is anything.
func (f *findings) wantNone(where string, given corev1.ResourceList) {
	for _, name := range sortedNames(quota.RemoveZeros(given)) {
		got := given[name]
		f.addf(where, "%s is %s, want none", name, got.String())
	}
}

// available is what a view says can still be created: nothing where more lives
// than is allowed.
func available(lives QuotaReport) corev1.ResourceList {
	return quota.SubtractWithNonNegativeResult(lives.Hard, lives.Lives)
}

func union[K cmp.Ordered, A, B any](a map[K]A, b map[K]B) []K {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func sortedKeys[K cmp.Ordered, V any](of map[K]V) []K {
	return slices.Sorted(maps.Keys(of))
}
