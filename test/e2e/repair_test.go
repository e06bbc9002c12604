// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// editor is the field manager of whoever edits the configuration here.
	editor = "webhook-enforcer"
	// repairedWithin is how long an edit may last.
	repairedWithin = 2 * time.Second
)

// webhookConfiguration is what is edited here.
type webhookConfiguration = admissionregistrationv1.ValidatingWebhookConfiguration

// Serial, because what runs beside it would delay the repairs, too.
var _ = Describe("A webhook configuration that somebody edits", Serial, func() {
	It("is repaired within two seconds of each of six edits and a deletion in ten seconds", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("configmaps", "0"))
		others := configuration(ctx)
		others.Labels = map[string]string{"example.com/tool": "inventory"}
		others.Annotations["example.com/seen"] = "yes"
		Expect(api.Update(ctx, others, client.FieldOwner("inventory"))).To(Succeed())
		previous := configuration(ctx)
		Expect(previous.OwnerReferences).To(ConsistOf(HaveField("Kind", "Namespace")))

		asking := ask(ctx, team.namespace(ctx))
		// happens does something, and returns 1.6 seconds after it began, so that the whole takes ten seconds.
		happens := func(what string, do func() error) {
			GinkgoHelper()
			began := time.Now()
			Expect(do()).To(Succeed(), what)
			clock.RealClock{}.Sleep(time.Until(began.Add(1600 * time.Millisecond)))
			AddReportEntry(what, fmt.Sprint("unguarded for ", max(0, asking.lastUnguarded().Sub(began)).Round(10*time.Millisecond)))
			Eventually(ctx, func(ctx context.Context) error {
				current := &webhookConfiguration{}
				if err := api.Get(ctx, client.ObjectKeyFromObject(previous), current); err != nil {
					return err
				}
				if !slices.EqualFunc(generated(current), generated(previous), func(a, b admissionregistrationv1.ValidatingWebhook) bool {
					return a.String() == b.String()
				}) || len(current.OwnerReferences) != 1 {
					return fmt.Errorf("not repaired: %v", current.Webhooks)
				}
				return nil
			}).WithTimeout(max(time.Until(began.Add(repairedWithin)), time.Millisecond)).Should(Succeed(), what)
		}
		edited := func(what string, edit func(entry *admissionregistrationv1.ValidatingWebhook, current *webhookConfiguration)) {
			GinkgoHelper()
			happens(what, func() error {
				current := configuration(ctx)
				i := slices.IndexFunc(current.Webhooks, isOfObjects)
				edit(&current.Webhooks[i], current)
				return api.Update(ctx, current, client.FieldOwner(editor))
			})
		}
		edited("the rules are others", func(entry *admissionregistrationv1.ValidatingWebhook, _ *webhookConfiguration) {
			entry.Rules[0].Resources = []string{"services"}
		})
		edited("namespaces are taken out", func(entry *admissionregistrationv1.ValidatingWebhook, _ *webhookConfiguration) {
			entry.NamespaceSelector.MatchExpressions = append(entry.NamespaceSelector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: "control-plane", Operator: metav1.LabelSelectorOpExists})
		})
		edited("a condition is never met", func(entry *admissionregistrationv1.ValidatingWebhook, _ *webhookConfiguration) {
			entry.MatchConditions = append(entry.MatchConditions,
				admissionregistrationv1.MatchCondition{Name: "never.example.com", Expression: "false"})
		})
		edited("nobody answers at the address, which is ignored", func(entry *admissionregistrationv1.ValidatingWebhook, _ *webhookConfiguration) {
			entry.ClientConfig.URL = ptr.To(fmt.Sprintf("https://127.0.0.1:%d/", suite.FreePort()))
			entry.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
		})
		edited("objects are taken out, and time is short", func(entry *admissionregistrationv1.ValidatingWebhook, _ *webhookConfiguration) {
			entry.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"limited": "true"}}
			entry.TimeoutSeconds = ptr.To[int32](1)
		})
		edited("one entry is left, and no owner", func(_ *admissionregistrationv1.ValidatingWebhook, current *webhookConfiguration) {
			current.Webhooks, current.OwnerReferences = current.Webhooks[:1], nil
		})
		current := configuration(ctx)
		Expect(current.Labels).To(HaveKeyWithValue("example.com/tool", "inventory"), "what isn't the operator's stays")
		Expect(current.Annotations).To(And(HaveKeyWithValue("example.com/seen", "yes"), HaveKeyWithValue("admissions.enforcer/disabled", "true")))
		happens("it is deleted", func() error { return api.Delete(ctx, current) })

		waitUntilEnforced(ctx, quota)
		asking.stop()
		AddReportEntry("requests that nobody was asked about", asking.stored)
		eventuallyUses(ctx, quota, fmt.Sprintf("configmaps=%d", asking.stored))
	})

	It("is repaired once a second while somebody reverts each repair, and all is well two seconds after", func(ctx SpecContext) {
		const lasting = 20 * time.Second
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("configmaps", "0"))
		namespace := team.namespace(ctx)
		versions := watchQuota(ctx, quota)
		asking := ask(ctx, namespace)
		stop := revert(ctx, func(current *webhookConfiguration) bool {
			changed := false
			for i := range current.Webhooks {
				if entry := &current.Webhooks[i]; isOfObjects(*entry) && entry.Rules[0].Resources[0] != "services" {
					entry.Rules[0].Resources, changed = []string{"services"}, true
				}
			}
			return changed
		})
		clock.RealClock{}.Sleep(lasting / 4)
		previous := scrape(ctx)
		clock.RealClock{}.Sleep(lasting - lasting/4)
		said := conditionOf(mustGetQuota(ctx, quota), quotav1.ConditionEnforced)
		current := scrape(ctx)
		repairs := stop()
		ended := time.Now()

		Expect(said).To(And(HavePrefix("False WebhookEdited: "), ContainSubstring(editor)))
		Eventually(ctx, func(ctx context.Context) string {
			return conditionOf(mustGetQuota(ctx, quota), quotav1.ConditionEnforced)
		}).WithTimeout(repairedWithin).Should(HavePrefix("True"))
		AddReportEntry("Enforced after", time.Since(ended).Round(10*time.Millisecond))
		clock.RealClock{}.Sleep(time.Until(ended.Add(repairedWithin)))
		Expect(asking.lastUnguarded()).To(BeTemporally("<", ended.Add(repairedWithin)))
		asking.stop()
		AddReportEntry("requests that nobody was asked about", asking.stored)
		eventuallyUses(ctx, quota, fmt.Sprintf("configmaps=%d", asking.stored))

		AddReportEntry("repairs", len(repairs))
		Expect(len(repairs)).To(BeNumerically(">=", int(lasting.Seconds()/2)), "it doesn't give up")
		for i := 1; i < len(repairs); i++ {
			Expect(repairs[i].Sub(repairs[i-1])).To(BeNumerically(">", 900*time.Millisecond), "a watch may be late by some")
		}
		// The next collection comes at a multiple of what was alive after the last one.
		for _, name := range []string{"go_goroutines", "go_memstats_next_gc_bytes"} {
			Expect(current.sum(name)).To(BeNumerically("<", 1.5*previous.sum(name)), name)
		}
		Expect(len(enforcedOver(ctx, versions, quota))).To(BeNumerically("<=", 5), "it is told once, not at each repair")
	})
})

