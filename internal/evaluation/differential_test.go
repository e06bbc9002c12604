// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	upstreamquota "k8s.io/apiserver/pkg/quota/v1"
	"pgregory.net/rapid"
)

// Every charge here is compared with Kubernetes' own charge to quotas that are in
// force.

// charged returns the charge to one quota, which is empty if there is none.
func charged(charges []Charge, quota string) corev1.ResourceList {
	for _, charge := range charges {
		if charge.Quota == quota {
			return charge.Amounts
		}
	}
	return nil
}

// realQuota returns the quota with its limits in force and something used.
func realQuota(t *rapid.T, q Quota) corev1.ResourceQuota {
	used := corev1.ResourceList{}
	for _, name := range sortedNames(upstreamquota.ResourceNames(q.Spec.Hard)) {
		used[name] = rapid.SampledFrom(slices.Collect(maps.Values(amountsOf("none", "0", "some", "7")))).Draw(t, "used")
	}
	inForce := corev1.ResourceQuota{Spec: q.Spec, Status: corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: used}}
	inForce.Name, inForce.Namespace = q.Name, "team-a"
	return inForce
}

// exceededMessage is the ledger's message for a charge that is too much.
func exceededMessage(inForce corev1.ResourceQuota, charge corev1.ResourceList) string {
	_, exceeded := upstreamquota.LessThanOrEqual(upstreamquota.Add(inForce.Status.Used, charge), inForce.Status.Hard)
	exceeded = upstreamquota.Intersection(exceeded, upstreamquota.ResourceNames(charge))
	list := func(amounts corev1.ResourceList) string {
		var parts []string
		for _, name := range exceeded {
			amount := amounts[name]
			parts = append(parts, fmt.Sprintf("%s=%s", name, amount.String()))
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprintf("exceeded quota: %s, requested: %s, used: %s, limited: %s",
		inForce.Name, list(charge), list(inForce.Status.Used), list(inForce.Status.Hard))
}

// outcomeOf compares one charge with Kubernetes' charge to a quota in force: it
// adds the same, or refuses in the same words.
func outcomeOf(t *rapid.T, request admission.Attributes, q Quota, evaluators *Evaluators, check checkFunc) string {
	inForce := realQuota(t, q)
	after, wantErr := check(request, inForce)
	charges, err := evaluators.Charges(request, []Quota{q})
	charge := charged(charges, q.Name)
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		if wantErr == nil || !strings.HasSuffix(wantErr.Error(), "is forbidden: "+refusal.Message) {
			t.Fatalf("refused with %q, upstream says %v", refusal.Message, wantErr)
		}
		return "refused"
	case err != nil:
		t.Fatalf("not judged: %v", err)
	case wantErr == nil:
		if want := upstreamquota.RemoveZeros(upstreamquota.Subtract(after.Status.Used, inForce.Status.Used)); !upstreamquota.Equals(want, charge) {
			t.Fatalf("want charge %v, got %v", want, charge)
		}
		if len(charge) == 0 {
			return "free"
		}
		return "charged"
	case apierrors.IsForbidden(wantErr):
		if want := exceededMessage(inForce, charge); !strings.HasSuffix(wantErr.Error(), "is forbidden: "+want) {
			t.Fatalf("upstream says %v, the charge says %q", wantErr, want)
		}
		return "exceeded"
	}
	t.Fatalf("upstream could not judge: %v", wantErr)
	return ""
}

type checkFunc func(admission.Attributes, ...corev1.ResourceQuota) (corev1.ResourceQuota, error)

// upstreamCheck lets Kubernetes check a request against a quota in force.
func upstreamCheck(sources ClaimSources) checkFunc {
	registry := upstream(clockAt{now: testNow()}, sources, nil)
	return func(request admission.Attributes, inForce ...corev1.ResourceQuota) (corev1.ResourceQuota, error) {
		evaluator := registry.Get(request.GetResource().GroupResource())
		if evaluator == nil {
			return inForce[0], nil // Events.
		}
		after, err := resourcequota.CheckRequest(inForce, copied(request), evaluator, nil)
		if err != nil {
			return corev1.ResourceQuota{}, err
		}
		return after[0], nil
	}
}

// copied returns the request with copies of its objects: measuring may change
// them. They have no condition that is out of date.
func copied(request admission.Attributes) admission.Attributes {
	object := upToDate(request.GetObject())
	var old runtime.Object
	if request.GetOldObject() != nil {
		old = upToDate(request.GetOldObject())
	}
	if pod, isPod := object.(*corev1.Pod); isPod && old != nil && !reflect.DeepEqual(pod.Spec, old.(*corev1.Pod).Spec) {
		pod.Status.Conditions = nil
	}
	return requestFor(request.GetResource().GroupResource(), request.GetSubresource(), request.GetOperation(), object, old)
}

// upToDate returns a copy of the object as Kubernetes has to see it: a pod whose
// condition isn't about its present generation has none. Generated pods have one
// condition at most, and no generation from API servers that keep none.
func upToDate(object runtime.Object) runtime.Object {
	same := object.DeepCopyObject()
	if pod, isPod := same.(*corev1.Pod); isPod && len(pod.Status.Conditions) > 0 {
		if pod.Generation == 0 || pod.Status.Conditions[0].ObservedGeneration < pod.Generation {
			pod.Status.Conditions = nil
		}
	}
	return same
}

func TestChargesAreThoseOfKubernetes(t *testing.T) {
	outcomes := tally{}
	rapid.Check(t, func(t *rapid.T) {
		sources := anySources().Draw(t, "sources")
		evaluators := New(clockAt{now: testNow()}, sources)
		check := upstreamCheck(sources)
		for _, request := range rapid.SliceOfN(anyRequest(), 8, 8).Draw(t, "requests") {
			limited := namesFor(request.GetResource().GroupResource())
			for _, quota := range rapid.SliceOfN(anyQuota(limited), 6, 6).Draw(t, "quotas") {
				outcomes[outcomeOf(t, request, quota, evaluators, check)]++
			}
		}
	})
	outcomes.require(t, 200, "charged", "free", "refused", "exceeded")
}

// Several quotas at once are charged as each one alone, and refused where the
// first of them by name that refuses does.
func TestChargesOfManyQuotasAreThoseOfEach(t *testing.T) {
	outcomes := tally{}
	evaluators := newTestEvaluators()
	byName := func(q Quota) string { return q.Name }
	rapid.Check(t, func(t *rapid.T) {
		quotas := rapid.SliceOfNDistinct(anyQuota(limitableNames()), 1, 6, byName).Draw(t, "quotas")
		for _, request := range rapid.SliceOfN(anyRequest(), 10, 10).Draw(t, "requests") {
			want, wantErr := chargesOfEach(evaluators, request, quotas)
			got, err := evaluators.Charges(request, quotas)
			if fmt.Sprint(wantErr) != fmt.Sprint(err) || !cmp.Equal(want, got) {
				t.Fatalf("alone %v, %v; together %v, %v", want, wantErr, got, err)
			}
			outcomes[map[bool]string{true: "judged", false: "refused"}[err == nil]]++
		}
	})
	outcomes.require(t, 10, "judged", "refused")
}

// chargesOfEach charges each quota alone, in the order of their names.
func chargesOfEach(evaluators *Evaluators, request admission.Attributes, quotas []Quota) ([]Charge, error) {
	var all []Charge
	for _, quota := range slices.SortedFunc(slices.Values(quotas), func(a, b Quota) int { return strings.Compare(a.Name, b.Name) }) {
		charges, err := evaluators.Charges(request, []Quota{quota})
		if err != nil {
			return nil, err
		}
		all = append(all, charges...)
	}
	return all, nil
}
