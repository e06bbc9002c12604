// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
)

// chargeTest is a request and the amounts that it adds to quotas; the refusal is
// the exact text, and the error is for requests that can't be judged.
type chargeTest struct {
	request     admission.Attributes
	quotas      []Quota
	want        []Charge
	wantRefusal string
	wantError   string
}

func (test chargeTest) run(t *testing.T) {
	charges, err := newTestEvaluators().Charges(test.request, test.quotas)
	if diff := cmp.Diff(test.want, charges); diff != "" {
		t.Errorf("charges (-want,+got):\n%s", diff)
	}
	gotRefusal, gotError := "", ""
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		gotRefusal = refusal.Message
	} else if err != nil {
		gotError = err.Error()
	}
	if gotRefusal != test.wantRefusal || gotError != test.wantError {
		t.Errorf("want refusal %q or error %q, got %q or %q", test.wantRefusal, test.wantError, gotRefusal, gotError)
	}
}

// resized returns a copy of the pod whose first container requests this CPU.
func resized(pod *corev1.Pod, cpu string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse(cpu)
	return pod
}

// TestChargesAreThoseOfKubernetes has all others.
func TestUpdatesAreChargedTheRise(t *testing.T) {
	steady := podOf(container("app", amountsOf("cpu", "1"), nil))
	ending := steady.DeepCopy()
	ending.Spec.ActiveDeadlineSeconds = ptr.To[int64](60)
	terminating := quotaOf("terminating", "pods", "cpu")
	terminating.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}
	all := quotaOf("all", "pods", "requests.cpu")
	allServices := quotaOf("all", "services", "services.loadbalancers", "services.nodeports")
	for name, test := range map[string]chargeTest{
		"a resize is charged what it adds": {
			request: resize(resized(steady, "3"), steady), quotas: []Quota{all},
			want: []Charge{{Quota: "all", Amounts: amountsOf("requests.cpu", "2")}},
		},
		"a pod that gets a deadline enters the quota of such pods, and no other": {
			request: update(pods(), ending, steady), quotas: []Quota{terminating, all},
			want: []Charge{{Quota: "terminating", Amounts: amountsOf("pods", "1", "cpu", "1")}},
		},
		"a service that becomes a load balancer": {
			request: update(services(), serviceOf(corev1.ServiceTypeLoadBalancer, 0), serviceOf(corev1.ServiceTypeNodePort, 1)),
			quotas:  []Quota{allServices}, want: []Charge{{Quota: "all", Amounts: amountsOf("services.loadbalancers", "1")}},
		},
	} {
		t.Run(name, test.run)
	}
}

func TestRefusalsSpeakAsKubernetesDoes(t *testing.T) {
	negative := podOf(container("c1", amountsOf("cpu", "-1", "memory", "-2"), nil))
	for name, test := range map[string]chargeTest{
		"CPU and memory must be given where they are limited": {
			request:     creation(pods(), podOf(container("c1", amountsOf("cpu", "1"), nil), container("c2", nil, nil))),
			quotas:      []Quota{quotaOf("team", "limits.cpu", "requests.cpu", "pods")},
			wantRefusal: "failed quota: team: must specify limits.cpu for: c1,c2; requests.cpu for: c2",
		},
		"of two quotas that refuse, the first by name speaks": {
			request:     creation(pods(), podOf(container("c1", nil, nil))),
			quotas:      []Quota{quotaOf("b", "cpu"), quotaOf("a", "memory")},
			wantRefusal: "failed quota: a: must specify memory for: c1",
		},
		"one that would charge doesn't help": {
			request:     creation(pods(), podOf(container("c1", nil, nil))),
			quotas:      []Quota{quotaOf("a", "pods"), quotaOf("b", "memory")},
			wantRefusal: "failed quota: b: must specify memory for: c1",
		},
		"nothing can be given back by asking for less than nothing": {
			request: creation(pods(), negative), quotas: []Quota{quotaOf("team", "pods")},
			wantRefusal: "quota usage is negative for resource(s): cpu,memory,requests.cpu,requests.memory",
		},
	} {
		t.Run(name, test.run)
	}
}

func TestChargesOfOtherRequests(t *testing.T) {
	large := "400000000000000000000000000000"
	badScope := quotaOf("bad", "pods")
	badScope.Spec.ScopeSelector = scopeSelector(corev1.ResourceQuotaScopePriorityClass, "Near", "x")
	events := schema.GroupResource{Resource: "events"}
	for name, test := range map[string]chargeTest{
		"quotas are charged in the order of their names": {
			request: creation(pods(), typicalPod()), quotas: []Quota{quotaOf("b", "pods"), quotaOf("c", "secrets"), quotaOf("a", "pods")},
			want: []Charge{{Quota: "a", Amounts: amountsOf("pods", "1")}, {Quota: "b", Amounts: amountsOf("pods", "1")}},
		},
		"an amount beyond an int64 is charged": {
			request: creation(pods(), podOf(container("a", amountsOf("cpu", large), nil), container("b", amountsOf("cpu", large), nil))),
			quotas:  []Quota{quotaOf("team", "cpu")},
			want:    []Charge{{Quota: "team", Amounts: amountsOf("cpu", "800000000000000000000000000000")}},
		},
		"nothing is charged without quotas": {request: creation(pods(), typicalPod())},
		"events are never charged": {
			request: creation(events, metadataOf("Event")), quotas: []Quota{quotaOf("team", "count/events")}},
		"deleting is free": {
			request: requestFor(pods(), "", admission.Delete, nil, typicalPod()), quotas: []Quota{quotaOf("team", "pods")}},
		"a status is never charged": {
			request: requestFor(volumeClaims(), "status", admission.Update, volumeClaimOf("", "9Gi"), volumeClaimOf("", "1Gi")),
			quotas:  []Quota{quotaOf("team", "requests.storage")}},
		"a selector that makes no sense is an error, and no refusal": {
			request: creation(pods(), typicalPod()), quotas: []Quota{badScope},
			wantError: "charging pods: error matching scopes of quota bad, err: error on matching scope " +
				"{PriorityClass Near [x]}: failed to parse and convert selector: \"Near\" is not a valid scope selector operator",
		},
	} {
		t.Run(name, test.run)
	}
}

func TestARefusalNamesTheQuotaThatRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		quotas  []Quota
		request admission.Attributes
		want    string
	}{
		"the first by name": {
			quotas: []Quota{quotaOf("b", "cpu"), quotaOf("a.b", "memory")}, want: "a.b",
			request: creation(pods(), podOf(container("c1", nil, nil))),
		},
		"none, where no quota was asked": {
			quotas: []Quota{quotaOf("team", "pods")}, request: creation(pods(), podOf(container("c1", amountsOf("cpu", "-1"), nil))),
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newTestEvaluators().Charges(test.request, test.quotas)
			refusal, ok := errors.AsType[*Refusal](err)
			if !ok || refusal.Quota != test.want {
				t.Errorf("got %#v, want one by %q", err, test.want)
			}
		})
	}
}
