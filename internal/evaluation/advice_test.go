// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"pgregory.net/rapid"
)

// advising refuses no object that doesn't say how much it asks for.
func (q Quota) advising() Quota {
	q.Advisory = true
	return q
}

func TestWhatAnAdvisoryQuotaDemandsIsNoted(t *testing.T) {
	// c1 has requests, and c2 has none.
	pod := podOf(container("c1", amountsOf("cpu", "1", "memory", "1Gi"), nil), container("c2", nil, nil))
	bare := podOf(container("c1", nil, nil))
	ending := pod.DeepCopy()
	ending.Spec.ActiveDeadlineSeconds = new(int64)
	*ending.Spec.ActiveDeadlineSeconds = 60
	terminating := quotaOf("team", "pods", "limits.cpu")
	terminating.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}
	onePod := amountsOf("pods", "1")
	for name, test := range map[string]chargeTest{
		"what is missing is noted, and the rest is charged": {
			request: creation(pods(), pod), quotas: []Quota{quotaOf("team", "pods", "limits.cpu").advising()},
			want: []Charge{{
				Quota: "team", Amounts: onePod, Missing: []corev1.ResourceName{"limits.cpu"},
				Incomplete: "failed quota: team: must specify limits.cpu for: c1,c2",
			}},
		},
		"what some containers ask for is charged": {
			request: creation(pods(), pod), quotas: []Quota{quotaOf("team", "requests.cpu").advising()},
			want: []Charge{{
				Quota: "team", Amounts: amountsOf("requests.cpu", "1"), Missing: []corev1.ResourceName{"requests.cpu"},
				Incomplete: "failed quota: team: must specify requests.cpu for: c2",
			}},
		},
		"several are noted in the words of Kubernetes": {
			request: creation(pods(), pod),
			quotas:  []Quota{quotaOf("team", "pods", "requests.cpu", "limits.cpu").advising()},
			want: []Charge{{
				Quota: "team", Amounts: amountsOf("pods", "1", "requests.cpu", "1"), Missing: []corev1.ResourceName{"limits.cpu", "requests.cpu"},
				Incomplete: "failed quota: team: must specify limits.cpu for: c1,c2; requests.cpu for: c2",
			}},
		},
		"nothing is missing": {
			request: creation(pods(), podOf(container("c1", amountsOf("cpu", "1"), nil))),
			quotas:  []Quota{quotaOf("team", "requests.cpu").advising()},
			want:    []Charge{{Quota: "team", Amounts: amountsOf("requests.cpu", "1")}},
		},
		"a quota that charges nothing notes it, too": {
			request: creation(pods(), bare), quotas: []Quota{quotaOf("team", "limits.cpu").advising()},
			want: []Charge{{
				Quota: "team", Amounts: corev1.ResourceList{}, Missing: []corev1.ResourceName{"limits.cpu"},
				Incomplete: "failed quota: team: must specify limits.cpu for: c1",
			}},
		},
		"what another quota advises doesn't hold for one that enforces it": {
			request:     creation(pods(), pod),
			quotas:      []Quota{quotaOf("a", "limits.cpu").advising(), quotaOf("b", "limits.cpu")},
			wantRefusal: "failed quota: b: must specify limits.cpu for: c1,c2",
		},
		"nor for one that comes first": {
			request:     creation(pods(), pod),
			quotas:      []Quota{quotaOf("b", "limits.cpu").advising(), quotaOf("a", "limits.cpu")},
			wantRefusal: "failed quota: a: must specify limits.cpu for: c1,c2",
		},
		"each quota notes its own": {
			request: creation(pods(), pod),
			quotas: []Quota{
				quotaOf("b", "limits.cpu", "pods").advising(), quotaOf("c", "pods"), quotaOf("a", "requests.memory").advising(),
			},
			want: []Charge{
				{
					Quota: "a", Amounts: amountsOf("requests.memory", "1Gi"), Missing: []corev1.ResourceName{"requests.memory"},
					Incomplete: "failed quota: a: must specify requests.memory for: c2",
				},
				{Quota: "b", Amounts: onePod, Missing: []corev1.ResourceName{"limits.cpu"}, Incomplete: "failed quota: b: must specify limits.cpu for: c1,c2"},
				{Quota: "c", Amounts: onePod},
			},
		},
		"a quota whose scope the pod is out of notes nothing": {
			request: creation(pods(), pod), quotas: []Quota{terminating.advising(), quotaOf("z", "pods")},
			want: []Charge{{Quota: "z", Amounts: onePod}},
		},
		"a pod that enters a quota by an update": {
			request: update(pods(), ending, pod), quotas: []Quota{terminating.advising()},
			want: []Charge{{
				Quota: "team", Amounts: onePod, Missing: []corev1.ResourceName{"limits.cpu"},
				Incomplete: "failed quota: team: must specify limits.cpu for: c1,c2",
			}},
		},
		"a pod that enters a quota that enforces is refused": {
			request: update(pods(), ending, pod), quotas: []Quota{terminating},
			wantRefusal: "failed quota: team: must specify limits.cpu for: c1,c2",
		},
		"an object of another kind misses nothing": {
			request: creation(services(), serviceOf(corev1.ServiceTypeClusterIP)), quotas: []Quota{quotaOf("team", "services", "limits.cpu").advising()},
			want: []Charge{{Quota: "team", Amounts: amountsOf("services", "1")}},
		},
		"less than nothing is refused all the same": {
			request: creation(pods(), podOf(container("c1", amountsOf("cpu", "-1"), nil))), quotas: []Quota{quotaOf("team", "pods").advising()},
			wantRefusal: "quota usage is negative for resource(s): cpu,requests.cpu",
		},
	} {
		t.Run(name, test.run)
	}
}

