// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// enforcer is the field manager of whoever changes the configuration here.
const enforcer = "admissionsenforcer"

// shortestTrial is for how long each repair has to last at least until it is believed to.
const shortestTrial = time.Second

// excluding are the requirements that AKS adds to the namespaceSelector of every webhook.
var excluding = []metav1.LabelSelectorRequirement{
	{Key: "control-plane", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}},
	{Key: "kubernetes.azure.com/managedby", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"aks"}},
}

var _ = Describe("Somebody who changes the webhook configuration again and again", func() {
	// What came before was no fight, and no token is replaced within a minute.
	BeforeEach(restart)

	It("is left alone if nothing is taken out, and all that is limited stays so", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.Namespace(team.nextName()).Label("control-plane", "true").Obj()) // no quota selects it
		Expect(configuration(ctx).Annotations).To(HaveKeyWithValue("admissions.enforcer/disabled", "true"))
		versions := watchQuota(ctx, quota)
		change := contend(ctx, exclude)
		Eventually(ctx, excluded).Should(BeTrue())

		By("writing nothing")
		previous := configuration(ctx)
		Consistently(ctx, func(ctx context.Context) string { return configuration(ctx).ResourceVersion }).
			WithTimeout(5 * time.Second).Should(Equal(previous.ResourceVersion))
		mustCreate(ctx, builders.Pod(namespace, "first").Obj())
		Expect(api.Create(ctx, builders.Pod(namespace, "second").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "1", "1")))

		By("writing once for what is new")
		other := newTeam()
		enforce(ctx, other.quota().Hard("pods", "0"))
		Expect(api.Create(ctx, builders.Pod(other.namespace(ctx), "refused").Obj())).To(MatchError(ContainSubstring("exceeded quota")))
		Eventually(ctx, func(ctx context.Context) int64 { return change.others(ctx, previous) }).Should(BeEquivalentTo(1))

		By("writing for a quota and perhaps a token, and nothing else, when another operator takes over")
		Eventually(ctx, excluded).Should(BeTrue())
		previous = configuration(ctx)
		restart(ctx)
		enforce(ctx, newTeam().quota().Hard("pods", "0"))
		Eventually(ctx, excluded).Should(BeTrue())
		Consistently(ctx, func(ctx context.Context) int64 { return change.others(ctx, previous) }).
			WithTimeout(2 * time.Second).Should(BeNumerically("<=", 2))
		change.stop()
		Expect(enforcedOver(ctx, versions, quota)).To(Equal([]string{"True"}))
	})

	It("is named if what it adds takes a selected namespace out", func(ctx SpecContext) {
		DeferCleanup(restart) // what follows is no fight
		team, other := newTeam(), newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "0"))
		unconcerned := enforce(ctx, other.quota().Hard("pods", "0"))
		change := contend(ctx, exclude)
		Eventually(ctx, excluded).Should(BeTrue())
		taken := mustCreate(ctx, builders.Namespace(team.nextName()).Label(teamLabel, team.name).Label("control-plane", "true").Obj())
		Eventually(ctx, func(ctx context.Context) string {
			return conditionOf(mustGetQuota(ctx, quota), quotav1.ConditionEnforced)
		}).Should(And(HavePrefix("False WebhookEdited: "), ContainSubstring("reverted its repair"),
			ContainSubstring(`"%s" changed namespaceSelector of `, enforcer),
			ContainSubstring("the requirement control-plane notin (true) takes out the namespace "+taken.Name),
			ContainSubstring("exempt the configuration shared-quota from the tool that edits it")))
		AddReportEntry("what the quota says", conditionOf(mustGetQuota(ctx, quota), quotav1.ConditionEnforced))
		Expect(conditionOf(mustGetQuota(ctx, unconcerned), quotav1.ConditionEnforced)).To(HavePrefix("True"))

		By("leaving it alone again once nothing is taken out")
		relabel(ctx, taken, map[string]string{teamLabel: other.name + "-none"})
		waitUntilEnforced(ctx, quota)
		Eventually(ctx, excluded).Should(BeTrue())
		version := configuration(ctx).ResourceVersion
		Consistently(ctx, func(ctx context.Context) string { return configuration(ctx).ResourceVersion }).
			WithTimeout(2 * time.Second).Should(Equal(version))
		change.stop()
	})

	It("is not followed faster and faster, and the quota says so all the time", func(ctx SpecContext) {
		DeferCleanup(restart) // what follows is no fight
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1"))
		namespace := team.namespace(ctx)
		versions := watchQuota(ctx, quota)
		const lasting = 12 * time.Second
		previous := configuration(ctx)
		change := contend(ctx, failOpen)
		clock.RealClock{}.Sleep(lasting)
		change.stop()
		writes := change.others(ctx, previous)
		AddReportEntry("writes by the operator in a fight of "+lasting.String(), writes)
		AddReportEntry("what the quota says", conditionOf(mustGetQuota(ctx, quota), quotav1.ConditionEnforced))
		Expect(writes).To(BeNumerically("<=", 6), "at once, after 1 s, 2 s, 4 s and perhaps 8 s")
		Expect(writes).To(BeNumerically(">=", 3))
		Expect(conditionOf(mustGetQuota(ctx, quota), quotav1.ConditionEnforced)).To(And(HavePrefix("False WebhookEdited: "),
			ContainSubstring(`"%s" changed failurePolicy of `, enforcer)))

		By("enforcing again in time")
		began := time.Now()
		Eventually(ctx, func(ctx context.Context) string {
			return conditionOf(mustGetQuota(ctx, quota), quotav1.ConditionEnforced)
		}).WithTimeout(deadline).Should(HavePrefix("True"))
		AddReportEntry("from the end of the fight until the quota was enforced", time.Since(began).Round(100*time.Millisecond))
		mustCreate(ctx, builders.Pod(namespace, "first").Obj())
		Expect(api.Create(ctx, builders.Pod(namespace, "second").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "1", "1")))
		AddReportEntry("the longest that an event of the fight had to wait", change.slowest.Round(time.Millisecond))
		turns := Equal([]string{"True", "False", "True"})
		if change.slowest > shortestTrial/2 {
			// Nobody reverted that repair for so long that it was believed to last.
			turns = Or(turns, Equal([]string{"True", "False", "True", "False", "True"}))
		}
		Expect(enforcedOver(ctx, versions, quota)).To(turns)
	})
})

