// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

const objects = 1 // the index of the entry that enforces the quota

func failsOpen(current *configuration) {
	current.Webhooks[objects].FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
}

func TestWhatOthersChangeIsRepairedAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		edit      func(*configuration)
		uncovered bool
	}{
		"the failure policy": {edit: failsOpen, uncovered: true},
		"the rules":          {edit: func(c *configuration) { c.Webhooks[objects].Rules = c.Webhooks[objects].Rules[1:] }, uncovered: true},
		"a requirement of namespaces, with any label": {
			edit: func(c *configuration) {
				selector := c.Webhooks[objects].NamespaceSelector
				selector.MatchExpressions = append(selector.MatchExpressions,
					metav1.LabelSelectorRequirement{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist})
			},
			uncovered: true,
		},
		"a requirement of objects": {
			edit: func(c *configuration) {
				c.Webhooks[objects].ObjectSelector.MatchLabels = map[string]string{"a": "b"}
			},
			uncovered: true,
		},
		"a condition": {
			edit: func(c *configuration) {
				c.Webhooks[objects].MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "never", Expression: "false"}}
			},
			uncovered: true,
		},
		"the address":           {edit: func(c *configuration) { c.Webhooks[objects].ClientConfig.URL = ptr.To("https://192.0.2.1") }, uncovered: true},
		"the authority":         {edit: func(c *configuration) { c.Webhooks[objects].ClientConfig.CABundle = []byte("another") }},
		"the timeout":           {edit: func(c *configuration) { c.Webhooks[objects].TimeoutSeconds = ptr.To[int32](1) }, uncovered: true},
		"an entry that is gone": {edit: func(c *configuration) { c.Webhooks = c.Webhooks[:objects] }, uncovered: true},
		"all of them":           {edit: func(c *configuration) { c.Webhooks = nil }, uncovered: true},
		"an entry more": {
			edit: func(c *configuration) {
				more := *c.Webhooks[objects].DeepCopy()
				more.Name = "more.example.com"
				c.Webhooks = append(c.Webhooks, more)
			},
		},
		"the entry for quotas": {edit: func(c *configuration) { c.Webhooks[0].Rules = nil }},
		"the entry for probes": {edit: func(c *configuration) { c.Webhooks[len(c.Webhooks)-1].ObjectSelector = nil }},
		"the owner":            {edit: func(c *configuration) { c.OwnerReferences = nil }},
		"the owner by another": {edit: func(c *configuration) { c.OwnerReferences[0].UID = "another" }},
		"what AKS goes by":     {edit: func(c *configuration) { delete(c.Annotations, "admissions.enforcer/disabled") }},
		// Replicas that start learn from the configuration by which tokens they may be called.
		"the age of the token": {edit: func(c *configuration) {
			maps.DeleteFunc(c.Annotations, func(key, _ string) bool { return strings.Contains(key, "token") })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				b.owner = "uid"
				b.settles()
				b.edits(func(c *configuration) {
					c.Labels, c.Annotations["example.com/seen"] = map[string]string{"example.com/tool": "inventory"}, "yes"
				})
				b.settles()
				if b.writes != 1 {
					t.Errorf("%d writes, want none because of what belongs to others", b.writes)
				}
				previous := b.configuration()
				b.edits(test.edit)
				b.reconciles()
				got, want := b.proofs.Of("team", "uid", 1, bubble.Now()), webhookconfig.Proved
				if test.uncovered {
					want = webhookconfig.Edited
				}
				if got.Enforcement != want || strings.Contains(got.Edit, "edited the webhook configuration") != test.uncovered {
					t.Errorf("got %+v, want %v", got, want)
				}
				current := b.configuration()
				ignoring := cmp.FilterValues(func(url, _ string) bool { return strings.HasPrefix(url, "https:") }, cmp.Ignore())
				if diff := cmp.Diff(previous.Webhooks, current.Webhooks, ignoring); diff != "" || b.writes != 2 {
					t.Errorf("after %d writes (-previous,+current):\n%s", b.writes, diff)
				}
				if diff := cmp.Diff(previous.OwnerReferences, current.OwnerReferences); diff != "" {
					t.Errorf("owners (-previous,+current):\n%s", diff)
				}
				for _, key := range []string{"admissions.enforcer/disabled", "example.com/seen", "quota.sharedquota.dev/token-since"} {
					if current.Annotations[key] == "" {
						t.Errorf("got the annotations %v, want %s", current.Annotations, key)
					}
				}
				b.settles()
				if current.Labels["example.com/tool"] != "inventory" || len(b.forgets) > 1 {
					t.Errorf("labels %v; %v forgotten", current.Labels, b.forgets)
				}
				bubble.Sleep(lasting)
				if got := b.settles(); got.Enforcement != webhookconfig.Proved {
					t.Errorf("once it has lasted: got %+v", got)
				}
			}, teamQuota())
		})
	}
}

