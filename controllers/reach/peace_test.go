// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// edit is what somebody else does to the configuration.
type edit func(current *admissionregistrationv1.ValidatingWebhookConfiguration)

// requires adds a requirement to every selector of namespaces that lacks it.
func requires(key string) edit {
	return func(current *admissionregistrationv1.ValidatingWebhookConfiguration) {
		for i := range current.Webhooks {
			selector := current.Webhooks[i].NamespaceSelector
			selector.MatchExpressions = append(selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist})
		}
	}
}

func failsOpen(current *admissionregistrationv1.ValidatingWebhookConfiguration) {
	ignore := admissionregistrationv1.Ignore
	current.Webhooks[1].FailurePolicy = &ignore
}

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// newContested is a controller that has written the configuration of one quota.
func newContested(t *testing.T) *tokened {
	t.Helper()
	quota := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "uid", Generation: 1}}
	quota.Spec.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	quota.Spec.Quota.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
	c := newTokened(t, quota, namespace("shop", map[string]string{"team": "shop"}), namespace("plane", map[string]string{"plane": "x"}))
	c.reconciled(t)
	c.now.Step(cacheDelay)
	c.writes, c.forgets.quotas = 0, nil
	return c
}

func (c *tokened) configuration(t *testing.T) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	current := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := c.server.Get(t.Context(), client.ObjectKey{Name: reach.ConfigurationName}, current); err != nil {
		t.Fatal(err)
	}
	return current
}

// edits has somebody else edit the configuration.
func (c *tokened) edits(t *testing.T, edit edit) {
	t.Helper()
	current := c.configuration(t)
	edit(current)
	current.Generation++
	if err := c.server.Update(t.Context(), current, client.FieldOwner("enforcer")); err != nil {
		t.Fatal(err)
	}
}

