// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// progressIn returns which of the two conditions a status has, with its reason and how its message begins.
func progressIn(status quotav1.ClusterResourceQuotaStatus) string {
	var found []string
	for _, kind := range []string{quotav1.ConditionReconciling, quotav1.ConditionStalled} {
		if one := meta.FindStatusCondition(status.Conditions, kind); one != nil {
			because, _, _ := strings.Cut(one.Message, ": ")
			found = append(found, one.Type+"="+string(one.Status)+" "+one.Reason+": "+because)
		}
	}
	return strings.Join(found, "; ")
}

func TestProgressTowardsTheSpec(t *testing.T) {
	problem := func(reason string) func(*facts) {
		return func(f *facts) { f.problems = append(f.problems, Problem{Reason: reason, Message: "see"}) }
	}
	enforcement := func(of webhookconfig.Enforcement) func(*facts) {
		return func(f *facts) { f.verdict = webhookconfig.Verdict{Enforcement: of} }
	}
	counting := func(f *facts) { f.countedGeneration = 1 }
	invalid := func(f *facts) { f.invalid, f.slices, f.countedGeneration = errors.New("no selector"), nil, 0 }
	troubled := func(f *facts) { f.trouble = &driver.Trouble{Since: moment, Err: errors.New("etcd is full")} }
	for name, test := range map[string]struct {
		facts facts
		want  string
	}{
		"in force":                    {facts: good()},
		"exceeded is in force":        {facts: good(func(f *facts) { f.slices = map[string]corev1.ResourceList{"a": list("pods", "11")} })},
		"protected ones are selected": {facts: good(func(f *facts) { f.protected = []string{"kube-system"} })},
		"counting":                    {facts: good(counting), want: "Reconciling=True Progressing: Ready is False, Counting"},
		"counted, not yet enforced": {
			facts: good(enforcement(webhookconfig.Uncovered)), want: "Reconciling=True Progressing: Enforced is False, WebhookPending",
		},
		"not served yet": {
			facts: good(problem(quotav1.ReasonNotServed)), want: "Reconciling=True Progressing: ResourceUnavailable is True, NotServed",
		},
		"not watchable, though counted before": {
			facts: good(problem(quotav1.ReasonNotWatchable)),
			want:  "Reconciling=True ProgressingWithRetry: ResourceUnavailable is True, NotWatchable",
		},
		"the ledger fails": {
			facts: good(troubled), want: "Reconciling=True ProgressingWithRetry: Ready is False, LedgerUnavailable",
		},
		"what must be mended comes before what only takes time": {
			facts: good(counting, enforcement(webhookconfig.Unprovable)),
			want:  "Reconciling=True ProgressingWithRetry: Enforced is False, ProbeFailed",
		},
		"an invalid spec": {facts: good(invalid), want: "Stalled=True InvalidSpec: Ready is False, InvalidSpec"},
		"a spec that can't come into force is known before all is counted": {
			facts: good(counting, misnamed("storage")),
			want:  "Stalled=True NotLimitable: ResourceUnavailable is True, NotLimitable",
		},
		"cluster-scoped objects, beside what isn't served": {
			facts: good(problem(quotav1.ReasonNotServed), problem(quotav1.ReasonNotLimitable)),
			want:  "Stalled=True NotLimitable: ResourceUnavailable is True, NotServed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, progressIn(test.facts.status(team("pods", "10")))); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// misnamed is that Kubernetes keeps no quota on these names.
func misnamed(names ...corev1.ResourceName) func(*facts) {
	return func(f *facts) { f.limitNothing(nil, names, func(corev1.ResourceName) string { return "" }) }
}

func TestNamesThatLimitNothing(t *testing.T) {
	jobs, nodes := schema.GroupResource{Resource: "jobs"}, schema.GroupResource{Resource: "nodes"}
	gadgets := schema.GroupResource{Group: "example.com", Resource: "gadgets"}
	tracked := map[schema.GroupResource][]corev1.ResourceName{
		jobs: {"count/jobs"}, gadgets: {"count/gadgets.example.com"}, nodes: {"count/nodes"},
	}
	known := good(func(f *facts) {
		f.uncounted = []corev1.ResourceName{"count/gadgets.example.com", "count/jobs", "count/nodes"}
		f.problems = []Problem{
			{Resource: gadgets, Reason: quotav1.ReasonNotServed, Message: "no gadgets"},
			{Resource: jobs, Reason: quotav1.ReasonNotServed, Message: "no jobs"},
			{Resource: nodes, Reason: quotav1.ReasonNotLimitable, Message: "no nodes"},
		}
	})
	known.limitNothing(tracked, []corev1.ResourceName{"limits.example.com/gpu"}, func(name corev1.ResourceName) string {
		return map[corev1.ResourceName]string{
			"count/jobs": "count/jobs.batch", "count/nodes": "count/modes", "limits.example.com/gpu": "requests.example.com/gpu",
		}[name]
	})
	got := known.status(team("pods", "10"))
	for _, want := range []string{
		"Ready True Counted: ",
		"ResourceUnavailable True NotLimitable: names in spec.quota.hard that limit nothing: limits.example.com/gpu (write requests.example.com/gpu), " +
			"count/jobs (write count/jobs.batch); correct or remove them; no gadgets; no nodes",
		"Stalled True NotLimitable: ",
	} {
		kind, rest, _ := strings.Cut(want, " ")
		found := meta.FindStatusCondition(got.Conditions, kind)
		if found == nil || !strings.HasPrefix(string(found.Status)+" "+found.Reason+": "+found.Message, rest) {
			t.Errorf("got %+v, want %s", found, want)
		}
	}
	if _, shown := got.Total.Used["count/jobs"]; shown {
		t.Error("nobody has counted it")
	}
}

func TestWhatNoGroupServesIsWaitedFor(t *testing.T) {
	gadgets := schema.GroupResource{Group: "example.com", Resource: "gadgets"}
	for reason, want := range map[string]string{
		quotav1.ReasonNotServed:    "Reconciling=True Progressing: ResourceUnavailable is True, NotServed",
		quotav1.ReasonNotWatchable: "Reconciling=True ProgressingWithRetry: ResourceUnavailable is True, NotWatchable",
	} {
		known := good(func(f *facts) {
			f.uncounted = []corev1.ResourceName{"count/gadgets.example.com"}
			f.problems = []Problem{{Resource: gadgets, Reason: reason, Message: "no gadgets"}}
		})
		known.limitNothing(map[schema.GroupResource][]corev1.ResourceName{gadgets: known.uncounted}, nil,
			func(corev1.ResourceName) string { return "" })
		status := known.status(team("pods", "10"))
		ready := meta.IsStatusConditionTrue(status.Conditions, quotav1.ConditionReady)
		if got := progressIn(status); got != want || ready != (reason == quotav1.ReasonNotServed) {
			t.Errorf("ready %v, %s, want %s", ready, got, want)
		}
	}
}

// kstatus takes an absent condition for a spec in force.
func TestProgressEnds(t *testing.T) {
	object := team("pods", "10")
	for _, before := range []facts{
		good(func(f *facts) { f.countedGeneration = 1 }),
		good(func(f *facts) { f.invalid = errors.New("no selector") }),
	} {
		object.Status = before.status(object)
		if progressIn(object.Status) == "" {
			t.Fatal("there is nothing to end")
		}
		after := good().status(object)
		if found := progressIn(after); found != "" {
			t.Errorf("got %s, want neither", found)
		}
		if !presses(object.Status, after) {
			t.Error("the end must not wait")
		}
	}
}

func TestProgressKeepsItsTime(t *testing.T) {
	object := team("pods", "10")
	object.Status = good(func(f *facts) { f.countedGeneration = 1 }).status(object)
	later := good(func(f *facts) {
		f.now, f.verdict = moment.Add(time.Hour), webhookconfig.Verdict{Enforcement: webhookconfig.Uncovered}
	})
	found := meta.FindStatusCondition(later.status(object).Conditions, quotav1.ConditionReconciling)
	if found == nil || !found.LastTransitionTime.Equal(&metav1.Time{Time: moment}) {
		t.Errorf("got %+v, want it since %s", found, moment)
	}
}
