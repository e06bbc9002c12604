// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

// findings are what there is to warn of. An empty field is nothing.
type findings struct {
	// idleSelector selects no namespace.
	idleSelector string
	// protected namespaces are selected.
	protected []string
	// openShift has a quota of the same name that selects these namespaces too.
	openShift []string
	// belowUsed are the limits, as in "pods: 3/1".
	belowUsed []string
	// belowPeak are the limits below what was used at most, as in "pods: 30/20".
	belowPeak []string
	// unlimitable names are used by nothing.
	unlimitable []string
	// unserved names count what the cluster doesn't serve.
	unserved []string
	// clusterScoped names count what doesn't live in namespaces.
	clusterScoped []string
}

// The API server may cut a warning at 256 bytes, and nobody reads that much:
// each is kept below 200. So much of a warning can be taken by what it names,
// besides the "and 12 more".
const room = 60

// warnings returns one line for each finding, always in the same order.
func (f *findings) warnings() admission.Warnings {
	var warnings admission.Warnings
	for _, warning := range []string{
		f.selectsNothing(), f.selectsProtected(), f.selectedByOpenShift(),
		f.limitsBelowUsed(), f.limitsBelowPeak(), f.limitsNothing(), f.limitsUnserved(), f.limitsClusterScoped(),
	} {
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	return warnings
}

func (f *findings) selectsNothing() string {
	if f.idleSelector == "" {
		return ""
	}
	return fmt.Sprintf("spec.selector selects no namespace (%s): nothing is limited until one matches; "+
		"label namespaces, or correct the selector", cut(f.idleSelector))
}

func (f *findings) selectsProtected() string {
	if len(f.protected) == 0 {
		return ""
	}
	return fmt.Sprintf("spec.selector selects protected namespaces, where nothing is ever refused: "+
		"exclude %s, such as by the label kubernetes.io/metadata.name", list(f.protected))
}

func (f *findings) selectedByOpenShift() string {
	if len(f.openShift) == 0 {
		return ""
	}
	return fmt.Sprintf("OpenShift's ClusterResourceQuota of the same name selects %s too: both limit what is there; "+
		"delete that one once this one is enforced", list(f.openShift))
}

func (f *findings) limitsBelowUsed() string {
	if len(f.belowUsed) == 0 {
		return ""
	}
	return fmt.Sprintf("spec.quota.hard is below what is used (%s): no more is admitted until less is used; "+
		"delete something, or raise the limit", list(f.belowUsed))
}

func (f *findings) limitsBelowPeak() string {
	if len(f.belowPeak) == 0 {
		return ""
	}
	return fmt.Sprintf("spec.quota.hard is below the peak of the last 30 days (%s): it fits what is used now, and not what was; "+
		"see status.history", list(f.belowPeak))
}

func (f *findings) limitsNothing() string {
	if len(f.unlimitable) == 0 {
		return ""
	}
	return fmt.Sprintf("Kubernetes keeps no quota on %s: correct spec.quota.hard; an extended resource is "+
		"requests.DOMAIN/NAME, a count is count/RESOURCE.GROUP", list(f.unlimitable))
}

func (f *findings) limitsUnserved() string {
	if len(f.unserved) == 0 {
		return ""
	}
	return fmt.Sprintf("the cluster doesn't serve what is limited by %s: correct spec.quota.hard, or install its "+
		"CustomResourceDefinition", list(f.unserved))
}

func (f *findings) limitsClusterScoped() string {
	if len(f.clusterScoped) == 0 {
		return ""
	}
	return fmt.Sprintf("%s can't be limited, for its objects live outside of namespaces: remove it from spec.quota.hard",
		list(f.clusterScoped))
}

// selectsAnew reports whether the request says which namespaces are selected.
func selectsAnew(previous, current *quotav1.ClusterResourceQuota) bool {
	return previous == nil || !apiequality.Semantic.DeepEqual(previous.Spec.Selector, current.Spec.Selector)
}

// added returns the limits whose names are new.
func added(previous, current *quotav1.ClusterResourceQuota) corev1.ResourceList {
	counted := definition.Counted(current.Spec)
	if previous == nil {
		return counted
	}
	hard := maps.Clone(counted)
	for name := range definition.Counted(previous.Spec) {
		delete(hard, name)
	}
	return hard
}

// belowUsed returns the limits that the request sets below what its status says
// is used. A new quota has none: what it will count is not known before it is
// counted, which the status of other quotas doesn't tell, for they select other
// namespaces, scopes and names. Nor is it known for a selector or scopes that
// change, or as long as the status describes an older spec.
func belowUsed(previous, current *quotav1.ClusterResourceQuota) []string {
	if previous == nil || previous.Status.ObservedGeneration != previous.Generation || countsAnew(previous, current) {
		return nil
	}
	var below []string
	for _, name := range slices.Sorted(maps.Keys(current.Spec.Quota.Hard)) {
		limit, used := current.Spec.Quota.Hard[name], previous.Status.Total.Used[name]
		before, limited := previous.Spec.Quota.Hard[name]
		if changed := !limited || !before.Equal(limit); changed && limit.Cmp(used) < 0 {
			below = append(below, fmt.Sprintf("%s: %s/%s", name, used.String(), limit.String()))
		}
	}
	return below
}

// belowPeak returns the limits that the request adds or lowers, to below what was used and reserved at once in the last
// 30 days. Those below what is used are left to belowUsed.
func belowPeak(previous, current *quotav1.ClusterResourceQuota) []string {
	if previous == nil || countsAnew(previous, current) {
		return nil
	}
	var below []string
	for i := range previous.Status.History { // sorted
		seen := &previous.Status.History[i]
		limit, limited := current.Spec.Quota.Hard[seen.Resource]
		before, wasLimited := previous.Spec.Quota.Hard[seen.Resource]
		lowered, used := limited && (!wasLimited || limit.Cmp(before) < 0), previous.Status.Total.Used[seen.Resource]
		if lowered && limit.Cmp(seen.Peak.Month) < 0 && limit.Cmp(used) >= 0 {
			below = append(below, fmt.Sprintf("%s: %s/%s", seen.Resource, seen.Peak.Month.String(), limit.String()))
		}
	}
	return below
}

// countsAnew reports whether the request changes which objects count.
func countsAnew(previous, current *quotav1.ClusterResourceQuota) bool {
	return selectsAnew(previous, current) ||
		!apiequality.Semantic.DeepEqual(previous.Spec.Quota.ScopeSelector, current.Spec.Quota.ScopeSelector) // scopes can't be changed
}

// misplaced returns the names all of whose resources the cluster doesn't serve,
// and those whose resources live outside of namespaces at best. An unknown place
// may be in namespaces.
func misplaced(
	tracked map[schema.GroupResource][]corev1.ResourceName, places map[schema.GroupResource]Place,
) (unserved, clusterScoped []string) {
	// name -> the places of the resources that use it
	of := map[corev1.ResourceName][]Place{}
	for resource, names := range tracked {
		for _, name := range names {
			of[name] = append(of[name], places[resource])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		elsewhere := func(place Place) bool { return place != Nowhere && place != OutsideNamespaces }
		switch {
		case slices.ContainsFunc(of[name], elsewhere):
		case slices.Contains(of[name], OutsideNamespaces):
			clusterScoped = append(clusterScoped, string(name))
		default:
			unserved = append(unserved, string(name))
		}
	}
	return unserved, clusterScoped
}

func texts(names []corev1.ResourceName) []string {
	texts := make([]string, 0, len(names))
	for _, name := range names {
		texts = append(texts, string(name))
	}
	return texts
}

// list puts as many items into a line as there is room for, but at least one,
// and tells how many there are besides.
func list(items []string) string {
	line := cut(items[0])
	for i, item := range items[1:] {
		if len(line)+len(", ")+len(item) > room {
			return fmt.Sprintf("%s and %d more", line, len(items)-1-i)
		}
		line += ", " + item
	}
	return line
}

// cut shortens a text to what there is room for, and takes out what would
// garble a line: an annotation's value may be anything.
func cut(text string) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	if len(printable) <= room {
		return printable
	}
	const ellipsis = "..."
	return strings.ToValidUTF8(printable[:room-len(ellipsis)], "") + ellipsis
}