// contender is somebody who changes the configuration whenever it is as it shouldn't be.
type contender struct {
	// generations are those of the writes.
	written atomic.Pointer[[]int64]
	// slowest is the longest that an event had to wait. It may be read once stop has returned.
	slowest time.Duration
	stop    func()
}

// others returns how many writes others have made since the configuration was this.
func (c *contender) others(ctx context.Context, previous *admissionregistrationv1.ValidatingWebhookConfiguration) int64 {
	GinkgoHelper()
	all, own := configuration(ctx).Generation-previous.Generation, int64(0)
	if written := c.written.Load(); written != nil {
		for _, generation := range *written {
			if generation > previous.Generation {
				own++
			}
		}
	}
	return all - own
}

// contend has somebody follow the configuration until stop is called, or the spec ends. The
// edit tells whether it changed something.
func contend(ctx context.Context, edit func(*admissionregistrationv1.ValidatingWebhookConfiguration) bool) *contender {
	GinkgoHelper()
	following, end := context.WithCancel(ctx)
	events, err := watcher.Watch(following, &admissionregistrationv1.ValidatingWebhookConfigurationList{},
		client.MatchingFields{"metadata.name": "shared-quota"})
	Expect(err).NotTo(HaveOccurred())
	c, ended := &contender{}, make(chan struct{})
	c.stop = func() { end(); events.Stop(); <-ended }
	DeferCleanup(func() { c.stop() })
	go func() {
		defer GinkgoRecover()
		defer close(ended)
		ticker := time.NewTicker(poll)
		defer ticker.Stop()
		for last := time.Now(); following.Err() == nil; {
			select {
			case <-following.Done():
			case now := <-ticker.C:
				c.slowest, last = max(c.slowest, now.Sub(last)), now
			case event, open := <-events.ResultChan():
				Expect(open || following.Err() != nil).To(BeTrue(), "the watch has ended")
				c.follow(following, event, edit)
			}
		}
	}()
	return c
}

// follow changes what an event tells of.
func (c *contender) follow(
	ctx context.Context, event watch.Event, edit func(*admissionregistrationv1.ValidatingWebhookConfiguration) bool,
) {
	GinkgoHelper()
	current, ok := event.Object.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	if !ok || !edit(current) {
		return
	}
	err := api.Update(ctx, current, client.FieldOwner(enforcer))
	if ctx.Err() != nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return // it is over, or another event follows
	}
	Expect(err).NotTo(HaveOccurred())
	var written []int64
	if before := c.written.Load(); before != nil {
		written = slices.Clone(*before)
	}
	written = append(written, current.Generation)
	c.written.Store(&written)
}

// enforcedOver returns what the condition Enforced of a quota was, in turn, until now.
func enforcedOver(ctx context.Context, versions <-chan watch.Event, quota *quotav1.ClusterResourceQuota) []string {
	GinkgoHelper()
	now := mustGetQuota(ctx, quota).ResourceVersion
	var turns []string
	for version := range versions {
		current, ok := version.Object.(*quotav1.ClusterResourceQuota)
		Expect(ok).To(BeTrue(), "%v", version)
		status, _, _ := strings.Cut(conditionOf(current, quotav1.ConditionEnforced), " ")
		if turns = append(turns, status); current.ResourceVersion == now {
			return slices.Compact(turns)
		}
	}
	Fail("the watch has ended")
	return nil
}

// exclude adds the requirements to every entry that lacks them.
func exclude(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	changed := false
	for i := range configuration.Webhooks {
		if selector := configuration.Webhooks[i].NamespaceSelector; !excludes(selector) {
			selector.MatchExpressions = append(selector.MatchExpressions, excluding...)
			changed = true
		}
	}
	return changed
}

func excludes(selector *metav1.LabelSelector) bool {
	return slices.ContainsFunc(selector.MatchExpressions, func(requirement metav1.LabelSelectorRequirement) bool {
		return requirement.Key == excluding[0].Key
	})
}

// excluded tells whether every entry has the requirements.
func excluded(ctx context.Context) bool {
	GinkgoHelper()
	return !slices.ContainsFunc(configuration(ctx).Webhooks, func(webhook admissionregistrationv1.ValidatingWebhook) bool {
		return !excludes(webhook.NamespaceSelector)
	})
}

// failOpen has the entries that enforce fail open.
func failOpen(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	changed := false
	for i := range configuration.Webhooks {
		policy := configuration.Webhooks[i].FailurePolicy
		if strings.HasPrefix(configuration.Webhooks[i].Name, "objects") && *policy != admissionregistrationv1.Ignore {
			*policy, changed = admissionregistrationv1.Ignore, true
		}
	}
	return changed
}
