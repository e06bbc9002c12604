// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
)

// handled asks an evaluator which requests it handles. The objects are such
// that an update changes all that can matter.
func handled(resource schema.GroupResource, object, old runtime.Object) []string {
	evaluator := newTestEvaluators().evaluator(resource)
	var requests []string
	for _, subresource := range []string{"", "status", "resize", "scale", "binding", "ephemeralcontainers", "exec", "eviction"} {
		for _, operation := range []admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Connect} {
			if evaluator.Handles(requestFor(resource, subresource, operation, object, old)) {
				requests = append(requests, fmt.Sprint(subresource, " ", operation))
			}
		}
	}
	slices.Sort(requests)
	return requests
}

func TestRulesNameEveryRequestThatEvaluatorsHandle(t *testing.T) {
	ending := podOf(container("app", amountsOf("cpu", "1"), nil))
	ending.Spec.ActiveDeadlineSeconds = ptr.To[int64](1)
	type pair struct{ object, old runtime.Object }
	for resource, objects := range map[schema.GroupResource]pair{
		pods():                               {ending, typicalPod()},
		services():                           {serviceOf("LoadBalancer", 1), serviceOf("ClusterIP")},
		volumeClaims():                       {volumeClaimOf("gold", "2"), volumeClaimOf("", "1")},
		resourceClaims():                     {resourceClaimOf(exactly("gpu", 2)), &resourceapi.ResourceClaim{}},
		{Resource: "secrets"}:                {metadataOf("Secret"), metadataOf("Secret")},
		{Group: "a.example", Resource: "as"}: {metadataOf("A"), metadataOf("A")},
	} {
		t.Run(resource.String(), func(t *testing.T) {
			var got []string
			for _, rule := range Rules(resource) {
				for _, operation := range rule.Operations {
					got = append(got, fmt.Sprint(rule.Subresource, " ", operation))
				}
			}
			slices.Sort(got)
			want := slices.DeleteFunc(handled(resource, objects.object, objects.old), func(request string) bool {
				return resource == volumeClaims() && strings.HasPrefix(request, "status ") // Left out on purpose.
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("requests (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestIgnoredResourcesHaveNoRules(t *testing.T) {
	for _, resource := range []schema.GroupResource{
		{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"}, {Resource: "bindings"},
	} {
		if rules := Rules(resource); len(rules) != 0 {
			t.Errorf("want no rules for %s, got %v", resource, rules)
		}
	}
}

func TestOnlyFourResourcesNeedTheWholeObject(t *testing.T) {
	for resource, want := range map[schema.GroupResource]bool{
		pods(): true, services(): true, volumeClaims(): true, resourceClaims(): true,
		{Resource: "secrets"}: false, {Group: "apps", Resource: "deployments"}: false,
		{Group: "metrics.k8s.io", Resource: "pods"}: false, {Resource: "resourceclaims"}: false,
	} {
		if got := NeedsObject(resource); got != want {
			t.Errorf("%s: want %v, got %v", resource, want, got)
		}
	}
}
