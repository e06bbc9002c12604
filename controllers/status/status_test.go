// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

var moment = time.Unix(5000, 0)

func list(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func team(hard ...string) *quotav1.ClusterResourceQuota {
	return &quotav1.ClusterResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "uid", Generation: 2},
		Spec: quotav1.ClusterResourceQuotaSpec{
			Selector: quotav1.ClusterResourceQuotaSelector{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}},
			},
			Quota: quotav1.ResourceQuotaSpec{Hard: list(hard...)},
		},
	}
}

// good are facts of a quota that works, with these changes.
func good(changes ...func(*facts)) facts {
	facts := facts{
		now: moment, generation: 2, selector: "team=shop", countedGeneration: 2,
		verdict:  webhookconfig.Verdict{Enforcement: webhookconfig.Proved, Coverage: webhookconfig.Exact},
		slices:   map[string]corev1.ResourceList{"b": list("pods", "2"), "a": list("pods", "1")},
		ledger:   ledger.State{Basis: ledger.Basis{Quota: "uid", Generation: 2}, Used: list("pods", "3")},
		reserved: list("pods", "1"),
	}
	for _, change := range changes {
		change(&facts)
	}
	return facts
}

func TestTheStatusOfAQuotaThatWorks(t *testing.T) {
	got := good().status(team("pods", "10"))
	want := quotav1.ClusterResourceQuotaStatus{
		ObservedGeneration: 2, Selector: "team=shop", NamespaceCount: 2, Summary: "pods: 3/10",
		Total:    corev1.ResourceQuotaStatus{Hard: list("pods", "10"), Used: list("pods", "3")},
		Reserved: list("pods", "1"),
		Namespaces: []quotav1.ResourceQuotaStatusByNamespace{
			{Namespace: "a", Status: corev1.ResourceQuotaStatus{Hard: list("pods", "10"), Used: list("pods", "1")}},
			{Namespace: "b", Status: corev1.ResourceQuotaStatus{Hard: list("pods", "10"), Used: list("pods", "2")}},
		},
		Conditions: []metav1.Condition{
			conditionAt(moment, quotav1.ConditionReady, metav1.ConditionTrue, quotav1.ReasonCounted, "usage is counted and follows every change"),
			conditionAt(moment, quotav1.ConditionEnforced, metav1.ConditionTrue, quotav1.ReasonWebhookConfigured,
				"every request that the quota limits is checked"),
			conditionAt(moment, quotav1.ConditionExceeded, metav1.ConditionFalse, quotav1.ReasonWithinLimits, "used is nowhere above hard"),
			conditionAt(moment, quotav1.ConditionResourceUnavailable, metav1.ConditionFalse, quotav1.ReasonAllAvailable,
				"every limited resource can be counted"),
			conditionAt(moment, quotav1.ConditionProtectedSelected, metav1.ConditionFalse, quotav1.ReasonNoneProtected,
				"no protected namespace is selected"),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want,+got):\n%s", diff)
	}
}

func conditionAt(since time.Time, kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(since),
	}
}

// unchecked is said of a quota that admits requests while no replica answers.
const unchecked = "every request that the quota limits is checked; while no replica answers, requests are admitted unchecked, " +
	"unless another quota of their namespace has them refused: "

