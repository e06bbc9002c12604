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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// outageAnswer is what is found out, and what it is found out from.
type outageAnswer struct {
	render.Outage

	// closed are the entries of the configuration that refuse without an answer.
	closed []closedEntry
	// refusing are the quotas that want that. They aren't known if unread is set.
	refusing []definition.Definition
	unread   bool
	// met are the entries by which something would be refused. name -> entry
	met map[string]closedEntry
}

// closedEntry is an entry of the webhook configuration that refuses requests if it gets no answer.
type closedEntry struct {
	admissionregistrationv1.ValidatingWebhook

	namespaces labels.Selector
	// resources are what it asks about, and updated those of which it asks about updates, sorted.
	resources, updated []string
}

// outageOf answers by what was read, for one namespace, or for all if it is empty.
func outageOf(found *reading.Outage, namespace string) render.Outage {
	answer := &outageAnswer{
		Outage: render.Outage{
			TypeMeta: metav1.TypeMeta{APIVersion: render.APIVersion, Kind: render.OutageKind}, Refused: []render.OutagePlace{},
		},
		unread: slices.Contains(found.Forbidden, "clusterresourcequotas"),
		met:    map[string]closedEntry{},
	}
	if found.Configuration == nil {
		answer.notef("There is no webhook configuration %s, so no quota is enforced: is the operator installed here, and has it run?",
			reach.ConfigurationName)
		return answer.Outage
	}
	byDefault := answer.readEntries(found.Configuration)
	answer.readQuotas(found.Quotas, byDefault)
	if slices.Contains(found.Forbidden, "namespaces") {
		answer.placeSelectors(namespace)
	} else {
		answer.placeNamespaces(found.Namespaces)
	}
	answer.describeMet()
	return answer.Outage
}

func (a *outageAnswer) notef(format string, args ...any) {
	a.Notes = append(a.Notes, fmt.Sprintf(format, args...))
}

// readEntries takes the entries that refuse. It reports whether requests are admitted if a quota doesn't say otherwise, which
// the entry for quotas tells.
func (a *outageAnswer) readEntries(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) (byDefault bool) {
	for _, webhook := range configuration.Webhooks {
		closed := ptr.Deref(webhook.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Fail
		if webhook.Name == reach.QuotasWebhook {
			byDefault, a.QuotaChangesRefused = !closed, closed
		}
		if !closed || !reach.IsOfObjects(webhook) {
			continue
		}
		namespaces, err := metav1.LabelSelectorAsSelector(cmp.Or(webhook.NamespaceSelector, &metav1.LabelSelector{}))
		if err != nil {
			continue // the API server takes none that is invalid
		}
		entry := closedEntry{ValidatingWebhook: webhook, namespaces: namespaces}
		for _, rule := range webhook.Rules {
			for _, name := range rule.Resources {
				resource, _, _ := strings.Cut(name, "/")
				named := schema.GroupResource{Group: strings.Join(rule.APIGroups, ","), Resource: resource}.String()
				entry.resources = append(entry.resources, named)
				if slices.Contains(rule.Operations, admissionregistrationv1.Update) {
					entry.updated = append(entry.updated, named)
				}
			}
		}
		entry.resources, entry.updated = sortedSet(entry.resources), sortedSet(entry.updated)
		a.closed = append(a.closed, entry)
	}
	return byDefault
}

// readQuotas tells the quotas that have requests refused from those that have them admitted.
func (a *outageAnswer) readQuotas(quotas []quotav1.ClusterResourceQuota, byDefault bool) {
	if a.unread {
		a.notef("You may not list ClusterResourceQuotas, so it isn't known for the sake of which quotas requests would be refused, " +
			"and which quotas would have them admitted.")
		return
	}
	for i := range quotas {
		defined := definition.Salvage(&quotas[i])
		enforcement := defined.Enforcement
		if !enforcement.AdmitsUnavailable(byDefault) {
			a.refusing = append(a.refusing, defined)
			continue
		}
		why := "by --failure-policy=Ignore"
		switch {
		case enforcement.RefusesNothing:
			why = "only the modes Warn and Audit"
		case enforcement.WhenUnavailable == quotav1.UnavailableAdmit:
			why = "whenUnavailable: Admit"
		}
		a.Admitting = append(a.Admitting, render.OutageQuota{Name: quotas[i].Name, Why: why})
	}
	slices.SortFunc(a.Admitting, func(x, y render.OutageQuota) int { return cmp.Compare(x.Name, y.Name) })
	a.NoneAdmits = len(a.Admitting) == 0 && len(quotas) > 0
}

// placeNamespaces answers for each namespace.
func (a *outageAnswer) placeNamespaces(namespaces []corev1.Namespace) {
	slices.SortFunc(namespaces, func(x, y corev1.Namespace) int { return cmp.Compare(x.Name, y.Name) })
	unnamed := false
	for i := range namespaces {
		namespace := &namespaces[i]
		for _, entry := range a.closed {
			if !entry.namespaces.Matches(labels.Set(namespace.Labels)) {
				continue
			}
			place := render.OutagePlace{Namespace: namespace.Name, Resources: entry.resources, Quotas: a.quotasOf(namespace)}
			unnamed = unnamed || len(place.Quotas) == 0
			a.Refused = append(a.Refused, place)
			a.met[entry.Name] = entry
		}
	}
	if unnamed && !a.unread {
		a.notef("If no quota is named, none that selects the namespace has requests refused, and they are refused all the same: " +
			"because the resource is limited by default, because the webhook is called in more namespaces than are selected, " +
			"or because a quota was changed a moment ago.")
	}
}

// quotasOf returns the quotas that have requests of the namespace refused.
func (a *outageAnswer) quotasOf(namespace *corev1.Namespace) []string {
	var names []string
	for _, quota := range a.refusing {
		if quota.Selector.Matches(namespace.Labels, namespace.Annotations) {
			names = append(names, quota.Quota.Name)
		}
	}
	return sortedSet(names)
}

// placeSelectors answers for the namespaces that each entry selects, because nobody knows which these are.
func (a *outageAnswer) placeSelectors(namespace string) {
	what := "list namespaces"
	if namespace != "" {
		what = "read the namespace " + namespace
	}
	a.notef("You may not %s, so the selectors of the webhook configuration stand for the namespaces, "+
		"and the quotas of each aren't known.", what)
	for _, entry := range a.closed {
		a.Refused = append(a.Refused, render.OutagePlace{
			Selector: metav1.FormatLabelSelector(entry.NamespaceSelector), Resources: entry.resources,
		})
		a.met[entry.Name] = entry
	}
	slices.SortFunc(a.Refused, func(x, y render.OutagePlace) int { return cmp.Compare(x.Selector, y.Selector) })
}

// describeMet says of which resources updates would be refused, too, and of which entries somebody has narrowed what they ask
// about.
func (a *outageAnswer) describeMet() {
	for _, name := range slices.Sorted(maps.Keys(a.met)) {
		entry := a.met[name]
		a.Updates = append(a.Updates, entry.updated...)
		others := slices.ContainsFunc(entry.MatchConditions, func(condition admissionregistrationv1.MatchCondition) bool {
			return condition.Name != reach.ChargingCondition
		})
		if others || entry.ObjectSelector != nil && len(entry.ObjectSelector.MatchLabels)+len(entry.ObjectSelector.MatchExpressions) > 0 {
			a.notef("Somebody has added conditions to the entry %s, so fewer requests may be refused than are listed.", name)
		}
	}
	a.Updates = sortedSet(a.Updates)
}

func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
