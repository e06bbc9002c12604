// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// protectedByDefault are the namespaces that are never asked about, unless the operator is told others.
func protectedByDefault() []string { return []string{"kube-system", "kube-public", "kube-node-lease"} }

// readSettings takes what the installed webhook configuration tells of the operator's flags, and notes what is assumed.
func (p *planner) readSettings() {
	assumed := "it is assumed that the operator runs with "
	switch {
	case p.ground.Configuration != nil:
	case slices.Contains(p.ground.Forbidden, "validatingwebhookconfigurations"):
		p.note("You may not read the webhook configuration " + reach.ConfigurationName + ": " + assumed +
			"--failure-policy=Fail and the default protected namespaces.")
	default:
		p.note("There is no webhook configuration " + reach.ConfigurationName + ": " + assumed +
			"--failure-policy=Fail and the default protected namespaces.")
	}
	if p.ground.Configuration == nil {
		p.settings = reach.Settings{Protected: protectedByDefault(), FailurePolicy: admissionregistrationv1.Fail}
		return
	}
	known := false
	if p.settings, known = reach.ReadSettings(p.ground.Configuration); !known {
		p.settings.Protected = protectedByDefault()
		p.note("The webhook configuration doesn't show the protected namespaces: " + assumed + "the default ones.")
	}
}

// asked is what the API server asks about in one namespace.
type asked struct {
	resources sets.Set[string]
	policy    string // empty if nothing is asked
}

// asking is the part of the webhook configuration that enforces quotas.
type asking struct {
	entries []admissionregistrationv1.ValidatingWebhook
	exact   bool
}

func (p *planner) askingFor(quotas []quotav1.ClusterResourceQuota) asking {
	made := asking{}
	wanted := make([]reach.Quota, 0, len(quotas))
	for i := range quotas {
		quota := &quotas[i]
		defined := definition.Salvage(quota)
		tracked, _ := p.meter.evaluators.Resources(definition.Counted(quota.Spec))
		wanted = append(wanted, reach.Quota{
			// A new quota has no UID yet, and its name tells it from others as well.
			Name: quota.Name, UID: cmp.Or(quota.UID, types.UID("new/"+quota.Name)), Generation: quota.Generation,
			Selector: defined.Selector, Limited: slices.Collect(maps.Keys(tracked)),
			Admits: defined.Enforcement.AdmitsUnavailable(p.settings.AdmitsByDefault()),
		})
	}
	var all []admissionregistrationv1.ValidatingWebhook
	all, made.exact = p.settings.Webhooks(wanted)
	for _, webhook := range all {
		if reach.IsOfObjects(webhook) {
			made.entries = append(made.entries, webhook)
		}
	}
	return made
}

// in returns what is asked about in a namespace.
func (a asking) in(namespace *metav1.PartialObjectMetadata) asked {
	found := asked{resources: sets.New[string]()}
	policy := admissionregistrationv1.Ignore
	for _, entry := range a.entries {
		selector, err := metav1.LabelSelectorAsSelector(entry.NamespaceSelector)
		if err != nil || !selector.Matches(labels.Set(namespace.Labels)) {
			continue
		}
		for _, rule := range entry.Rules {
			name, _, _ := strings.Cut(rule.Resources[0], "/")
			found.resources.Insert(schema.GroupResource{Group: rule.APIGroups[0], Resource: name}.String())
		}
		if *entry.FailurePolicy == admissionregistrationv1.Fail {
			policy = admissionregistrationv1.Fail
		}
	}
	if len(found.resources) > 0 {
		found.policy = string(policy)
	}
	return found
}

// webhook compares what is asked about now and then, in the namespaces that exist.
func (p *planner) webhook() render.PlanWebhook {
	now, then := p.askingFor(p.live), p.askingFor(p.then)
	made := render.PlanWebhook{EntriesNow: len(now.entries), EntriesThen: len(then.entries), Changes: []render.PlanAsked{}}
	if !then.exact {
		p.note("There would be more than 50 entries, so the API server asks about namespaces that no quota selects, too.")
	}
	alike := map[string]int{} // what changes -> index of Changes
	for i := range p.ground.Namespaces {
		namespace := &p.ground.Namespaces[i]
		before, after := now.in(namespace), then.in(namespace)
		change := render.PlanAsked{
			Newly:    sets.List(after.resources.Difference(before.resources)),
			NoLonger: sets.List(before.resources.Difference(after.resources)), FailurePolicy: after.policy, Was: before.policy,
		}
		if len(change.Newly)+len(change.NoLonger) == 0 && after.policy == before.policy {
			continue
		}
		key := fmt.Sprint(change)
		at, known := alike[key]
		if !known {
			at = len(made.Changes)
			alike[key] = at
			made.Changes = append(made.Changes, change)
		}
		made.Changes[at].Namespaces = append(made.Changes[at].Namespaces, namespace.Name)
	}
	return made
}

// overlaps returns what each planned quota and another one both limit.
func (p *planner) overlaps() []render.PlanOverlap {
	overlaps := []render.PlanOverlap{}
	inFile := sets.New[string]()
	for _, revised := range p.revised {
		inFile.Insert(revised.then.Name)
		for i := range p.then {
			other := &p.then[i]
			if inFile.Has(other.Name) {
				continue // itself, or told of there
			}
			if overlap, some := p.overlap(revised.then, other); some {
				overlaps = append(overlaps, overlap)
			}
		}
	}
	return overlaps
}

func (p *planner) overlap(quota, other *quotav1.ClusterResourceQuota) (render.PlanOverlap, bool) {
	found := render.PlanOverlap{Quota: quota.Name, With: other.Name, Scoped: isScoped(quota) || isScoped(other)}
	theirs := limitsByName(other.Spec.Quota.Hard)
	for _, name := range slices.Sorted(maps.Keys(limitsByName(quota.Spec.Quota.Hard))) {
		if _, both := theirs[name]; both {
			found.Resources = append(found.Resources, name)
		}
	}
	if len(found.Resources) == 0 {
		return found, false
	}
	found.Namespaces = sets.List(sets.New(p.selected(quota)...).Intersection(sets.New(p.selected(other)...)))
	return found, len(found.Namespaces) > 0
}

func isScoped(quota *quotav1.ClusterResourceQuota) bool {
	return len(quota.Spec.Quota.Scopes) > 0 || quota.Spec.Quota.ScopeSelector != nil
}
