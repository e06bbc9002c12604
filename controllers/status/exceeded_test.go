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
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

const (
	admittedThen = "pods: used 12, hard 10, 2 above it, admitted while the operator couldn't decide"
	denyAgain    = "; nothing is removed, and requests for more are refused while the operator can decide, until used is below hard: " +
		"delete unneeded objects, or raise spec.quota.hard; set spec.enforcement.whenUnavailable to Refuse " +
		"to have requests refused while the operator can't decide"
	refusedNow = "; nothing is removed, and requests for more are refused, until used is below hard: delete unneeded objects, or raise spec.quota.hard"
	admitsNow  = "; admitted by the mode Audit, nothing is removed or refused: delete unneeded objects, or raise spec.quota.hard, before you set the mode to Deny"
)

// admittedUnavailable: the quota admits while requests can't be decided, was within its limits before, and isn't any
// more.
func admittedUnavailable(f *facts) {
	f.admits = true
	f.remembered = remembered{
		generation: 2, selected: digestOf(func(yield func(string) bool) { yield("a") }),
		within: map[corev1.ResourceName]bool{"pods": true, "services": true},
	}
	f.slices = map[string]corev1.ResourceList{"a": list("pods", "12", "services", "1")}
}

func TestWhyMoreIsUsedThanHard(t *testing.T) {
	saying := func(message string) *metav1.Condition {
		return &metav1.Condition{Type: quotav1.ConditionExceeded, Reason: quotav1.ReasonAdmittedWhileUnavailable, Status: metav1.ConditionTrue, Message: message}
	}
	above := func(f *facts) {
		f.slices = map[string]corev1.ResourceList{"a": list("pods", "12", "services", "6")}
	}
	const bare, both = "pods: used 12, hard 10", "pods: used 12, hard 10, services: used 6, hard 5"
	for name, test := range map[string]struct {
		changes         []func(*facts)
		reason, message string
	}{
		"a limit was lowered": {changes: []func(*facts){above}, reason: quotav1.ReasonUsedAboveHard, message: both + refusedNow},
		"by the mode Audit": {
			changes: []func(*facts){above, func(f *facts) { f.enforcement.Mode = quotav1.EnforcementAudit }},
			reason:  quotav1.ReasonAdmittedAboveHard,
			message: both + admitsNow,
		},
		"requests were admitted": {
			changes: []func(*facts){admittedUnavailable}, reason: quotav1.ReasonAdmittedWhileUnavailable, message: admittedThen + denyAgain,
		},
		"requests were admitted, and more was used before of another resource": {
			changes: []func(*facts){admittedUnavailable, above, func(f *facts) { f.remembered.within["services"] = false }},
			reason:  quotav1.ReasonAdmittedWhileUnavailable, message: admittedThen + ", services: used 6, hard 5" + denyAgain,
		},
		"another leader knew that, and something has changed since": {
			changes: []func(*facts){above, func(f *facts) {
				f.remembered = remembered{generation: 1, exceeded: saying(strings.ReplaceAll(admittedThen, "2", "3") + denyAgain)}
			}},
			reason: quotav1.ReasonAdmittedWhileUnavailable, message: admittedThen + ", services: used 6, hard 5" + denyAgain,
		},
		"another leader knew that, and the limit is another one by now": {
			changes: []func(*facts){above, func(f *facts) {
				f.remembered = remembered{generation: 1, exceeded: saying(strings.ReplaceAll(admittedThen, "hard 10", "hard 11") + denyAgain)}
			}},
			reason: quotav1.ReasonUsedAboveHard, message: bare + ", services: used 6, hard 5" + refusedNow,
		},
		"another leader knew that, and this one counts": {
			changes: []func(*facts){func(f *facts) {
				f.uncounted = []corev1.ResourceName{"pods"}
				f.remembered.exceeded = saying(admittedThen + denyAgain)
			}},
			reason: quotav1.ReasonAdmittedWhileUnavailable, message: admittedThen + denyAgain,
		},
		"no more, once used is below hard": {
			changes: []func(*facts){func(f *facts) { f.remembered.exceeded = saying(admittedThen + denyAgain) }},
			reason:  quotav1.ReasonWithinLimits, message: "used is nowhere above hard",
		},
		"the limits of an invalid spec aren't known": {
			changes: []func(*facts){func(f *facts) {
				f.invalid, f.slices, f.countedGeneration = errors.New("no selector"), nil, 0
				f.remembered.exceeded = saying(admittedThen + denyAgain)
			}},
			reason: quotav1.ReasonInvalidSpec, message: "nothing is counted while the spec is invalid: correct it; the condition Ready says what is wrong",
		},
		"the quota refuses while requests can't be decided": {
			changes: []func(*facts){admittedUnavailable, func(f *facts) { f.admits = false }},
			reason:  quotav1.ReasonUsedAboveHard, message: bare + refusedNow,
		},
		"its spec changed": {
			changes: []func(*facts){admittedUnavailable, func(f *facts) { f.remembered.generation = 1 }},
			reason:  quotav1.ReasonUsedAboveHard, message: bare + refusedNow,
		},
		"a namespace joined": {
			changes: []func(*facts){admittedUnavailable, func(f *facts) { f.slices["b"] = list("pods", "0") }},
			reason:  quotav1.ReasonUsedAboveHard, message: bare + refusedNow,
		},
		"a namespace joined a moment ago": {
			changes: []func(*facts){admittedUnavailable, func(f *facts) { f.remembered.since = f.now.Add(-joinedFor + time.Second) }},
			reason:  quotav1.ReasonUsedAboveHard, message: bare + refusedNow,
		},
		"a namespace is selected that is never limited": {
			changes: []func(*facts){admittedUnavailable, func(f *facts) { f.protected = []string{"kube-system"} }},
			reason:  quotav1.ReasonUsedAboveHard, message: bare + refusedNow,
		},
		"a client removed the webhook": {
			changes: []func(*facts){admittedUnavailable, func(f *facts) { f.verdict.Enforcement = webhookconfig.Edited }},
			reason:  quotav1.ReasonUsedAboveHard, message: bare + refusedNow,
		},
		"it was so before": {
			changes: []func(*facts){admittedUnavailable, func(f *facts) { f.remembered.within["pods"] = false }},
			reason:  quotav1.ReasonUsedAboveHard, message: bare + refusedNow,
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := good(test.changes...).status(team("pods", "10", "services", "5"))
			got := meta.FindStatusCondition(status.Conditions, quotav1.ConditionExceeded)
			if diff := cmp.Diff(test.message, got.Message); got.Reason != test.reason || diff != "" {
				t.Errorf("got %s, want %s, message (-want,+got):\n%s", got.Reason, test.reason, diff)
			}
		})
	}
}

