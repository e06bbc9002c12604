// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// surgers are workloads that took surge, a minute after each other.
func surgers(names ...string) map[types.UID]ledger.Surger {
	all := map[types.UID]ledger.Surger{}
	for i, name := range names {
		uid := types.UID(name)
		all[uid] = ledger.Surger{UID: uid, Kind: "Deployment", Namespace: "a", Name: name, Since: time.Unix(int64(60*i), 0)}
	}
	return all
}

// surging is the team's quota of ten pods with a surge of three, and five services.
func surging() *quotav1.ClusterResourceQuota {
	quota := team("pods", "10", "services", "5")
	quota.Spec.Surge.Hard = list("pods", "3")
	return quota
}

func TestSurgeExplainsWhyMoreIsUsedThanHard(t *testing.T) {
	const refused = "; until used is below hard, only such pods get more; " +
		"wait until the rollouts have ended, and correct or undo one that doesn't"
	used := func(amounts ...string) func(*facts) {
		return func(f *facts) { f.slices = map[string]corev1.ResourceList{"a": list(amounts...)} }
	}
	took := func(names ...string) func(*facts) { return func(f *facts) { f.ledger.Surgers = surgers(names...) } }
	for name, test := range map[string]struct {
		removed         bool
		changes         []func(*facts)
		reason, message string
		level           quotav1.Level
	}{
		"a rollout": {
			changes: []func(*facts){used("pods", "12", "services", "1"), took("web")}, reason: quotav1.ReasonSurging, level: quotav1.LevelLimitReached,
			message: "pods: used 12, hard 10; pods that replace others have taken surge: Deployment a/web since 1970-01-01T00:00:00Z" + refused,
		},
		"five of them": {
			changes: []func(*facts){used("pods", "13", "services", "1"), took("v", "w", "x", "y", "z")}, reason: quotav1.ReasonSurging,
			message: "pods: used 13, hard 10; pods that replace others have taken surge: Deployment a/v since 1970-01-01T00:00:00Z, " +
				"Deployment a/w since 1970-01-01T00:01:00Z, Deployment a/x since 1970-01-01T00:02:00Z, and 2 more" + refused,
			level: quotav1.LevelLimitReached,
		},
		"nobody took any": {
			changes: []func(*facts){used("pods", "12", "services", "1")}, reason: quotav1.ReasonUsedAboveHard,
			message: "pods: used 12, hard 10" + refusedNow, level: quotav1.LevelUsedAboveHard,
		},
		"more than surge": {
			changes: []func(*facts){used("pods", "14", "services", "1"), took("web")}, reason: quotav1.ReasonUsedAboveHard,
			message: "pods: used 14, hard 10" + refusedNow, level: quotav1.LevelUsedAboveHard,
		},
		"another resource, too": {
			changes: []func(*facts){used("pods", "12", "services", "6"), took("web")}, reason: quotav1.ReasonUsedAboveHard,
			message: "pods: used 12, hard 10, services: used 6, hard 5" + refusedNow, level: quotav1.LevelUsedAboveHard,
		},
		"within hard, a moment later": {
			changes: []func(*facts){used("pods", "10", "services", "1"), took("web")}, reason: quotav1.ReasonWithinLimits,
			message: "used is nowhere above hard", level: quotav1.LevelLimitReached,
		},
		"the surge was removed": {
			removed: true,
			changes: []func(*facts){used("pods", "12", "services", "1"), took("web")}, reason: quotav1.ReasonUsedAboveHard,
			message: "pods: used 12, hard 10" + refusedNow, level: quotav1.LevelUsedAboveHard,
		},
	} {
		t.Run(name, func(t *testing.T) {
			quota := surging()
			if test.removed {
				quota.Spec.Surge.Hard = nil
			}
			status := good(test.changes...).status(quota)
			got := meta.FindStatusCondition(status.Conditions, quotav1.ConditionExceeded)
			if got.Reason != test.reason || got.Message != test.message {
				t.Errorf("got %s: %s\nwant %s: %s", got.Reason, got.Message, test.reason, test.message)
			}
			if level := status.Levels["pods"]; level != test.level {
				t.Errorf("level %s, want %s", level, test.level)
			}
		})
	}
}

// A namespace sees how much is taken, and its own workloads.
func TestAViewShowsSurge(t *testing.T) {
	quota := surging()
	state := ledger.State{Surgers: surgers("web")}
	got := surgeOf(quota.Spec, state, list("pods", "11", "services", "1"), list("pods", "1"))
	want := &quotav1.SurgeStatus{Hard: list("pods", "3"), Used: list("pods", "2")}
	if diff := cmp.Diff(want, got.in("b")); diff != "" {
		t.Errorf("another namespace (-want,+got):\n%s", diff)
	}
	want.Workloads = []quotav1.SurgingWorkload{{Kind: "Deployment", Namespace: "a", Name: "web", Since: metav1.NewTime(time.Unix(0, 0))}}
	if diff := cmp.Diff(want, got.in("a")); diff != "" {
		t.Errorf("its own (-want,+got):\n%s", diff)
	}
	if got := surgeOf(team("pods", "10").Spec, state, nil, nil).in("a"); got != nil {
		t.Errorf("without surge: %+v", got)
	}
	if diff := cmp.Diff(list("pods", "10", "services", "1"), got.ordinary(list("pods", "11", "services", "1"), quota.Spec.Quota.Hard)); diff != "" {
		t.Errorf("without surge (-want,+got):\n%s", diff)
	}
}

// An error says nothing of a workload, and one that has only begun is not looked at.
func TestAWorkloadWhoseRolloutHasEndedIsNamedNoMore(t *testing.T) {
	looks := NewSurgers(Parts{Clock: clocktesting.NewFakeClock(time.Unix(210, 0))}, func(_ context.Context, surger ledger.Surger) (bool, error) {
		switch surger.Name {
		case "rolls":
			return true, nil
		case "unknown":
			return false, errors.New("no answer")
		default:
			return false, nil
		}
	})
	var ended []string
	for _, surger := range looks.ended(t.Context(), surgers("over", "rolls", "unknown", "young")) {
		ended = append(ended, surger.Name)
	}
	if diff := cmp.Diff([]string{"over"}, ended); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}
