// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

func list(name, quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(quantity)}
}

func elected(ok bool) <-chan struct{} {
	channel := make(chan struct{})
	if ok {
		close(channel)
	}
	return channel
}

// busy are metrics of which each has a series.
func busy() (*prometheus.Registry, *Metrics) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	m.Committed("team", 3, 2*time.Millisecond)
	m.Drifted("team", "pods")
	m.Unmatched("team", "pods")
	m.Looked(true, nil)
	m.Probed(outcomes.ProbeProved, 5*time.Millisecond)
	m.Woken("team")
	m.RefusedAgain("team", 2)
	m.WakeFailed("team")
	m.Refused(outcomes.Refusal{Quota: "team", Mode: "Audit", Resources: []corev1.ResourceName{"requests.cpu"}})
	m.Follow(elected(true), func() []Figures {
		return []Figures{{
			Quota: "team", Hard: list("requests.cpu", "2"), Used: list("requests.cpu", "1500m"), Reserved: list("requests.cpu", "250m"),
			Namespaces: map[string]corev1.ResourceList{"shop": list("requests.cpu", "1")},
			Surge:      corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("500m")},
			Surging: []quotav1.SurgingWorkload{{
				Kind: "Deployment", Namespace: "shop", Name: "web", Since: metav1.NewTime(time.Unix(1700000000, 0)),
			}},
			Reservations: 1,
			Doubtful:     map[string]int{"shop": 1},
			LedgerBytes:  420,
			Waiting:      3,
			Conditions: []metav1.Condition{{Type: "Enforced", Status: metav1.ConditionFalse}, {
				Type: "Exceeded", Status: metav1.ConditionTrue, Reason: "AdmittedWhileUnavailable",
			}},
			Lag: map[Projection]time.Duration{Status: 1500 * time.Millisecond},
		}}
	})
	return registry, m
}

func TestTheMetricsOfAQuota(t *testing.T) {
	registry, _ := busy()
	const want = `
# HELP sharedquota_counting_leader 1 for the replica that counts, the leader; 0 for the others.
# TYPE sharedquota_counting_leader gauge
sharedquota_counting_leader 1
# HELP sharedquota_ledger_doubtful_reservations Charges that one namespace holds for requests that seem to have failed after they were admitted.
# TYPE sharedquota_ledger_doubtful_reservations gauge
sharedquota_ledger_doubtful_reservations{namespace="shop",quota="team"} 1
# HELP sharedquota_ledger_reservations Charges that are held for objects not observed yet. A ledger holds 5000 at most.
# TYPE sharedquota_ledger_reservations gauge
sharedquota_ledger_reservations{quota="team"} 1
# HELP sharedquota_ledger_size_bytes Size of the stored ledger as JSON. Its reservations take 900 KiB at most.
# TYPE sharedquota_ledger_size_bytes gauge
sharedquota_ledger_size_bytes{quota="team"} 420
# HELP sharedquota_owners_waiting Workloads that wait for room, because the quota refused objects that their controllers created.
# TYPE sharedquota_owners_waiting gauge
sharedquota_owners_waiting{quota="team"} 3
# HELP sharedquota_projection_lag_seconds Age of the oldest change that the quota's status, or one of its views, doesn't show yet; 0 if all is shown.
# TYPE sharedquota_projection_lag_seconds gauge
sharedquota_projection_lag_seconds{projection="status",quota="team"} 1.5
# HELP sharedquota_quota_condition 1 for the status that a condition of the quota has, 0 for the others.
# TYPE sharedquota_quota_condition gauge
sharedquota_quota_condition{quota="team",status="False",type="Enforced"} 1
sharedquota_quota_condition{quota="team",status="True",type="Enforced"} 0
sharedquota_quota_condition{quota="team",status="Unknown",type="Enforced"} 0
sharedquota_quota_condition{quota="team",status="False",type="Exceeded"} 0
sharedquota_quota_condition{quota="team",status="True",type="Exceeded"} 1
sharedquota_quota_condition{quota="team",status="Unknown",type="Exceeded"} 0
# HELP sharedquota_quota_exceeded 1 for the reason why more of a resource is used than the quota allows, 0 for the others.
# TYPE sharedquota_quota_exceeded gauge
sharedquota_quota_exceeded{quota="team",reason="AdmittedAboveHard"} 0
sharedquota_quota_exceeded{quota="team",reason="AdmittedWhileUnavailable"} 1
sharedquota_quota_exceeded{quota="team",reason="Surging"} 0
sharedquota_quota_exceeded{quota="team",reason="UsedAboveHard"} 0
# HELP sharedquota_quota_hard Limit on what the selected namespaces use together, in cores, bytes or objects.
# TYPE sharedquota_quota_hard gauge
sharedquota_quota_hard{quota="team",resource="requests.cpu"} 2
# HELP sharedquota_quota_namespace_used Observed use of one selected namespace, in cores, bytes or objects; with --metrics-namespaces.
# TYPE sharedquota_quota_namespace_used gauge
sharedquota_quota_namespace_used{namespace="shop",quota="team",resource="requests.cpu"} 1
# HELP sharedquota_quota_reserved Reserved for requests that were admitted and not observed yet, in cores, bytes or objects.
# TYPE sharedquota_quota_reserved gauge
sharedquota_quota_reserved{quota="team",resource="requests.cpu"} 0.25
# HELP sharedquota_quota_surge Room above the limit for pods that replace others, in cores, bytes or objects.
# TYPE sharedquota_quota_surge gauge
sharedquota_quota_surge{quota="team",resource="requests.cpu"} 0.5
# HELP sharedquota_quota_surging_since_timestamp_seconds When a workload, as in "Deployment shop/web", took surge first, which hasn't ended since. At most 20 of a quota.
# TYPE sharedquota_quota_surging_since_timestamp_seconds gauge
sharedquota_quota_surging_since_timestamp_seconds{quota="team",workload="Deployment shop/web"} 1.7e+09
# HELP sharedquota_quota_used Observed use of the selected namespaces, in cores, bytes or objects; only of resources that have been counted.
# TYPE sharedquota_quota_used gauge
sharedquota_quota_used{quota="team",resource="requests.cpu"} 1.5
`
	err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"sharedquota_counting_leader", "sharedquota_ledger_doubtful_reservations", "sharedquota_ledger_reservations", "sharedquota_ledger_size_bytes", "sharedquota_projection_lag_seconds",
		"sharedquota_owners_waiting", "sharedquota_quota_condition", "sharedquota_quota_exceeded", "sharedquota_quota_hard", "sharedquota_quota_namespace_used",
		"sharedquota_quota_reserved", "sharedquota_quota_surge", "sharedquota_quota_surging_since_timestamp_seconds", "sharedquota_quota_used")
	if err != nil {
		t.Error(err)
	}
}

