// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Found is a configuration as it is in the cluster, taken apart into what this
// operator asks for, and what others require besides.
type Found struct {
	// Own is the configuration without what Added and Harmless say of it.
	Own *admissionregistrationv1.ValidatingWebhookConfiguration
	// Added are requirements of namespaces on keys that the operator doesn't use. They
	// take namespaces out, by the name of the entry.
	Added map[string][]labels.Requirement
	// Harmless: something was added that takes out no request, wherever it comes from.
	Harmless bool
}

// Touched reports whether somebody has added something.
func (f Found) Touched() bool { return f.Harmless || len(f.Added) > 0 }

// Keys are those by which the quotas and the entries of a configuration select
// namespaces. Others may use all others.
func Keys(quotas []Quota, written *admissionregistrationv1.ValidatingWebhookConfiguration) sets.Set[string] {
	keys := sets.New(corev1.LabelMetadataName)
	for _, quota := range quotas {
		requirements, _ := quota.Selector.Labels().Requirements()
		for _, requirement := range requirements {
			keys.Insert(requirement.Key())
		}
	}
	if written == nil {
		return keys
	}
	for _, webhook := range written.Webhooks {
		for _, requirement := range requirementsOf(webhook.NamespaceSelector) {
			keys.Insert(requirement.Key)
		}
	}
	return keys
}

// Find separates what others added from the operator's own part. Only requirements on labels that no quota
// uses count as added: other changes edit the operator's own part.
//
//   - In an entry that enforces, a requirement of namespaces excludes those that don't meet it. In
//     the other entries it excludes nothing that is limited: their objects are in no namespace, or
//     they keep no quota.
//   - A requirement of objects is never harmless, because users choose the labels of objects. The
//     entry for probes is the exception, if the objects of probes meet the requirement.
func (s Settings) Find(current *admissionregistrationv1.ValidatingWebhookConfiguration, keys sets.Set[string]) Found {
	found := Found{Own: current.DeepCopy()}
	for i := range found.Own.Webhooks {
		webhook := &found.Own.Webhooks[i]
		added := takeOff(webhook.NamespaceSelector, func(requirement labels.Requirement) bool { return !keys.Has(requirement.Key()) })
		switch {
		case len(added) == 0:
		case !IsOfObjects(*webhook):
			found.Harmless = true
		default:
			if found.Added == nil {
				found.Added = map[string][]labels.Requirement{}
			}
			found.Added[webhook.Name] = added
		}
		if webhook.Name != ProbeWebhook {
			continue
		}
		probes := labels.Set{ProbeLabel: "true"}
		if len(takeOff(webhook.ObjectSelector, func(requirement labels.Requirement) bool {
			return requirement.Key() != ProbeLabel && requirement.Matches(probes)
		})) > 0 {
			found.Harmless = true
		}
	}
	return found
}

// takeOff removes the requirements that others have added from a selector, and returns them.
func takeOff(selector *metav1.LabelSelector, added func(labels.Requirement) bool) []labels.Requirement {
	if selector == nil {
		return nil
	}
	var taken []labels.Requirement
	isAdded := func(requirement metav1.LabelSelectorRequirement) bool {
		parsed, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{requirement},
		})
		if err != nil {
			return false // the API server takes none that is invalid
		}
		requirements, _ := parsed.Requirements()
		if len(requirements) != 1 || !added(requirements[0]) {
			return false
		}
		taken = append(taken, requirements[0])
		return true
	}
	for _, requirement := range requirementsOf(&metav1.LabelSelector{MatchLabels: selector.MatchLabels}) {
		if isAdded(requirement) {
			delete(selector.MatchLabels, requirement.Key)
		}
	}
	selector.MatchExpressions = slices.DeleteFunc(selector.MatchExpressions, isAdded)
	return taken
}

// requirementsOf returns all requirements of a selector as expressions, its labels sorted.
func requirementsOf(selector *metav1.LabelSelector) []metav1.LabelSelectorRequirement {
	if selector == nil {
		return nil
	}
	var all []metav1.LabelSelectorRequirement
	for _, key := range sets.List(sets.KeySet(selector.MatchLabels)) {
		all = append(all, metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{selector.MatchLabels[key]},
		})
	}
	return append(all, selector.MatchExpressions...)
}

// Namespace is one that there is.
type Namespace struct {
	Name                string
	Labels, Annotations map[string]string
}

// Outside returns those of the namespaces that don't meet everything that was added. Of
// these alone an entry may not be asked about.
func (f Found) Outside(namespaces []Namespace) []Namespace {
	distinct := map[string]labels.Requirement{}
	for _, added := range f.Added {
		for _, requirement := range added {
			distinct[requirement.String()] = requirement
		}
	}
	var outside []Namespace
	for _, namespace := range namespaces {
		for _, requirement := range distinct {
			if !requirement.Matches(labels.Set(namespace.Labels)) {
				outside = append(outside, namespace)
				break
			}
		}
	}
	return outside
}

// Cover tells how far the configuration asks about what a quota limits, given the
// namespaces Outside. If what was added takes out some, words say which requirement does.
func (s Settings) Cover(found Found, quota Quota, outside []Namespace) (coverage Coverage, words string) {
	coverage = s.Coverage(found.Own, quota)
	needed := objectRules(quota.Limited)
	if coverage == Missing || len(needed) == 0 || len(outside) == 0 {
		return coverage, ""
	}
	asking := s.asking(found.Own, quota, needed)
	var out []string
	by := sets.New[string]()
	for _, namespace := range outside {
		if slices.Contains(s.Protected, namespace.Name) || !quota.Selector.Matches(namespace.Labels, namespace.Annotations) {
			continue
		}
		if requirement, taken := found.takesOut(namespace, asking); taken {
			out = append(out, namespace.Name)
			by.Insert(requirement)
		}
	}
	if len(out) == 0 {
		return coverage, ""
	}
	slices.Sort(out)
	return Missing, fmt.Sprintf("%s takes out %s",
		few("the requirement", "requirements", sets.List(by)), few("the namespace", "namespaces", out))
}

// takesOut reports whether no entry is asked about a namespace, and by which requirement.
func (f Found) takesOut(namespace Namespace, asking []admissionregistrationv1.ValidatingWebhook) (requirement string, taken bool) {
	of := labels.Set(namespace.Labels)
	for _, webhook := range asking {
		own, err := metav1.LabelSelectorAsSelector(webhook.NamespaceSelector)
		if err != nil || !own.Matches(of) {
			continue
		}
		unmet := slices.IndexFunc(f.Added[webhook.Name], func(added labels.Requirement) bool { return !added.Matches(of) })
		if unmet < 0 {
			return "", false
		}
		requirement = f.Added[webhook.Name][unmet].String()
	}
	return requirement, true
}

// few names up to three of what is sorted, and says how many others there are.
func few(one, many string, names []string) string {
	const most = 3
	switch {
	case len(names) == 1:
		return one + " " + names[0]
	case len(names) <= most:
		return fmt.Sprintf("%d %s: %s", len(names), many, strings.Join(names, ", "))
	default:
		return fmt.Sprintf("%d %s: %s and others", len(names), many, strings.Join(names[:most], ", "))
	}
}