func TestFiguresOfAStatus(t *testing.T) {
	for name, test := range map[string]struct {
		quota    *quotav1.ClusterResourceQuota
		facts    facts
		used     corev1.ResourceList
		reserved corev1.ResourceList
		summary  string
	}{
		"nothing is used of a quota without namespaces": {
			quota: team("pods", "10"), facts: good(func(f *facts) { f.slices = nil }),
			used: list("pods", "0"), reserved: list("pods", "1"), summary: "pods: 0/10",
		},
		"what is being counted is left out": {
			quota: team("pods", "10", "services", "5"), facts: good(func(f *facts) {
				f.slices = map[string]corev1.ResourceList{"a": list("pods", "1", "services", "0")}
				f.uncounted = []corev1.ResourceName{"services"}
			}),
			used: list("pods", "1"), reserved: list("pods", "1"), summary: "pods: 1/10, services: ?/5",
		},
		"so is what can't be limited": {
			quota: team("pods", "10", "count/events", "5"), facts: good(func(f *facts) {
				f.slices = map[string]corev1.ResourceList{"a": list("pods", "1", "count/events", "0")}
				f.idle = []corev1.ResourceName{"count/events"}
			}),
			used: list("pods", "1"), reserved: list("pods", "1"), summary: "count/events: ?/5, pods: 1/10",
		},
		"before the first count nothing is claimed": {
			quota: team("pods", "10"), facts: good(func(f *facts) {
				f.slices, f.countedGeneration, f.ledger, f.reserved = nil, 0, ledger.State{}, nil
			}),
			summary: "pods: ?/10",
		},
		"nor for what an invalid spec limits": {
			quota: team("pods", "10"), facts: good(func(f *facts) {
				f.invalid, f.slices, f.countedGeneration = errors.New("no selector"), nil, 0
				f.ledger, f.reserved = ledger.State{}, nil
			}),
			summary: "pods: ?/10",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.facts.status(test.quota)
			if !quota.Equals(test.used, got.Total.Used) || !quota.Equals(test.reserved, got.Reserved) {
				t.Errorf("got used %v, reserved %v, want %v and %v", got.Total.Used, got.Reserved, test.used, test.reserved)
			}
			if got.Summary != test.summary {
				t.Errorf("summary: got %s, want %s", got.Summary, test.summary)
			}
		})
	}
}

func watching(f *facts) { f.enforcement.Mode = quotav1.EnforcementAudit }

const (
	correctIt    = "; correct or remove them"
	correctError = "correct what the error names; if it names nothing, check the operator's RBAC, other webhooks and policies, " +
		"and etcd's free space"
	lookAtLog = "if it lasts, look at the log of the operator's leader, the pod that holds the Lease shared-quota-operator"
)