// Each repair is undone at once, for a minute.
func TestRepairsThatAreUndoneAreASecondApart(t *testing.T) {
	for name, undo := range map[string]func(b *bench){
		"by an edit": func(b *bench) { b.edits(failsOpen) },
		"by a deletion": func(b *bench) {
			gone := &configuration{ObjectMeta: metav1.ObjectMeta{Name: webhookconfig.ConfigurationName}}
			if err := client.IgnoreNotFound(b.server.Delete(b.t.Context(), gone)); err != nil {
				b.t.Fatal(err)
			}
		},
		"by the API server as it is written": func(b *bench) {
			if b.harm == nil {
				b.harm, b.bundle = failsOpen, []byte("another authority")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				b.settles()
				bubble.Sleep(repairEvery) // until the cache must have it
				began, before := bubble.Now(), b.writes
				for bubble.Since(began) < time.Minute {
					undo(b)
					b.reconciles()
					b.reconciles() // the event of the write
					if got := b.proofs.Of("team", "uid", 1, bubble.Now()); got.Enforcement != webhookconfig.Edited {
						t.Fatalf("after %s: got %+v", bubble.Since(began), got)
					}
					bubble.Sleep(repairEvery / 4)
				}
				if writes := b.writes - before; writes < 60 || writes > 61 { // one more if the first is the operator's own
					t.Errorf("got %d writes in a minute", writes)
				}

				b.harm = nil
				bubble.Sleep(b.reconciles())
				b.settles()
				bubble.Sleep(lasting)
				if got := b.settles(); got.Enforcement != webhookconfig.Proved {
					t.Errorf("once it has ended: got %+v", got)
				}
				before = b.writes
				b.edits(failsOpen)
				b.reconciles()
				if b.writes != before+1 {
					t.Errorf("got %d writes for a later edit, want one at once", b.writes-before)
				}
			}, teamQuota())
		})
	}
}

// A change by the operator itself is no repair.
func TestTheOperatorsOwnChangesDoNotWait(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.settles()
		for i := range 5 {
			more := teamQuota()
			more.Name, more.UID = more.Name+string(rune('a'+i)), more.UID+"x"
			more.Spec.Selector.LabelSelector.MatchLabels["team"] = more.Name
			if err := b.server.Create(t.Context(), more); err != nil {
				t.Fatal(err)
			}
			b.settles()
		}
		if b.writes != 6 {
			t.Errorf("got %d writes for six quotas", b.writes)
		}
	}, teamQuota())
}

// The API server may still have loaded an edit that is withdrawn.
func TestAnEditThatIsWithdrawnNeedsAnotherEdition(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.settles()
		b.edits(failsOpen)
		b.edits(func(c *configuration) { c.Webhooks[objects].FailurePolicy = ptr.To(admissionregistrationv1.Fail) })
		b.reconciles()
		if b.writes != 2 {
			t.Errorf("got %d writes", b.writes)
		}
	}, teamQuota())
}

// The cache shows later writes, and later deletions and edits, too.
func TestACacheThatIsBehindIsNoEdit(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.cached = &configuration{}
		b.reconciles()
		for range 10 {
			b.reconciles()
		}
		bubble.Sleep(repairEvery / 2)
		b.reconciles()
		if b.writes != 1 || b.edit != "" {
			t.Errorf("after it was created: %d writes, %q", b.writes, b.edit)
		}
		b.cached = nil
		b.settles()
		b.cached = b.configuration()
		b.bundle = []byte("another")
		for range 10 {
			b.reconciles()
		}
		bubble.Sleep(2 * repairEvery)
		b.reconciles()
		if b.writes != 2 || b.edit != "" {
			t.Errorf("after a change: %d writes, %q", b.writes, b.edit)
		}
		b.cached = nil
		if got := b.settles(); got.Enforcement != webhookconfig.Proved || b.writes != 2 {
			t.Errorf("when the cache has it: %+v, %d writes", got, b.writes)
		}
	}, teamQuota())
}

// A leader that stood still doesn't know yet that another one has taken over.
func TestWhatAnotherLeaderWritesIsNoEdit(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.settles()
		stalled := b.Controller
		bubble.Sleep(time.Hour)
		b.restart()
		b.settles()
		for range 10 {
			for _, leader := range []*Controller{stalled, b.Controller} {
				if _, err := leader.Reconcile(t.Context(), reconcile.Request{}); err != nil || leader.edit != "" {
					t.Fatal(leader.edit, err)
				}
			}
		}
		if b.writes != 2 {
			t.Errorf("got %d writes, want one by each", b.writes)
		}
	}, teamQuota())
}

// The garbage collector deletes the objects of a namespace that was made again
// since.
func TestTheOwnerIsReadWhenTheConfigurationIsWritten(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.owner = "before"
		b.settles()
		b.owner = "made again"
		if err := b.server.Delete(t.Context(), b.configuration()); err != nil {
			t.Fatal(err)
		}
		b.settles()
		bubble.Sleep(repairEvery)
		b.settles()
		if owners := b.configuration().OwnerReferences; len(owners) != 1 || owners[0].UID != "made again" {
			t.Errorf("got the owners %v", owners)
		}
	}, teamQuota())
}

// A leader that was deposed while it stood still takes its successor's writes for edits.
func TestADeposedLeaderWritesNothing(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.settles()
		b.edits(failsOpen)
		b.deposed = errors.New("another leads")
		if _, err := b.Reconcile(t.Context(), reconcile.Request{}); !errors.Is(err, b.deposed) || b.writes != 1 {
			t.Errorf("got %d writes and the error %v", b.writes, err)
		}
		synctest.Wait()
	}, teamQuota())
}

func TestAWriteThatFailsIsToldAndTriedAgain(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.settles()
		if err := b.server.Create(t.Context(), teamQuota()); err != nil {
			t.Fatal(err)
		}
		b.failure = errors.New("no answer")
		if _, err := b.Reconcile(t.Context(), reconcile.Request{}); err == nil {
			t.Error("want the work queue told")
		}
		synctest.Wait()
		if got := b.proofs.Of("team", "uid", 1, bubble.Now()); got.Enforcement != webhookconfig.Uncovered || !strings.Contains(got.Failure, "no answer") {
			t.Errorf("got %+v", got)
		}
		b.failure = nil
		if got := b.settles(); b.writes != 2 || got.Failure != "" {
			t.Errorf("got %d writes and %+v", b.writes, got)
		}
	})
}
