// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const (
	// largeSelector is above which size of a selector, in bytes, there is a warning. About 15 of that size fit into the webhook
	// configuration, and others are widened.
	largeSelector = 64 << 10
	// maxSelector is how large a selector may be: etcd takes 1.5 MiB for a quota and its status.
	maxSelector = 1 << 20
)

func sizeOf(selector quotav1.ClusterResourceQuotaSelector) int {
	text, _ := json.Marshal(selector) //nolint:errchkjson // it has been read from JSON
	return len(text)
}

// warnTimeout bounds all that is read for the warnings about one request, so that they come within a second.
const warnTimeout = 900 * time.Millisecond

// Namespaces knows the namespaces of the cluster.
type Namespaces interface {
	// Selected returns the names of the namespaces that every selector selects,
	// sorted.
	Selected(ctx context.Context, selectors ...definition.Selector) ([]string, error)
	// Known returns the quotas that are known to cover a namespace, from memory.
	Known(namespace string) (namespaces.Covered, bool)
}

// Served is how the API server serves a resource. The zero value means that it doesn't.
type Served struct {
	Version    string
	Namespaced bool
}

// Cluster returns the API server's present objects and resources.
type Cluster interface {
	// Served returns how each resource is served that the API server knows. These resources are missing only if
	// that isn't known now.
	Served(ctx context.Context, resources []schema.GroupResource) (map[schema.GroupResource]Served, error)
	// OpenShiftSelector returns the selector of OpenShift's ClusterResourceQuota
	// of this name, if there is one.
	OpenShiftSelector(ctx context.Context, name string) (selector quotav1.ClusterResourceQuotaSelector, found bool, err error)
	// Quotas returns all quotas, which callers must not change.
	Quotas(ctx context.Context) ([]quotav1.ClusterResourceQuota, error)
	// Visit calls visit for each object of a resource in a namespace; in all of them if it is empty.
	Visit(ctx context.Context, resource schema.GroupVersionResource, namespace string, visit func(client.Object) error) error
}

// Warner warns of legal parts of a quota that are probably wrong. In a dry run it also shows the quota's effect.
type Warner struct {
	Clock      clock.PassiveClock
	Namespaces Namespaces
	Evaluators *evaluation.Evaluators
	Cluster    Cluster
	// Protected are the namespaces that no quota limits.
	Protected []string
}

// Warnings are about the changes of a request: previous is nil for a new quota. One line names the questions that
// couldn't be answered in time. No failure fails the request.
//
// Only a dry run gets remarks that are no mistakes, because tools take a warning for one. Nor is anything counted for
// another request: a tool may apply hundreds of quotas at once, and their status has the use a moment later.
func (w *Warner) Warnings(ctx context.Context, previous, current *quotav1.ClusterResourceQuota) admission.Warnings {
	ctx, cancel := context.WithTimeout(ctx, warnTimeout)
	defer cancel()
	asked := inquiry{Warner: w, previous: previous, current: current, dryRun: isDryRun(ctx)}
	asked.findings.mode = modeOf(current)
	asked.findings.newMode = asked.dryRun && (previous == nil || modeOf(previous) != modeOf(current))
	asked.findings.belowPeak = belowPeak(previous, current)
	added := added(previous, current)
	used, uncounted := known(previous, current)
	if !asked.dryRun {
		uncounted = nil
	}
	asked.findServed(ctx, added, uncounted)
	asked.findNames(added)
	selected := asked.findNamespaces(ctx, len(uncounted) > 0)
	if asked.dryRun {
		asked.findOverlaps(ctx, selected, added)
		maps.Copy(used, asked.usage(ctx, uncounted, selected))
	}
	asked.findings.above = excesses(used, current.Spec.Quota.Hard)
	return asked.findings.warnings()
}

// inquiry is one request.
type inquiry struct {
	*Warner
	previous, current *quotav1.ClusterResourceQuota
	dryRun            bool
	// served has the resources that the API server serves; nil if they aren't
	// known.
	served   map[schema.GroupResource]Served
	findings findings
}