// A quota that advises charges the same as a quota that enforces, and notes its refusals.
func TestToAdviseIsToChargeAndNoteWhatWouldBeRefused(t *testing.T) {
	evaluators := newTestEvaluators()
	outcomes := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		names := []corev1.ResourceName{"pods", "limits.cpu", "requests.cpu", "limits.memory", "memory"}
		amounts := func(label string) corev1.ResourceList {
			some := corev1.ResourceList{}
			for _, name := range []corev1.ResourceName{"cpu", "memory"} {
				if rapid.Bool().Draw(t, label+string(name)) {
					some[name] = amountsOf("x", "1")["x"]
				}
			}
			return some
		}
		pod := podOf(container("c1", amounts("c1"), amounts("c1 limits ")), container("c2", amounts("c2"), nil))
		var enforced, advised []Quota
		for n := range rapid.IntRange(1, 3).Draw(t, "quotas") {
			hard := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, len(names), rapid.ID).Draw(t, "hard")
			made := quotaOf(fmt.Sprint("q", n), hard...)
			enforced, advised = append(enforced, made), append(advised, made.advising())
		}
		request := func() admission.Attributes { return creation(pods(), pod.DeepCopy()) }
		want, err := evaluators.Charges(request(), enforced)
		got, adviseErr := evaluators.Charges(request(), advised)
		if adviseErr != nil {
			t.Fatalf("refused: %v", adviseErr)
		}
		noted := map[string]string{}
		var charged []Charge
		for _, charge := range got {
			if charge.Incomplete != "" {
				noted[charge.Quota] = charge.Incomplete
			}
			for _, name := range charge.Missing {
				if !strings.Contains(charge.Incomplete, string(name)+" for: ") {
					t.Fatalf("%s is missing, and not said: %s", name, charge.Incomplete)
				}
			}
			if (len(charge.Missing) > 0) != (charge.Incomplete != "") {
				t.Fatalf("got %+v, want both or none", charge)
			}
			charge.Missing, charge.Incomplete = nil, ""
			charged = append(charged, charge)
		}
		if err == nil {
			outcomes["granted"]++
			if diff := cmp.Diff(want, charged); diff != "" || len(noted) > 0 {
				t.Fatalf("charges (-enforced,+advised):\n%s\nnoted: %v", diff, noted)
			}
			return
		}
		outcomes["refused"]++
		refusal, ok := errors.AsType[*Refusal](err)
		if first := slices.Min(slices.Collect(maps.Keys(noted))); !ok || refusal.Quota != first || refusal.Message != noted[first] {
			t.Fatalf("refused with %v, and noted %v", err, noted)
		}
	})
	if outcomes["granted"] == 0 || outcomes["refused"] == 0 {
		t.Errorf("got %v, want both", outcomes)
	}
}
