// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	countPrefix        = "count/"
	limitsPrefix       = "limits."
	storageClassSuffix = ".storageclass.storage.k8s.io/"
	deviceClassSuffix  = ".deviceclass.resource.k8s.io/"
	// maxTypos is how many letters the nearest name may differ in, and one in lettersForTypo of its own.
	maxTypos, lettersForTypo = 2, 3
)

// Misnomer is a name that limits nothing, and its correction; empty if nothing is near.
type Misnomer struct {
	Name       corev1.ResourceName
	Correction string
}

// String names it for people, as in "count/jobs (write count/jobs.batch)".
func (m Misnomer) String() string {
	if m.Correction == "" {
		return string(m.Name)
	}
	return fmt.Sprintf("%s (write %s)", m.Name, m.Correction)
}

// Correction returns the replacement for a name that limits nothing in a cluster that serves these resources in
// namespaces: another name, or the field for a scope. It is empty if nothing is near.
func (e *Evaluators) Correction(name corev1.ResourceName, served []schema.GroupResource) string {
	if scope := name[strings.LastIndex(string(name), "/")+1:]; isScope(scope) {
		return "spec.quota.scopes: [" + string(scope) + "]"
	}
	for _, candidate := range candidates(string(name), served) {
		resource, isCount := plainCount(corev1.ResourceName(candidate))
		limits := slices.Contains(served, resource)
		if !isCount {
			limits = len(e.resourcesUsing(corev1.ResourceName(candidate))) > 0
		}
		if limits && candidate != string(name) {
			return candidate
		}
	}
	return ""
}

func isScope(name corev1.ResourceName) bool {
	switch corev1.ResourceQuotaScope(name) {
	case corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating,
		corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass,
		corev1.ResourceQuotaScopeCrossNamespacePodAffinity, corev1.ResourceQuotaScopeVolumeAttributesClass:
		return true
	}
	return false
}

// candidates are names that may be meant, the likeliest first.
func candidates(name string, served []schema.GroupResource) []string {
	if class, _, ok := strings.Cut(name, storageClassSuffix); ok {
		return nearest(name, class+storageClassSuffix+"requests.storage", class+storageClassSuffix+"persistentvolumeclaims")
	}
	if class, _, ok := strings.Cut(name, deviceClassSuffix); ok {
		return []string{class + deviceClassSuffix + "devices"}
	}
	counted, isCount := strings.CutPrefix(name, countPrefix)
	if !isCount {
		group, resource, _ := strings.Cut(name, "/")
		return []string{
			countPrefix + schema.GroupResource{Group: group, Resource: resource}.String(),
			corev1.DefaultResourceRequestsPrefix + strings.TrimPrefix(name, limitsPrefix),
		}
	}
	given := schema.ParseGroupResource(counted)
	var moved, alike []string
	for _, resource := range served {
		candidate := countPrefix + resource.String()
		if resource.Resource == given.Resource && mayBeMeant(given.Group, resource.Group) {
			moved = append(moved, candidate)
		}
		if typos(name, candidate) <= min(maxTypos, len(counted)/lettersForTypo) {
			alike = append(alike, candidate)
		}
	}
	// Kubernetes' own groups have shorter names than those of others.
	slices.SortFunc(moved, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return slices.Concat([]string{counted}, moved, nearest(name, alike...))
}

// mayBeMeant reports whether a group that is served may be meant by a given one. Groups of Kubernetes that are gone have no
// domain, and others are part of each other. Any other group with a domain may be installed later.
func mayBeMeant(given, served string) bool {
	return !strings.Contains(given, ".") || strings.HasSuffix(given, "."+served) || strings.HasPrefix(served, given+".")
}

// nearest returns the candidates, those with the fewest typos first.
func nearest(name string, candidates ...string) []string {
	slices.SortFunc(candidates, func(a, b string) int {
		return cmp.Or(cmp.Compare(typos(name, a), typos(name, b)), cmp.Compare(a, b))
	})
	return candidates
}

// typos returns how many letters must be added, removed or changed to make one text the other.
func typos(a, b string) int {
	row := make([]int, len(b)+1) // row[j] is that from a[:i] to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