// unknown notes a question that couldn't be answered.
func (i *inquiry) unknown(ctx context.Context, what string, err error) {
	i.findings.unknown = append(i.findings.unknown, what)
	log.FromContext(ctx).V(1).Info("Can't tell what to warn of", "unknown", what, "error", err.Error())
}

// findServed lists the served resources if some names are new or have to be
// counted.
func (i *inquiry) findServed(ctx context.Context, added, uncounted corev1.ResourceList) {
	names := maps.Clone(added)
	maps.Copy(names, uncounted)
	if len(names) == 0 {
		return
	}
	tracked, _ := i.Evaluators.Resources(names)
	served, err := i.Cluster.Served(ctx, slices.Collect(maps.Keys(tracked)))
	if err != nil {
		i.unknown(ctx, outcomes.ServedResources.Text(), err)
	}
	i.served = served
}

// findNames finds names that limit nothing.
func (i *inquiry) findNames(added corev1.ResourceList) {
	var namespaced []schema.GroupResource
	for resource, how := range i.served {
		if how.Namespaced {
			namespaced = append(namespaced, resource)
		}
	}
	tracked, unlimitable := i.Evaluators.Resources(added)
	unserved, clusterScoped := misplaced(tracked, i.served)
	for _, name := range clusterScoped {
		i.findings.limitNothing = append(i.findings.limitNothing, outcomes.OutsideOfNamespaces.Text(name))
	}
	for _, name := range slices.Concat(unlimitable, unserved) {
		misnomer := evaluation.Misnomer{Name: name, Correction: i.Evaluators.Correction(name, namespaced)}
		if misnomer.Correction == "" && slices.Contains(unserved, name) {
			i.findings.unserved = append(i.findings.unserved, string(name))
			continue
		}
		i.findings.limitNothing = append(i.findings.limitNothing, misnomer.String())
	}
}

