// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/selection"
)

// warnTimeout bounds all reads for the warnings about one request: who writes a
// quota shouldn't have to wait for advice.
const warnTimeout = 2 * time.Second

// Namespaces knows the namespaces of the cluster.
type Namespaces interface {
	// Selected returns the names of those that every selector selects, sorted.
	Selected(ctx context.Context, selectors ...selection.Selector) ([]string, error)
}

// Evaluators know what uses what a name limits.
type Evaluators interface {
	// Resources returns the resources that use something of these names, each
	// with the names, and the names that nothing uses.
	Resources(hard corev1.ResourceList) (
		tracked map[schema.GroupResource][]corev1.ResourceName, unlimitable []corev1.ResourceName)
}

// Place is where objects of a resource live.
type Place int

const (
	// Nowhere: the cluster doesn't serve the resource.
	Nowhere Place = iota + 1
	// InNamespaces is where a quota can limit it.
	InNamespaces
	// OutsideNamespaces: it is cluster-scoped.
	OutsideNamespaces
)

// Cluster tells what the API server has now.
type Cluster interface {
	// Places tells where the resources live. What can't be told now is missing.
	Places(ctx context.Context, resources []schema.GroupResource) (map[schema.GroupResource]Place, error)
	// OpenShiftSelector returns the selector of OpenShift's ClusterResourceQuota
	// of this name, if there is one.
	OpenShiftSelector(ctx context.Context, name string) (selector quotav1.ClusterResourceQuotaSelector, found bool, err error)
}

// Warner warns of what is legal in a quota and probably wrong.
type Warner struct {
	namespaces Namespaces
	evaluators Evaluators
	cluster    Cluster
	protected  []string
}

// NewWarner makes a Warner. Protected namespaces are those that no quota limits.
func NewWarner(namespaces Namespaces, evaluators Evaluators, cluster Cluster, protected []string) *Warner {
	return &Warner{namespaces: namespaces, evaluators: evaluators, cluster: cluster, protected: protected}
}

// Warnings are about what a request changes: previous is nil for a new quota. Of what it can't find out in
// time it doesn't warn, and it never fails the request.
func (w *Warner) Warnings(ctx context.Context, previous, current *quotav1.ClusterResourceQuota) admission.Warnings {
	ctx, cancel := context.WithTimeout(ctx, warnTimeout)
	defer cancel()
	found := findings{belowUsed: belowUsed(previous, current), belowPeak: belowPeak(previous, current)}
	if selectsAnew(previous, current) {
		w.findNamespaces(ctx, current, &found)
	}
	w.findResources(ctx, added(previous, current), &found)
	return found.warnings()
}

// findNamespaces reads what there is to say about the selector.
func (w *Warner) findNamespaces(ctx context.Context, quota *quotav1.ClusterResourceQuota, found *findings) {
	ours, err := selection.Compile(quota.Spec.Selector)
	if err != nil {
		unknown(ctx, "which namespaces are selected", err)
		return
	}
	selected, err := w.namespaces.Selected(ctx, ours)
	if err != nil {
		unknown(ctx, "which namespaces are selected", err)
		return
	}
	if len(selected) == 0 {
		found.idleSelector = ours.String()
		return
	}
	for _, namespace := range selected {
		if slices.Contains(w.protected, namespace) {
			found.protected = append(found.protected, namespace)
		}
	}
	found.openShift, err = w.sharedWithOpenShift(ctx, quota.Name, ours)
	if err != nil {
		unknown(ctx, "whether OpenShift has a quota of this name", err)
	}
}

// sharedWithOpenShift returns the namespaces that OpenShift's quota of this name
// selects too.
func (w *Warner) sharedWithOpenShift(ctx context.Context, name string, ours selection.Selector) ([]string, error) {
	selector, ok, err := w.cluster.OpenShiftSelector(ctx, name)
	if err != nil || !ok {
		return nil, err
	}
	theirs, err := selection.Compile(selector)
	if err != nil {
		return nil, err
	}
	return w.namespaces.Selected(ctx, ours, theirs)
}

// findResources reads what there is to say about names in spec.quota.hard and spec.trial.hard.
func (w *Warner) findResources(ctx context.Context, hard corev1.ResourceList, found *findings) {
	if len(hard) == 0 {
		return
	}
	tracked, unlimitable := w.evaluators.Resources(hard)
	found.unlimitable = texts(unlimitable)
	places, err := w.cluster.Places(ctx, slices.Collect(maps.Keys(tracked)))
	if err != nil {
		unknown(ctx, "what the cluster serves", err)
		return
	}
	found.unserved, found.clusterScoped = misplaced(tracked, places)
}

func unknown(ctx context.Context, what string, err error) {
	log.FromContext(ctx).V(1).Info("Can't tell what to warn of", "unknown", what, "error", err.Error())
}
