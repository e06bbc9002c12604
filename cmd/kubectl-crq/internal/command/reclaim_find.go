// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// finder finds in one namespace what holds quota and does nothing.
type finder struct {
	*reading.Inventory
	meter     meter
	olderThan time.Duration
	limits    []fitting.Limit
	// tightness are the limited resources, the one of which least is left first.
	tightness []tight

	workloads []workload
	byUID     map[types.UID]int                             // workload -> its place in workloads
	pods      map[types.UID][]*corev1.Pod                   // controller -> its pods
	claims    map[types.UID][]*corev1.PersistentVolumeClaim // pod -> claims made for it
	stuck     map[types.UID]struct{}                        // Deployments that are told of already
	living    map[types.UID]int                             // who decides -> how many pods it has that have not ended
}

// tight is a resource of a limit, and what share of it is taken.
type tight struct {
	limit    *fitting.Limit
	resource corev1.ResourceName
	share    float64
}

// held is an object that counts.
type held struct {
	resource schema.GroupResource
	object   client.Object
}

// findIdle returns the findings of each namespace that a quota covers, by name.
func findIdle(inventory *reading.Inventory, meter meter, olderThan time.Duration) (*render.Reclaim, error) {
	found := &render.Reclaim{Namespaces: []render.ReclaimNamespace{}, Notes: reclaimNotes(inventory)}
	parts := inventory.ByNamespace()
	for _, namespace := range slices.Sorted(maps.Keys(parts)) {
		f := newFinder(parts[namespace], meter, olderThan)
		if len(f.limits) == 0 {
			continue
		}
		findings, err := f.find()
		if err != nil {
			return nil, err
		}
		if len(findings) > 0 {
			found.Namespaces = append(found.Namespaces, render.ReclaimNamespace{
				Namespace: namespace, Tightest: f.tightest(), Findings: findings,
			})
		}
	}
	return found, nil
}

func newFinder(inventory *reading.Inventory, meter meter, olderThan time.Duration) *finder {
	f := &finder{
		Inventory: inventory, meter: meter, olderThan: olderThan,
		limits: fitting.LimitsOf(inventory.Limits.Views, inventory.Limits.Quotas),
		pods:   map[types.UID][]*corev1.Pod{}, claims: map[types.UID][]*corev1.PersistentVolumeClaim{},
		stuck: map[types.UID]struct{}{}, living: map[types.UID]int{}, byUID: map[types.UID]int{},
	}
	for i := range f.Pods {
		if controller := metav1.GetControllerOf(&f.Pods[i]); controller != nil {
			f.pods[controller.UID] = append(f.pods[controller.UID], &f.Pods[i])
		}
	}
	for i := range f.Claims {
		if controller := metav1.GetControllerOf(&f.Claims[i]); controller != nil {
			f.claims[controller.UID] = append(f.claims[controller.UID], &f.Claims[i])
		}
	}
	f.findWorkloads()
	f.tightness = tightnessOf(f.limits)
	return f
}

// tightnessOf sorts the limited resources, the one of which least is left first.
func tightnessOf(limits []fitting.Limit) []tight {
	var sorted []tight
	for i := range limits {
		limit := &limits[i]
		for name, hard := range limit.Spec.Hard {
			left, counted := limit.Left[name]
			if !counted {
				continue
			}
			share := 1.0
			if !hard.IsZero() {
				share = 1 - left.AsApproximateFloat64()/hard.AsApproximateFloat64()
			}
			sorted = append(sorted, tight{limit: limit, resource: name, share: share})
		}
	}
	slices.SortFunc(sorted, func(a, b tight) int {
		byName := cmp.Compare(quotaName(a.limit), quotaName(b.limit))
		return cmp.Or(cmp.Compare(b.share, a.share), byName, cmp.Compare(a.resource, b.resource))
	})
	return sorted
}

func (f *finder) tightest() render.Tightest {
	if len(f.tightness) == 0 {
		return render.Tightest{}
	}
	first := f.tightness[0]
	const percent = 100
	return render.Tightest{Quota: quotaName(first.limit), Resource: first.resource, Percent: int(first.share * percent)}
}

// find returns the findings that count against a limit, those that free most of the tightest resource first.
func (f *finder) find() ([]render.Finding, error) {
	var findings []render.Finding
	// Rollouts come before pods: a Deployment that is stuck is told of once.
	for _, look := range []struct {
		needs []string
		find  func() ([]candidate, error)
	}{
		{[]string{"pods", "deployments", "replicasets"}, f.rollouts},
		{[]string{"pods", "replicasets"}, f.idlePods},
		{[]string{"jobs", "pods"}, f.finishedJobs},
		{append(templated(), "services", "endpointslices", "pods"), f.balancers},
		{append(templated(), "persistentvolumeclaims", "pods"), f.unusedClaims},
	} {
		if slices.ContainsFunc(look.needs, func(resource string) bool { return slices.Contains(f.Forbidden, resource) }) {
			continue
		}
		candidates, err := look.find()
		if err != nil {
			return nil, err
		}
		for _, candidate := range candidates {
			if candidate.finding.Frees, err = f.frees(candidate.holds); err != nil {
				return nil, err
			}
			if len(candidate.finding.Frees) > 0 {
				findings = append(findings, candidate.finding)
			}
		}
	}
	slices.SortStableFunc(findings, f.compare)
	return findings, nil
}

// candidate is a finding if what it holds counts.
type candidate struct {
	finding render.Finding
	holds   []held
}

// frees returns what the limits would get back, without those that get nothing.
func (f *finder) frees(holds []held) ([]render.Freed, error) {
	var freed []render.Freed
	for i := range f.limits {
		limit := &f.limits[i]
		total := corev1.ResourceList{}
		for _, one := range holds {
			uses, err := f.meter.uses(one.resource, one.object, limit)
			if err != nil {
				return nil, err
			}
			total = quota.Add(total, uses)
		}
		if len(total) > 0 {
			freed = append(freed, render.Freed{Quota: quotaName(limit), Amounts: total})
		}
	}
	return freed, nil
}

func (f *finder) compare(a, b render.Finding) int {
	for _, one := range f.tightness {
		ofA, ofB := freedOf(a, one), freedOf(b, one)
		if order := ofB.Cmp(ofA); order != 0 {
			return order
		}
	}
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

func freedOf(finding render.Finding, of tight) resource.Quantity {
	for _, freed := range finding.Frees {
		if freed.Quota == quotaName(of.limit) {
			return freed.Amounts[of.resource]
		}
	}
	return resource.Quantity{}
}

// podsHeld returns what goes with pods: the claims that were made for them, too.
func (f *finder) podsHeld(pods []*corev1.Pod) []held {
	var holds []held
	for _, pod := range pods {
		holds = append(holds, held{corev1.Resource("pods"), pod})
		for _, claim := range f.claims[pod.UID] {
			holds = append(holds, held{corev1.Resource("persistentvolumeclaims"), claim})
		}
	}
	return holds
}

// isOld reports whether something has lasted for long enough.
func (f *finder) isOld(since time.Time) bool { return f.meter.now.Sub(since) >= f.olderThan }