// misplaced returns the names all of whose resources the cluster doesn't serve, and those whose resources live
// outside of namespaces at best. If it isn't known how a resource is served, it may be in namespaces.
func misplaced(
	tracked map[schema.GroupResource][]corev1.ResourceName, served map[schema.GroupResource]Served,
) (unserved, clusterScoped []corev1.ResourceName) {
	// name -> how the resources that use it are served
	of := map[corev1.ResourceName][]*Served{}
	for resource, names := range tracked {
		how, known := served[resource]
		for _, name := range names {
			if known {
				of[name] = append(of[name], &how)
			} else {
				of[name] = append(of[name], nil)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		switch {
		case slices.ContainsFunc(of[name], func(how *Served) bool { return how == nil || how.Namespaced }):
		case slices.ContainsFunc(of[name], func(how *Served) bool { return *how != Served{} }):
			clusterScoped = append(clusterScoped, name)
		default:
			unserved = append(unserved, name)
		}
	}
	return unserved, clusterScoped
}

// findNamespaces returns the selected namespaces if they are needed, and finds the remarks on a new selector.
func (i *inquiry) findNamespaces(ctx context.Context, needed bool) []string {
	anew := selectsAnew(i.previous, i.current)
	if !anew && !needed {
		return nil
	}
	ours, err := definition.CompileSelector(i.current.Spec.Selector)
	var selected []string
	if err == nil {
		selected, err = i.Namespaces.Selected(ctx, ours)
	}
	if err != nil {
		i.unknown(ctx, outcomes.SelectedNamespaces.Text(), err)
		return nil
	}
	if !anew {
		return selected
	}
	return i.judgeSelector(ctx, ours, selected)
}

// judgeSelector finds the remarks on a new selector. It returns the selected namespaces.
func (i *inquiry) judgeSelector(ctx context.Context, ours definition.Selector, selected []string) []string {
	if size := sizeOf(i.current.Spec.Selector); size > largeSelector {
		i.findings.largeSelector = fmt.Sprintf("%d KiB", size>>10)
	}
	if len(selected) == 0 {
		i.findings.idleSelector = ours.String()
		return nil
	}
	if i.dryRun {
		i.findings.selected = selected
	}
	for _, namespace := range selected {
		if slices.Contains(i.Protected, namespace) {
			i.findings.protected = append(i.findings.protected, namespace)
		}
	}
	var err error
	if i.findings.openShift, err = i.sharedWithOpenShift(ctx, ours); err != nil {
		i.unknown(ctx, outcomes.OpenShiftName.Text(), err)
	}
	return selected
}

// sharedWithOpenShift returns the namespaces that OpenShift's quota of this name
// selects too.
func (i *inquiry) sharedWithOpenShift(ctx context.Context, ours definition.Selector) ([]string, error) {
	selector, ok, err := i.Cluster.OpenShiftSelector(ctx, i.current.Name)
	if err != nil || !ok {
		return nil, err
	}
	theirs, err := definition.CompileSelector(selector)
	if err != nil {
		return nil, err
	}
	return i.Namespaces.Selected(ctx, ours, theirs)
}

// findOverlaps finds the other quotas that limit the same. A quota of which neither the selector nor the names are new
// has them as before.
func (i *inquiry) findOverlaps(ctx context.Context, selected []string, added corev1.ResourceList) {
	ours := added
	if selectsAnew(i.previous, i.current) {
		ours = i.current.Spec.Quota.Hard
	}
	shared := map[string][]string{} // quota -> the names that it limits too
	count := map[string]int{}       // quota -> in how many namespaces
	for _, namespace := range selected {
		if ctx.Err() != nil {
			i.unknown(ctx, outcomes.OverlappingQuotas.Text(), ctx.Err())
			return
		}
		covered, _ := i.Namespaces.Known(namespace)
		for d := range covered.Definitions {
			other := &covered.Definitions[d]
			name := other.Quota.Name
			if _, seen := shared[name]; !seen {
				shared[name] = sharedNames(ours, other.Quota.Spec.Hard)
			}
			if name != i.current.Name && len(shared[name]) > 0 {
				count[name]++
			}
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	}) {
		where := "1 namespace"
		if count[name] > 1 {
			where = fmt.Sprintf("%d namespaces", count[name])
		}
		i.findings.overlaps = append(i.findings.overlaps, fmt.Sprintf("%s (%s in %s)", name, strings.Join(shared[name], ", "), where))
	}
}

func sharedNames(ours, theirs corev1.ResourceList) []string {
	var shared []string
	for name := range ours {
		for other := range theirs {
			if canonical(name) == canonical(other) {
				shared = append(shared, string(name))
			}
		}
	}
	slices.Sort(shared)
	return slices.Compact(shared)
}

// canonical returns the longer of two names that limit the same.
func canonical(name corev1.ResourceName) corev1.ResourceName {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return corev1.DefaultResourceRequestsPrefix + name
	default:
		return name
	}
}

func modeOf(quota *quotav1.ClusterResourceQuota) quotav1.EnforcementMode {
	return cmp.Or(quota.Spec.Enforcement.Mode, quotav1.EnforcementDeny)
}

// selectsAnew reports whether the request says which namespaces are selected.
func selectsAnew(previous, current *quotav1.ClusterResourceQuota) bool {
	return previous == nil || !apiequality.Semantic.DeepEqual(previous.Spec.Selector, current.Spec.Selector)
}

// countsAnew reports whether the request changes which objects count.
func countsAnew(previous, current *quotav1.ClusterResourceQuota) bool {
	return selectsAnew(previous, current) || !sameObjects(previous, current)
}

// sameObjects reports whether two quotas count the same objects of a namespace that both select.
func sameObjects(a, b *quotav1.ClusterResourceQuota) bool {
	return sets.New(a.Spec.Quota.Scopes...).Equal(sets.New(b.Spec.Quota.Scopes...)) &&
		apiequality.Semantic.DeepEqual(a.Spec.Quota.ScopeSelector, b.Spec.Quota.ScopeSelector)
}

// added returns the limits whose names are new.
func added(previous, current *quotav1.ClusterResourceQuota) corev1.ResourceList {
	added := corev1.ResourceList{}
	maps.Copy(added, current.Spec.Quota.Hard)
	if previous != nil {
		for name := range previous.Spec.Quota.Hard {
			delete(added, name)
		}
	}
	return added
}
