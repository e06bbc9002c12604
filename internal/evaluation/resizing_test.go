// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	upstreamquota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/ptr"
)

// infeasiblePod asks for this CPU in its generation. Its node allocated one CPU,
// and found the request of the observed generation infeasible; that is 0 if the
// condition doesn't say which.
func infeasiblePod(generation, observed int64, cpu string) *corev1.Pod {
	pod := podOf(container("app", amountsOf("cpu", cpu), nil))
	pod.Generation = generation
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", AllocatedResources: amountsOf("cpu", "1"),
		Resources: &corev1.ResourceRequirements{Requests: amountsOf("cpu", "1")},
	}}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, ObservedGeneration: observed},
		{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible,
			ObservedGeneration: observed,
		},
	}
	return pod
}

func deferredPod(generation, observed int64, cpu string) *corev1.Pod {
	pod := infeasiblePod(generation, observed, cpu)
	pod.Status.Conditions[1].Reason = corev1.PodReasonDeferred
	return pod
}

// A resize is charged for all that it asks for: no node has judged it yet.
func TestAResizePastAnInfeasibleOneIsCharged(t *testing.T) {
	all := quotaOf("all", "requests.cpu")
	charge := func(cpu string) []Charge { return []Charge{{Quota: "all", Amounts: amountsOf("requests.cpu", cpu)}} }
	for name, test := range map[string]chargeTest{
		"to more, while the node hasn't seen the last one": {
			request: resize(infeasiblePod(6, 4, "159"), infeasiblePod(5, 4, "100")), want: charge("59"),
		},
		"to more, when the node has judged the last one": {
			request: resize(infeasiblePod(6, 5, "159"), infeasiblePod(5, 5, "100")), want: charge("158"),
		},
		"to less than the last one asked for, and more than there is": {
			request: resize(infeasiblePod(6, 5, "50"), infeasiblePod(5, 5, "100")), want: charge("49"),
		},
		"to what there is": {request: resize(infeasiblePod(6, 5, "1"), infeasiblePod(5, 5, "100"))},
		"past one that waits": {
			request: resize(deferredPod(6, 5, "159"), deferredPod(5, 5, "100")), want: charge("59"),
		},
		"that changes nothing": {request: resize(infeasiblePod(5, 5, "100"), infeasiblePod(5, 5, "100"))},
		"of a pod without generations": {
			request: resize(infeasiblePod(0, 0, "159"), infeasiblePod(0, 0, "100")), want: charge("59"),
		},
		"whose review has the generation of before": {
			request: resize(infeasiblePod(5, 5, "159"), infeasiblePod(5, 5, "100")), want: charge("158"),
		},
	} {
		test.quotas = []Quota{all}
		t.Run(name, test.run)
	}
}

// A pod with an old condition costs nothing upstream, and here as much as
// Kubernetes charges for the same pod without the condition.
func TestAnOldConditionIsAsNone(t *testing.T) {
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"of this generation":            {infeasiblePod(5, 5, "100"), "1"},
		"of an earlier one":             {infeasiblePod(6, 5, "100"), "100"},
		"of an unknown generation":      {infeasiblePod(6, 0, "100"), "100"},
		"of a pod without generations":  {infeasiblePod(0, 0, "100"), "100"},
		"of this one, and it may yet":   {deferredPod(5, 5, "100"), "100"},
		"of an earlier, and it may yet": {deferredPod(6, 5, "100"), "100"},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.pod.DeepCopy()
			evaluators := newTestEvaluators()
			footprint, err := evaluators.Footprint(pods(), test.pod)
			if err != nil {
				t.Fatal(err)
			}
			used, err := evaluators.Usage(pods(), footprint, quotaOf("all", "requests.cpu"), testNow())
			if err != nil || !upstreamquota.Equals(used, amountsOf("requests.cpu", test.want)) {
				t.Errorf("want %s, got %v, %v", test.want, used, err)
			}
			if diff := cmp.Diff(before, test.pod); diff != "" {
				t.Errorf("the pod was changed (-before,+after):\n%s", diff)
			}
			if test.want == "1" {
				return
			}
			without := test.pod.DeepCopy()
			without.Status.Conditions = nil
			upstream, err := core.NewPodEvaluator(nil, clockAt{now: testNow()}).Usage(without)
			if got := upstreamquota.Mask(upstream, []corev1.ResourceName{"requests.cpu"}); err != nil ||
				!upstreamquota.Equals(got, amountsOf("requests.cpu", test.want)) {
				t.Errorf("Kubernetes says %v without the condition, %v", got, err)
			}
		})
	}
}

// An update that changes the pod makes the condition an old one, too.
func TestAPodThatEntersAQuotaIsChargedAsItIsGoingToCount(t *testing.T) {
	terminating := quotaOf("terminating", "requests.cpu")
	terminating.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}
	ending := infeasiblePod(6, 5, "100")
	ending.Spec.ActiveDeadlineSeconds = ptr.To[int64](60)
	chargeTest{
		request: requestFor(pods(), "", admission.Update, ending, infeasiblePod(5, 5, "100")),
		quotas:  []Quota{terminating}, want: []Charge{{Quota: "terminating", Amounts: amountsOf("requests.cpu", "100")}},
	}.run(t)
}
