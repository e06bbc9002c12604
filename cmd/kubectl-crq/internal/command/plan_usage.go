// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// usage is what is used of one quota's resources, and how that is known. It lacks what isn't known.
type usage struct {
	used corev1.ResourceList
	from map[corev1.ResourceName]render.UsedFrom
	// unread are resources of the API that would have to be read to know.
	unread sets.Set[string]
}

// count is a quota of which something has to be counted.
type count struct {
	limit      fitting.Limit // its hard has only what is counted
	namespaces sets.Set[string]
	into       *usage
	// lacking are the names that nothing can be said of, because a resource may not be read.
	lacking sets.Set[corev1.ResourceName]
}

// usages returns what is used of each quota: as its status says if it counts the same objects, and else as they are
// counted now. What may not be read is summed from the slices of other quotas, if they have it.
func (p *planner) usages(ctx context.Context, cluster client.Client) ([]usage, error) {
	found := make([]usage, len(p.revised))
	var counts []*count
	for i, revised := range p.revised {
		found[i] = fromStatus(revised)
		missing := corev1.ResourceList{}
		for name, hard := range revised.then.Spec.Quota.Hard {
			if _, known := found[i].from[name]; !known {
				missing[name] = hard
			}
		}
		if len(missing) == 0 || !p.namespacesKnown() {
			continue
		}
		made := &count{namespaces: sets.New(p.selected(revised.then)...), into: &found[i], lacking: sets.New[corev1.ResourceName]()}
		made.limit = fitting.Limit{Source: fitting.Shared, Name: revised.then.Name, Spec: corev1.ResourceQuotaSpec(revised.then.Spec.Quota)}
		made.limit.Spec.Hard = missing
		counts = append(counts, made)
	}
	if err := p.count(ctx, cluster, counts); err != nil {
		return nil, err
	}
	for i, revised := range p.revised {
		if p.namespacesKnown() {
			p.fromOthers(revised, &found[i])
		}
	}
	return found, nil
}

func fromStatus(of redefinition) usage {
	found := usage{used: corev1.ResourceList{}, from: map[corev1.ResourceName]render.UsedFrom{}, unread: sets.New[string]()}
	if !of.countsTheSame() || of.live.Status.ObservedGeneration != of.live.Generation {
		return found
	}
	for name := range of.then.Spec.Quota.Hard {
		if _, counted := of.live.Status.Total.Used[name]; counted {
			found.used[name], found.from[name] = chargedNow(of.live, name), render.FromStatus
		}
	}
	return found
}

// count lists each resource once, for all quotas that it matters to.
func (p *planner) count(ctx context.Context, cluster client.Client, counts []*count) error {
	wanted := map[schema.GroupResource][]*count{}
	for _, one := range counts {
		tracked, _ := p.meter.evaluators.Resources(one.limit.Spec.Hard)
		for resource := range tracked {
			wanted[resource] = append(wanted[resource], one)
		}
	}
	byName := func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) }
	for _, resource := range slices.SortedFunc(maps.Keys(wanted), byName) {
		counting := wanted[resource]
		visited, err := p.countResource(ctx, cluster, resource, counting)
		if err != nil {
			return err
		}
		if visited == reading.VisitNotServed {
			p.note("The cluster doesn't serve " + resource.String() + ", so none of it exists.")
		}
		if visited == reading.VisitForbidden {
			for _, one := range counting {
				tracked, _ := p.meter.evaluators.Resources(one.limit.Spec.Hard)
				one.lacking.Insert(tracked[resource]...)
				one.into.unread.Insert(resource.String())
			}
		}
	}
	for _, one := range counts {
		for name := range one.limit.Spec.Hard {
			if !one.lacking.Has(name) {
				one.into.used[name], one.into.from[name] = sumOf(one.into.used[name]), render.FromCount
				continue
			}
			delete(one.into.used, name)
		}
	}
	return nil
}

