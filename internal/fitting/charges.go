// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

// charge returns the cost of one of an item's objects for a quota. The refusal
// isn't empty if the quota refuses it independently of its use.
func (f *Fitter) charge(item Item, limit *Limit) (amounts corev1.ResourceList, refusal string, err error) {
	charged := evaluation.Quota{Name: limit.Name, Spec: limit.Spec, Advisory: limit.Admits != ""}
	charges, err := f.evaluators.Charges(attributes(item), []evaluation.Quota{charged})
	if refused := (*evaluation.Refusal)(nil); errors.As(err, &refused) {
		return nil, refused.Message, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("charging quota %s: %w", limit.Name, err)
	}
	if len(charges) == 0 {
		return nil, "", nil
	}
	return charges[0].Amounts, "", nil
}

// attributes of the request that would bring one of the objects about.
func attributes(item Item) admission.Attributes {
	operation, old, options := admission.Create, runtime.Object(nil), runtime.Object(&metav1.CreateOptions{})
	if item.Old != nil {
		operation, old, options = admission.Update, item.Old, &metav1.UpdateOptions{}
	}
	return admission.NewAttributesRecord(
		item.Object, old, item.Resource.GroupVersion().WithKind(item.Kind), item.Object.GetNamespace(), item.Object.GetName(),
		item.Resource, "", operation, options, false, nil,
	)
}

// Complete returns an object as admission would leave it, or why it would be
// refused. A refused object is completed, too.
type Complete func(object client.Object) (completed client.Object, refusal string)

// once returns a Complete that remembers its results.
func once(complete Complete) Complete {
	type result struct {
		object  client.Object
		refusal string
	}
	results := map[client.Object]result{}
	return func(object client.Object) (client.Object, string) {
		known, found := results[object]
		if !found {
			known.object, known.refusal = complete(object)
			results[object] = known
		}
		return known.object, known.refusal
	}
}

// completed returns the demand with all objects as the API server would complete them, and the objects made of
// templates as they were completed. Refused objects are left out, and reported.
func (f *Fitter) completed(demand Demand) (completed Demand, refusals []Refusal) {
	complete := func(items []Item) []Item {
		kept, refused := f.completeItems(demand, items)
		refusals = merged(refusals, refused)
		return kept
	}
	completed = demand
	completed.Items = complete(demand.Items)
	if demand.Pods != nil {
		pods := *demand.Pods
		if pods.makes() {
			pods.New = complete(pods.New)
			pods.Either = complete(pods.Either)
		}
		pods.Old = f.completeGroups(pods.Old)
		completed.Pods = &pods
	}
	return completed, refusals
}

func (f *Fitter) completeItems(demand Demand, items []Item) (kept []Item, refusals []Refusal) {
	for _, item := range items {
		refusal := ""
		if item.Old == nil {
			item.Object, refusal = f.complete(item.Object)
		}
		if refusal != "" {
			refusals = append(refusals, refusalOf(demand, item, refusal))
			continue
		}
		kept = append(kept, item)
	}
	return kept, refusals
}

// completeGroups completes pods that were made of a template, and the claims of all, which are of templates in any case. They
// were not refused, so refusals now don't matter.
func (f *Fitter) completeGroups(groups []Group) []Group {
	completed := slices.Clone(groups)
	for i, group := range completed {
		items := slices.Clone(group.Items)
		for n := range items {
			if group.Templated || items[n].Resource != podResource {
				items[n].Object, _ = f.complete(items[n].Object)
			}
		}
		completed[i].Items = items
	}
	return completed
}

// chargeAll returns the cost of one each of the items for a quota together.
func (f *Fitter) chargeAll(demand Demand, items []Item, limit *Limit) (corev1.ResourceList, []Refusal, error) {
	total := corev1.ResourceList{}
	var refusals []Refusal
	for _, item := range items {
		amounts, refusal, err := f.charge(item, limit)
		if err != nil {
			return nil, nil, err
		}
		if refusal != "" {
			refusals = append(refusals, refusalOf(demand, item, refusal))
		}
		total = sum(total, timesAll(amounts, item.Count))
	}
	return total, refusals, nil
}

func refusalOf(demand Demand, item Item, message string) Refusal {
	return Refusal{Kind: demand.Kind, Namespace: demand.Namespace, Name: demand.Name, Refused: item.Kind, Message: message}
}