// reconciles returns when to do so again.
func (c *tokened) reconciles(t *testing.T) time.Duration {
	t.Helper()
	result, err := c.Reconcile(t.Context(), reconcile.Request{})
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

// loads has the API server load what is in the cluster, and returns what is concluded.
func (c *tokened) loads(t *testing.T) reach.Verdict {
	t.Helper()
	c.reconciles(t)
	if edition, some := c.proofs.Wanted(); some {
		c.proofs.Answered(edition, c.now.Now())
	}
	return c.proofs.Of("team", "uid", 1, c.now.Now())
}

func TestAdditionsThatTakeNothingOutAreLeftAlone(t *testing.T) {
	c := newContested(t)
	for i, key := range []string{"plane", "zone"} {
		c.edits(t, requires(key))
		if got := c.loads(t); c.writes != 0 || got.Enforcement != reach.Proved {
			t.Fatalf("after %d additions: %d writes, and %+v; want none, and it proved", i+1, c.writes, got)
		}
	}
	c.now.Step(time.Second)
	c.restart()
	if got := c.loads(t); got.Enforcement != reach.Proved || len(c.forgets.quotas) != 0 {
		t.Errorf("another leader concludes %+v and has %v counted anew; want it proved, and none", got, c.forgets.quotas)
	}
	if current := c.configuration(t); c.writes > 0 || len(current.Webhooks[1].NamespaceSelector.MatchExpressions) != 3 {
		t.Errorf("after %d writes, got %v", c.writes, current.Webhooks[1].NamespaceSelector)
	}
}

func TestANamespaceThatIsTakenOutLaterIsNotCovered(t *testing.T) {
	c := newContested(t)
	if c.narrowing.Load() {
		t.Error("namespaces matter only if others have added something")
	}
	c.edits(t, requires("plane"))
	c.loads(t)
	if !c.narrowing.Load() {
		t.Error("namespaces that change matter now")
	}
	if err := c.server.Create(t.Context(), namespace("taken", map[string]string{"team": "shop", "plane": "x"})); err != nil {
		t.Fatal(err)
	}
	c.reconciles(t)
	got := c.proofs.Of("team", "uid", 1, c.now.Now())
	if got.Enforcement != reach.Disputed || !strings.Contains(got.Dispute, "the requirement !plane takes out the namespace taken") ||
		!strings.Contains(got.Dispute, `"enforcer" changed namespaceSelector of 4 entries`) {
		t.Errorf("got %+v", got)
	}
	if current := c.configuration(t); c.writes != 1 || len(current.Webhooks[1].NamespaceSelector.MatchExpressions) != 1 {
		t.Errorf("after %d writes, got %v; want it repaired at once", c.writes, current.Webhooks[1].NamespaceSelector)
	}
	if len(c.forgets.quotas) > 0 {
		t.Error("what happens while somebody counts is counted as it happens")
	}
	if got := c.loads(t); got.Enforcement != reach.Disputed {
		t.Errorf("a moment after the repair: got %+v", got)
	}
	c.now.Step(time.Second)
	if got := c.loads(t); got.Enforcement != reach.Proved {
		t.Errorf("once it has lasted: got %+v", got)
	}
}

// An edit that is withdrawn may still be what the API server has loaded.
func TestAnEditThatIsWithdrawnNeedsAnotherEdition(t *testing.T) {
	c := newContested(t)
	c.edits(t, failsOpen)
	c.reconciles(t)
	c.edits(t, failsOpen)
	c.reconciles(t) // it waits
	c.edits(t, func(current *admissionregistrationv1.ValidatingWebhookConfiguration) {
		current.Webhooks[1].FailurePolicy = current.Webhooks[0].FailurePolicy
	})
	c.reconciles(t)
	writes := c.writes
	c.now.Step(time.Second)
	c.reconciles(t)
	if writes != 1 || c.writes != 2 {
		t.Errorf("got %d writes and %d a second later; want one, and another", writes, c.writes)
	}
}

// In a fight, a repair waits; what the operator itself wants to change doesn't.
func TestRepairsThatAreRevertedArePaced(t *testing.T) {
	c := newContested(t)
	began, flips, last := c.now.Now(), 0, reach.Proved
	observes := func() {
		if current := c.proofs.Of("team", "uid", 1, c.now.Now()).Enforcement; (current == reach.Proved) != (last == reach.Proved) {
			flips, last = flips+1, current
		}
	}
	const lasting = 30 * time.Minute
	for c.now.Since(began) < lasting {
		c.edits(t, failsOpen)
		for range 3 { // events that ask for a reconcile too early
			c.loads(t)
			observes()
		}
		wait := c.reconciles(t)
		if !c.dispute.brake.IsEdited() {
			wait = 10 * time.Millisecond // until the next revert
		}
		c.now.Step(wait)
		c.loads(t)
		observes()
	}
	if c.writes > 18 || c.writes < 16 {
		t.Errorf("got %d writes in %s, want one for each of 0, 1, 2, … and then 180 seconds", c.writes, lasting)
	}
	if flips != 1 {
		t.Errorf("what is known of the quota changed %d times, want once", flips)
	}

	writes := c.writes
	c.edits(t, failsOpen)
	c.reconciles(t)
	more := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "more", UID: "more", Generation: 1}}
	more.Spec.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blog"}}
	more.Spec.Quota.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
	if err := c.server.Create(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	c.reconciles(t)
	if c.writes != writes+1 {
		t.Errorf("got %d writes, want one for the new quota", c.writes-writes)
	}

	for c.proofs.Of("team", "uid", 1, c.now.Now()).Enforcement != reach.Proved {
		c.now.Step(max(c.reconciles(t), time.Second))
		if c.now.Since(began) > lasting+10*time.Minute {
			t.Fatal("it is not enforced again")
		}
		c.loads(t)
	}
	c.now.Step(10 * time.Minute)
	writes = c.writes
	c.edits(t, failsOpen)
	c.reconciles(t)
	if c.writes != writes+1 {
		t.Error("after a quiet time, want it repaired at once")
	}
}

// A cache that is behind doesn't show that somebody has reverted what was written.
func TestACacheThatIsBehindIsNoEdit(t *testing.T) {
	c := newContested(t)
	newest := c.configuration(t)
	newest.ResourceVersion = "1000000"
	c.dispute.wrote = newest
	if again := c.reconciles(t); again != cacheDelay || c.writes != 0 || c.dispute.brake.IsEdited() {
		t.Errorf("again after %s, %d writes, edited: %t", again, c.writes, c.dispute.brake.IsEdited())
	}
	c = newContested(t)
	c.dispute.wroteAt = c.now.Now()
	if err := c.server.Delete(t.Context(), c.configuration(t)); err != nil {
		t.Fatal(err)
	}
	if again := c.reconciles(t); again != cacheDelay || c.writes != 0 {
		t.Errorf("again after %s, %d writes", again, c.writes)
	}
	c.now.Step(cacheDelay)
	c.reconciles(t)
	if c.writes != 1 || len(c.forgets.quotas) != 1 {
		t.Errorf("got %d writes, and %v counted anew; want it written and the quota counted", c.writes, c.forgets.quotas)
	}
}