func (p *planner) countResource(
	ctx context.Context, cluster client.Client, resource schema.GroupResource, counting []*count,
) (reading.Visited, error) {
	namespaces := sets.New[string]()
	for _, one := range counting {
		namespaces = namespaces.Union(one.namespaces)
	}
	return reading.Visit(ctx, cluster, resource, sets.List(namespaces), func(object client.Object) error {
		for _, one := range counting {
			if !one.namespaces.Has(object.GetNamespace()) {
				continue
			}
			uses, err := p.meter.uses(resource, object, &one.limit)
			if err != nil {
				return err
			}
			for name, amount := range uses {
				one.into.used[name] = sumOf(one.into.used[name], amount)
			}
		}
		return nil
	})
}

// fromOthers sums what quotas with the same scopes counted in each namespace.
func (p *planner) fromOthers(of redefinition, into *usage) {
	namespaces := p.selected(of.then)
	for name := range of.then.Spec.Quota.Hard {
		if _, known := into.from[name]; known {
			continue
		}
		sum, complete := resource.Quantity{}, true
		for _, namespace := range namespaces {
			used, known := p.sliceOf(of, namespace, name)
			complete = complete && known
			sum.Add(used)
		}
		if complete {
			into.used[name], into.from[name] = sum, render.FromOthers
		}
	}
}

func (p *planner) sliceOf(of redefinition, namespace string, name corev1.ResourceName) (resource.Quantity, bool) {
	for i := range p.live {
		quota := &p.live[i]
		if quota.Status.ObservedGeneration != quota.Generation || !of.sameObjects(quota) {
			continue
		}
		for _, slice := range quota.Status.Namespaces {
			if used, known := slice.Status.Used[name]; known && slice.Namespace == namespace {
				return used, true
			}
		}
	}
	return resource.Quantity{}, false
}

// canonical returns the name that Kubernetes takes for the same: cpu is requests.cpu.
func canonical(name corev1.ResourceName) corev1.ResourceName {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return corev1.DefaultResourceRequestsPrefix + name
	case "count/pods":
		return corev1.ResourcePods
	default:
		return name
	}
}

// limitsByName returns the limits by their canonical names; the lower one of two of the same.
func limitsByName(hard corev1.ResourceList) corev1.ResourceList {
	limits := corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		limit := hard[name]
		if other, twice := limits[canonical(name)]; !twice || limit.Cmp(other) < 0 {
			limits[canonical(name)] = limit
		}
	}
	return limits
}

// ofNodes returns the name by which nodes have what a quota limits; empty if they have none.
func ofNodes(name corev1.ResourceName) corev1.ResourceName {
	if name == corev1.ResourcePods {
		return name
	}
	requested, isRequest := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	if !isRequest || requested == string(corev1.ResourceStorage) {
		return ""
	}
	return corev1.ResourceName(requested)
}

// sums returns all limits together, of what nodes have.
func (p *planner) sums() []render.PlanSum {
	now, then := sumOfLimits(p.live), sumOfLimits(p.then)
	sums := make([]render.PlanSum, 0, len(then))
	for _, name := range slices.Sorted(maps.Keys(then)) {
		sum := render.PlanSum{Resource: name, Now: now[name], Then: then[name]}
		if p.nodesKnown() {
			allocatable := resource.Quantity{Format: sum.Then.Format}
			for i := range p.ground.Nodes {
				allocatable.Add(p.ground.Nodes[i].Status.Allocatable[ofNodes(name)])
			}
			sum.Allocatable = &allocatable
		}
		sums = append(sums, sum)
	}
	return sums
}

func sumOfLimits(quotas []quotav1.ClusterResourceQuota) corev1.ResourceList {
	sums := corev1.ResourceList{}
	for i := range quotas {
		for name, limit := range limitsByName(quotas[i].Spec.Quota.Hard) {
			if ofNodes(name) != "" {
				sums[name] = sumOf(sums[name], limit)
			}
		}
	}
	return sums
}