func TestOtherReplicasExportNothingOfQuotas(t *testing.T) {
	registry := prometheus.NewRegistry()
	New(registry).Follow(elected(false), func() []Figures {
		t.Error("the figures were read")
		return nil
	})
	const want = `
# HELP sharedquota_counting_leader 1 for the replica that counts, the leader; 0 for the others.
# TYPE sharedquota_counting_leader gauge
sharedquota_counting_leader 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "sharedquota_counting_leader", "sharedquota_quota_hard"); err != nil {
		t.Error(err)
	}
}

func TestReservationsAreCountedByTheirEnd(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	m.Ended("team", ledger.Ends{Settled: 3, Released: 1})
	m.Ended("team", ledger.Ends{Settled: 2})
	const want = `
# HELP sharedquota_ledger_reservations_ended_total Reservations that ended, by end: the object was observed (settled), never came (expired), or its request was refused or given up (released).
# TYPE sharedquota_ledger_reservations_ended_total counter
sharedquota_ledger_reservations_ended_total{end="expired",quota="team"} 0
sharedquota_ledger_reservations_ended_total{end="released",quota="team"} 1
sharedquota_ledger_reservations_ended_total{end="settled",quota="team"} 5
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "sharedquota_ledger_reservations_ended_total"); err != nil {
		t.Error(err)
	}
}

// An alert looks for increases, and a counter that comes up at one shows none.
func TestLostLedgersAreCountedFromZero(t *testing.T) {
	registry, _ := busy()
	for _, how := range []outcomes.Loss{outcomes.Deleted, outcomes.Edited, outcomes.Restored} {
		want := fmt.Sprintf(`sharedquota_ledger_lost_total{how=%q,quota="team"} 0`, how)
		if text := exposed(t, registry); !strings.Contains(text, want+"\n") {
			t.Errorf("want %s in:\n%s", want, text)
		}
	}
}

func TestAnswersAreCountedAndTimed(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	m.Answered(outcomes.Denied, 170*time.Millisecond)
	if got := testutil.ToFloat64(m.admission[outcomes.Denied].number); got != 1 {
		t.Errorf("denied: got %v, want 1", got)
	}
	for _, want := range []string{
		`sharedquota_admission_duration_seconds_bucket{outcome="denied",le="0.128"} 0`,
		`sharedquota_admission_duration_seconds_bucket{outcome="denied",le="0.256"} 1`,
		`sharedquota_admission_duration_seconds_sum{outcome="denied"} 0.17`,
		`sharedquota_admission_requests_total{outcome="allowed"} 0`,
	} {
		if text := exposed(t, registry); !strings.Contains(text, want+"\n") {
			t.Errorf("want %s in:\n%s", want, text)
		}
	}
}

func TestTheSilenceIsMeasuredAtEachScrape(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	if got := exposed(t, registry); !strings.Contains(got, "sharedquota_contact_silence_seconds 0\n") {
		t.Errorf("before anybody knows: got %s, want no silence", got)
	}
	m.Contact(func() time.Duration { return 7500 * time.Millisecond })
	if got := exposed(t, registry); !strings.Contains(got, "sharedquota_contact_silence_seconds 7.5\n") {
		t.Errorf("got %s, want 7.5 seconds", got)
	}
}

func TestProbesAreCountedAndTimed(t *testing.T) {
	registry := prometheus.NewRegistry()
	New(registry).Probed(outcomes.ProbeFailed, 5*time.Millisecond)
	for _, want := range []string{
		`sharedquota_reach_probe_duration_seconds_bucket{outcome="failed",le="0.004"} 0`,
		`sharedquota_reach_probe_duration_seconds_bucket{outcome="failed",le="0.008"} 1`,
		`sharedquota_reach_probe_duration_seconds_count{outcome="failed"} 1`,
	} {
		if text := exposed(t, registry); !strings.Contains(text, want+"\n") {
			t.Errorf("want %s in:\n%s", want, text)
		}
	}
}

func TestAQuotaThatIsGoneLeavesNoSeries(t *testing.T) {
	registry, m := busy()
	m.Lost("team", outcomes.Edited)
	m.Committed("another", 1, time.Millisecond)
	m.Follow(elected(true), func() []Figures { return nil })
	m.Gone("team")
	text := exposed(t, registry)
	if strings.Contains(text, "team") || !strings.Contains(text, "another") {
		t.Errorf("want another's series, and none of team's:\n%s", text)
	}
}

func TestNamesFollowTheRulesOfPrometheus(t *testing.T) {
	registry, _ := busy()
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}