func isOfObjects(entry admissionregistrationv1.ValidatingWebhook) bool {
	return strings.HasPrefix(entry.Name, "objects")
}

// asking is a client that creates ConfigMaps in a namespace whose quota allows none.
type asking struct {
	stop func()
	// stored is how many were. It may be read once stop has returned.
	stored int
	mu     sync.Mutex // guards last
	// last is when the last request ended that the quota didn't refuse.
	last time.Time
}

func (a *asking) lastUnguarded() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// ask asks until stop is called, or the spec ends.
func ask(ctx context.Context, namespace string) *asking {
	ctx, end := context.WithCancel(ctx)
	a, ended := &asking{}, make(chan struct{})
	a.stop = func() { end(); <-ended }
	DeferCleanup(func() { a.stop() })
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			err := api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "c-"}})
			if err == nil {
				a.stored++
			}
			if ctx.Err() == nil && (err == nil || !strings.Contains(err.Error(), "exceeded quota")) {
				a.mu.Lock()
				a.last = time.Now()
				a.mu.Unlock()
			}
			clock.RealClock{}.Sleep(10 * time.Millisecond)
		}
	}()
	return a
}

// revert has somebody edit the configuration whenever it isn't as they want, until stop is called, or the spec ends. The edit
// reports whether it changed something. What stop returns is when others wrote the configuration.
func revert(ctx context.Context, edit func(*webhookConfiguration) bool) (stop func() []time.Time) {
	GinkgoHelper()
	ctx, end := context.WithCancel(ctx)
	events, err := watcher.Watch(ctx, &admissionregistrationv1.ValidatingWebhookConfigurationList{},
		client.MatchingFields{"metadata.name": "shared-quota"})
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan struct{})
	var writes []time.Time
	stop = func() []time.Time { end(); events.Stop(); <-ended; return writes }
	DeferCleanup(func() { stop() })
	go func() {
		defer GinkgoRecover()
		defer close(ended)
		own := map[string]bool{}
		for event := range events.ResultChan() {
			current, ok := event.Object.(*webhookConfiguration)
			if !ok || own[current.ResourceVersion] || event.Type == watch.Deleted {
				continue
			}
			if event.Type == watch.Modified {
				writes = append(writes, time.Now())
			}
			if !edit(current) {
				continue
			}
			err := api.Update(ctx, current, client.FieldOwner(editor))
			if ctx.Err() == nil && !apierrors.IsConflict(err) {
				Expect(err).NotTo(HaveOccurred())
			}
			own[current.ResourceVersion] = true
		}
	}()
	return stop
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