// A want that ends with an ellipsis is the beginning of a condition that another row has in full.
func TestConditions(t *testing.T) {
	for name, test := range map[string]struct {
		facts facts
		want  string
	}{
		"it isn't ready before the first count": {
			facts: good(func(f *facts) { f.countedGeneration = 0 }),
			want: "Ready False Counting: counting what the selected namespaces use: requests for what is limited are refused until " +
				"that is done; wait, and " + lookAtLog,
		},
		"nor before a resource was counted": {
			facts: good(func(f *facts) { f.uncounted = []corev1.ResourceName{"services", "pods"} }),
			want: "Ready False Counting: some resources are not counted yet (pods, services), so requests for them are refused until they are; " +
				"wait, and if it lasts, look at the condition ResourceUnavailable, and at the log of the operator's leader",
		},
		"nor while the count is for an older spec": {
			facts: good(func(f *facts) { f.countedGeneration = 1 }),
			want:  "Ready False Counting: counting what the selected namespaces use:…",
		},
		"a quota that only watches refuses nothing meanwhile": {
			facts: good(watching, func(f *facts) { f.countedGeneration = 0 }),
			want: "Ready False Counting: counting what the selected namespaces use: requests for what is limited are admitted " +
				"until that is done; wait, and " + lookAtLog,
		},
		"a quota that only watches refuses nothing if its spec is invalid": {
			facts: good(watching, func(f *facts) { f.invalid, f.refusing = errors.New("invalid"), true }),
			want: "Enforced False InvalidSpec: no request is judged, because an invalid spec doesn't say how much it allows, and " +
				"none is refused, because the mode is Audit: correct the spec; the condition Ready says what is wrong",
		},
		"nor when its spec is invalid": {
			facts: good(func(f *facts) { f.invalid = errors.New("quota team: spec.selector: Required value") }),
			want:  "Ready False InvalidSpec: quota team: spec.selector: Required value: correct the spec",
		},
		"an invalid spec refuses what it names": {
			facts: good(func(f *facts) { f.invalid, f.refusing = errors.New("invalid"), true }),
			want: "Enforced False InvalidSpec: every request for what spec.quota.hard names is refused, in the namespaces that the " +
				"valid part of the selector selects, because an invalid spec doesn't say how much it allows: correct it; the " +
				"condition Ready says what is wrong",
		},
		"or limits nothing": {
			facts: good(func(f *facts) { f.invalid = errors.New("invalid") }),
			want: "Enforced False InvalidSpec: nothing is limited, because no part of the selector is valid, or Kubernetes keeps " +
				"no quota on what spec.quota.hard names: correct the spec; the condition Ready says what is wrong",
		},
		"nor is one whose rules are missing": {
			facts: good(func(f *facts) { f.verdict = webhookconfig.Verdict{Enforcement: webhookconfig.Uncovered} }),
			want: "Enforced False WebhookPending: the webhook is not called yet for every resource that is limited, in every " +
				"namespace that is selected: wait, and " + lookAtLog,
		},
		"nor is one that somebody else edits": {
			facts: good(func(f *facts) {
				f.verdict = webhookconfig.Verdict{Enforcement: webhookconfig.Edited, Edit: "x edited it"}
			}),
			want: "Enforced False WebhookEdited: x edited it: requests that the quota limits may pass unchecked until the " +
				"API server has loaded the operator's repair; wait, and if it happens again, find the client in the audit log, " +
				"and keep it from changing this configuration",
		},
		"nor is one that nobody has looked at yet": {
			facts: good(func(f *facts) { f.verdict = webhookconfig.Verdict{} }),
			want:  "Enforced False WebhookPending: the webhook is not called yet for every…",
		},
		"nor is one of which that is known of an older spec": {
			facts: good(func(f *facts) {
				f.verdict, f.before = webhookconfig.Verdict{}, &metav1.Condition{Status: metav1.ConditionTrue, ObservedGeneration: 1}
			}),
			want: "Enforced False WebhookPending: the webhook is not called yet for every…",
		},
		"what the leader before knew is known until this one knows more": {
			facts: good(func(f *facts) {
				before := conditionAt(moment, quotav1.ConditionEnforced, metav1.ConditionTrue, quotav1.ReasonWebhookConfigured, "checked")
				f.verdict, f.before = webhookconfig.Verdict{}, &before
			}),
			want: "Enforced True WebhookConfigured: checked",
		},
		"what the API server hasn't loaded isn't enforced": {
			facts: good(func(f *facts) { f.verdict.Enforcement = webhookconfig.Unproved }),
			want: "Enforced False WebhookPending: the webhook configuration covers the quota, and the API server has not loaded it " +
				"yet: wait, and " + lookAtLog,
		},
		"a probe that fails says how": {
			facts: good(func(f *facts) {
				f.verdict.Enforcement, f.verdict.Failure = webhookconfig.Unprovable, "connection refused"
			}),
			want: "Enforced False ProbeFailed: it is not known whether requests are checked, because the operator's own test " +
				"request fails: connection refused: see that the API server reaches the operator's Service, and that no other " +
				"webhook or policy refuses the dry run of a QuotaLedger",
		},
		"and one that never ends": {
			facts: good(func(f *facts) { f.verdict.Enforcement = webhookconfig.Unprovable }),
			want: "Enforced False ProbeFailed: it is not known whether requests are checked, because the operator's own test " +
				"request fails: it gets no answer: see that the API server reaches the operator's Service, and that no other " +
				"webhook or policy refuses the dry run of a QuotaLedger",
		},
		"what is asked in other namespaces is said": {
			facts: good(func(f *facts) { f.verdict.Coverage = webhookconfig.Wide }),
			want: "Enforced True WebhookConfigured: every request that the quota limits is checked; the webhook is also called in " +
				"namespaces that are not selected, so requests there for what is limited may fail or take longer while the operator " +
				"is down, because a webhook can't select by annotations, or by selectors that are too many or too large; select by a label that several quotas share to avoid it",
		},
		"and what is admitted while nobody answers": {
			facts: good(func(f *facts) { f.admits = true }),
			want: "Enforced True WebhookConfigured: " +
				unchecked +
				"the operator runs with --failure-policy=Ignore; set spec.enforcement.whenUnavailable to Refuse to have them " +
				"refused",
		},
		"because the quota says so": {
			facts: good(func(f *facts) { f.admits, f.enforcement.WhenUnavailable = true, quotav1.UnavailableAdmit }),
			want: "Enforced True WebhookConfigured: " +
				unchecked +
				"spec.enforcement.whenUnavailable is Admit; set spec.enforcement.whenUnavailable to Refuse to have them refused",
		},
		"because it refuses nothing": {
			facts: good(func(f *facts) { f.admits, f.enforcement.Mode = true, quotav1.EnforcementAudit }),
			want: "Enforced True WebhookConfigured: " +
				unchecked +
				"the mode is Audit; set spec.enforcement.mode to Deny and whenUnavailable to Refuse to have them refused; Deny also refuses what doesn't fit",
		},
		"a ledger that can't be written admits, if the quota does": {
			facts: good(func(f *facts) {
				f.admits, f.trouble = true, &driver.Trouble{Since: moment, Err: errors.New("etcd is full")}
			}),
			want: "Ready False LedgerUnavailable: since 1970-01-01T01:23:20Z the operator can't read or write this quota's QuotaLedger, so " +
				"requests that the quota limits are admitted unchecked: etcd is full; " + correctError,
		},
		"a ledger that can't be written says since when, and why": {
			facts: good(func(f *facts) { f.trouble = &driver.Trouble{Since: moment, Err: errors.New("etcd is full")} }),
			want: "Ready False LedgerUnavailable: since 1970-01-01T01:23:20Z the operator can't read or write this quota's QuotaLedger, so " +
				"requests that the quota limits are refused: etcd is full; " + correctError,
		},
		"a ledger that doesn't take the count says since when, and why": {
			facts: good(func(f *facts) {
				f.trouble = &driver.Trouble{Since: moment, Untaken: true, Err: errors.New("it is of generation 9")}
			}),
			want: "Ready False NotSettled: since 1970-01-01T01:23:20Z the operator could not store a new count in the quota's ledger (it is " +
				"of generation 9), so deleted objects free no room, and requests may be refused because usage is unknown; wait, and " +
				"if it lasts, look at the log of the operator's leader; if the reason in brackets is a refusal, correct the policy " +
				"or webhook that it names",
		},
		"a ledger that was lost": {
			facts: good(func(f *facts) { f.ledger.Sealed, f.sealedUntil = moment, moment.Add(time.Minute) }),
			want: "Ready False LedgerLost: the quota's ledger was deleted, edited or restored at about 1970-01-01T01:23:20Z, so requests that " +
				"the quota limits are refused until 1970-01-01T01:24:20Z: by then the requests that were under way have ended, and " +
				"their objects are counted; if nobody restored a backup, find the client that wrote quotaledgers in the audit log, and " +
				"remove its right; if this condition stays after that time, look at the log of the operator's leader",
		},
		"what is used may reach the limit": {
			facts: good(func(f *facts) { f.slices = map[string]corev1.ResourceList{"a": list("pods", "10", "services", "5")} }),
			want:  "Exceeded False WithinLimits: used is nowhere above hard",
		},
		"what is reserved with it doesn't exceed": {
			facts: good(func(f *facts) {
				f.slices = map[string]corev1.ResourceList{"a": list("pods", "10")}
				f.ledger.Reservations = map[ledger.Key]ledger.Reservation{{UID: "x"}: {Amounts: list("pods", "5")}}
			}),
			want: "Exceeded False WithinLimits: used is nowhere above hard",
		},
		"what is used above the limit is named, by all namespaces together": {
			facts: good(func(f *facts) {
				f.slices = map[string]corev1.ResourceList{"a": list("pods", "8", "services", "6"), "b": list("pods", "3")}
			}),
			want: "Exceeded True UsedAboveHard: pods: used 11, hard 10, services: used 6, hard 5; nothing is removed, and requests " +
				"for more are refused, until used is below hard: delete unneeded objects, or raise spec.quota.hard",
		},
		"also while something else is counted": {
			facts: good(func(f *facts) {
				f.slices = map[string]corev1.ResourceList{"a": list("pods", "11", "services", "0")}
				f.uncounted = []corev1.ResourceName{"services"}
			}),
			want: "Exceeded True UsedAboveHard: pods: used 11, hard 10; nothing is removed, and requests for more are refused, " +
				"until used is below hard: delete unneeded objects, or raise spec.quota.hard",
		},
		"nothing is claimed before everything is counted": {
			facts: good(func(f *facts) { f.uncounted = []corev1.ResourceName{"services"} }),
			want:  "Exceeded Unknown Counting: not everything is counted yet: wait; the condition Ready says for what",
		},
		"nor before anything is": {
			facts: good(func(f *facts) { f.slices, f.countedGeneration = nil, 0 }),
			want:  "Exceeded Unknown Counting: not everything is counted yet: wait; the condition Ready says for what",
		},
		"nor while the spec is invalid": {
			facts: good(func(f *facts) { f.invalid, f.slices, f.countedGeneration = errors.New("invalid"), nil, 0 }),
			want: "Exceeded Unknown InvalidSpec: nothing is counted while the spec is invalid: correct it; the condition Ready " +
				"says what is wrong",
		},
		"no protected namespace is selected": {
			facts: good(func(*facts) {}),
			want:  "ProtectedSelected False NoneProtected: no protected namespace is selected",
		},
		"those that are, are named": {
			facts: good(func(f *facts) { f.protected = []string{"kube-public", "kube-system"} }),
			want: "ProtectedSelected True ProtectedNamespaces: selected and counted, but never limited, so that the cluster can " +
				"heal itself: kube-public, kube-system; exclude them by the selector",
		},
		"what can't be limited is named": {
			facts: good(misnamed("count/events", "storage")),
			want:  "ResourceUnavailable True NotLimitable: names in spec.quota.hard that limit nothing: count/events, storage" + correctIt,
		},
		"so is what can't be counted": {
			facts: good(func(f *facts) { f.problems = []Problem{{Reason: quotav1.ReasonNotServed, Message: "no widgets"}} }),
			want:  "ResourceUnavailable True NotServed: no widgets",
		},
		"one sentence is about all resources that aren't served": {
			facts: good(func(f *facts) {
				for _, name := range []string{"gadgets", "widgets"} {
					resource := schema.GroupResource{Group: "example.com", Resource: name}
					f.problems = append(f.problems, Problem{
						Resource: resource, Reason: quotav1.ReasonNotServed, Message: outcomes.NotServedHere.Text(resource),
					})
				}
			}),
			want: "ResourceUnavailable True NotServed: the cluster doesn't serve gadgets.example.com, widgets.example.com; counting begins " +
				"once it does: install what defines this, or remove it from spec.quota.hard",
		},
		"and all of it at a time, by the first reason": {
			facts: good(func(f *facts) {
				misnamed("storage")(f)
				f.problems = []Problem{{Reason: quotav1.ReasonNotServed, Message: "no widgets"}, {Reason: quotav1.ReasonNotWatchable, Message: "no gadgets"}}
			}),
			want: "ResourceUnavailable True NotLimitable: names in spec.quota.hard that limit nothing: storage" + correctIt + "; no widgets; no gadgets",
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind, _, _ := strings.Cut(test.want, " ")
			condition := meta.FindStatusCondition(test.facts.status(team("pods", "10", "services", "5")).Conditions, kind)
			got := fmt.Sprintf("%s %s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
			if beginning, cut := strings.CutSuffix(test.want, "…"); cut && strings.HasPrefix(got, beginning) {
				return
			}
			if got != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

func TestAConditionKeepsTheTimeOfItsTransition(t *testing.T) {
	object := team("pods", "10")
	object.Status = good(func(f *facts) { f.verdict = webhookconfig.Verdict{Enforcement: webhookconfig.Uncovered} }).status(object)
	later := good(func(f *facts) { f.now = moment.Add(time.Hour) }).status(object)
	for kind, want := range map[string]time.Time{
		quotav1.ConditionReady: moment, quotav1.ConditionResourceUnavailable: moment, quotav1.ConditionEnforced: moment.Add(time.Hour),
	} {
		if got := meta.FindStatusCondition(later.Conditions, kind).LastTransitionTime; !got.Time.Equal(want) {
			t.Errorf("%s: got since %s, want since %s", kind, got, want)
		}
	}
	if got := meta.FindStatusCondition(object.Status.Conditions, quotav1.ConditionEnforced).Status; got != metav1.ConditionFalse {
		t.Errorf("the object's own condition was changed to %s", got)
	}
}