// A message says no more than a person reads, and another leader reads it.
func TestAMessageSaysOfWhichResourcesRequestsWereAdmittedUnchecked(t *testing.T) {
	message := "pods: used 5, hard 4, 1 above it, admitted while the operator couldn't decide, " +
		"secrets: used 5, hard 1k, 1 above it, admitted while the operator couldn't decide, services: used 9, hard 8; nothing is removed"
	got := saidUnavailable(&metav1.Condition{Reason: quotav1.ReasonAdmittedWhileUnavailable, Message: message})
	if diff := cmp.Diff(map[corev1.ResourceName]string{"pods": "4", "secrets": "1k"}, got); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

// The operator was away, or the ledger couldn't be written. It is told once, and known to each leader as long as it is so.
func TestItIsToldOnceThatRequestsWereAdmittedWhileNobodyCouldDecide(t *testing.T) {
	quota := team("configmaps", "10")
	quota.Spec.Enforcement.WhenUnavailable = quotav1.UnavailableAdmit
	b := newBench(t, quota, registered())
	after := func(leader *bench, used int) (told, reason string) {
		if used > 0 {
			leader.counts(t, quota, used)
		}
		told = leader.toldOf(t)
		return told, meta.FindStatusCondition(leader.status(t).Conditions, quotav1.ConditionExceeded).Reason
	}
	next := func(leader *bench) *bench {
		current := &quotav1.ClusterResourceQuota{}
		if err := leader.client.Get(t.Context(), client.ObjectKey{Name: "team"}, current); err != nil {
			t.Fatal(err)
		}
		return newBench(t, current, registered())
	}
	if told, reason := after(b, 7); told != "" || reason != quotav1.ReasonWithinLimits {
		t.Fatalf("told %q, reason %s", told, reason)
	}
	b = next(b)
	_, _ = after(b, 0)
	b.clock.Step(beginningFor)
	if told, reason := after(b, 0); told != "" || reason != quotav1.ReasonCounting {
		t.Fatalf("before it has counted: told %q, reason %s", told, reason)
	}
	told, reason := after(b, 12) // the second event is of no field, so its text comes third
	if told != "UsedAboveHard: configmaps:" || reason != quotav1.ReasonAdmittedWhileUnavailable {
		t.Fatalf("told %q, reason %s", told, reason)
	}
	want := "team  AdmittedWhileUnavailable: " + strings.ReplaceAll(admittedThen, "pods", "configmaps") + denyAgain
	if diff := cmp.Diff(want, b.told[1]); diff != "" {
		t.Errorf("told (-want,+got):\n%s", diff)
	}
	if told, reason = after(b, 11); told != "" || reason != quotav1.ReasonAdmittedWhileUnavailable {
		t.Errorf("with less: told %q, reason %s", told, reason)
	}
	b = next(b)
	if told, reason = after(b, 0); told != "" || reason != quotav1.ReasonAdmittedWhileUnavailable {
		t.Errorf("by another leader, before it has counted: told %q, reason %s", told, reason)
	}
	if told, reason = after(b, 11); told != "" || reason != quotav1.ReasonAdmittedWhileUnavailable {
		t.Errorf("by another leader: told %q, reason %s", told, reason)
	}
	if told, reason = after(b, 10); told != "" || reason != quotav1.ReasonWithinLimits {
		t.Errorf("within hard again: told %q, reason %s", told, reason)
	}
	for range 10 {
		b.clock.Step(time.Second)
	}
	if _, reason = after(b, 11); reason != quotav1.ReasonAdmittedWhileUnavailable {
		t.Errorf("above it again: reason %s", reason)
	}
}
