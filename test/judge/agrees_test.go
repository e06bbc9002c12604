// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func list(pairs ...string) corev1.ResourceList {
	result := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		result[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return result
}

// saidOf returns what an operator without fault says of one quota.
func saidOf(quota *quotav1.ClusterResourceQuota, lives QuotaReport) figures {
	quota = quota.DeepCopy()
	total := corev1.ResourceQuotaStatus{Hard: lives.Hard, Used: lives.Lives}
	quota.Status = quotav1.ClusterResourceQuotaStatus{ObservedGeneration: quota.Generation, Total: total}
	said := figures{
		quotas: map[string]*quotav1.ClusterResourceQuota{quota.Name: quota},
		ledgers: map[string]*quotav1.QuotaLedger{quota.Name: {
			ObjectMeta: metav1.ObjectMeta{Name: quota.Name}, Entries: quotav1.QuotaLedgerEntries{Used: lives.Lives},
		}},
		views: map[string]map[string]*quotav1.LocalResourceQuota{},
	}
	for namespace, used := range lives.Namespaces {
		quota.Status.Namespaces = append(quota.Status.Namespaces, quotav1.ResourceQuotaStatusByNamespace{
			Namespace: namespace, Status: corev1.ResourceQuotaStatus{Hard: lives.Hard, Used: used},
		})
		said.add(&quotav1.LocalResourceQuota{
			ObjectMeta: builders.Meta(namespace, quota.Name),
			Status:     quotav1.LocalResourceQuotaStatus{Total: total, Used: used, Available: available(lives)},
		})
	}
	return said
}

func TestDifferences(t *testing.T) {
	lives := QuotaReport{
		Hard: list("pods", "5", "requests.cpu", "2"), Lives: list("pods", "3", "requests.cpu", "2500m"),
		Namespaces: map[string]corev1.ResourceList{
			"a": list("pods", "1", "requests.cpu", "500m"), "b": list("pods", "2", "requests.cpu", "2"),
		},
	}
	for name, test := range map[string]struct {
		change func(said figures)
		going  map[string]bool
		want   []string
	}{
		"none": {change: func(figures) {}},
		"amounts in other words are the same": {change: func(said figures) {
			said.ledgers["team"].Entries.Used = list("pods", "3", "requests.cpu", "2.5")
			said.quotas["team"].Status.Reserved = list("pods", "0")
		}},
		"the ledger's": {
			change: func(said figures) {
				said.ledgers["team"].Entries = quotav1.QuotaLedgerEntries{
					Used: list("pods", "4", "secrets", "1"), Reservations: []string{"1-2 - - /v1/pods a x 17 pods=1"},
				}
			},
			want: []string{
				"quota team: ledger: used: pods is 4, want 3",
				"quota team: ledger: used: requests.cpu is missing, want 2500m",
				"quota team: ledger: used: secrets is 1, and the quota doesn't limit it",
				"quota team: ledger: still reserved: 1-2 - - /v1/pods a x 17 pods=1",
			},
		},
		"no ledger": {
			change: func(said figures) { delete(said.ledgers, "team") },
			want:   []string{"quota team: ledger: there is none"},
		},
		"the status's": {
			change: func(said figures) {
				quota := said.quotas["team"]
				quota.Generation, quota.Status.ObservedGeneration = 3, 2
				quota.Status.Total.Hard = list("pods", "4", "requests.cpu", "2")
				quota.Status.Total.Used = list("pods", "2", "requests.cpu", "2500m")
				quota.Status.Reserved = list("pods", "1", "requests.cpu", "0")
			},
			want: []string{
				"quota team: status: it is for generation 2, and the quota's is 3",
				"quota team: status: total.hard: pods is 4, want 5",
				"quota team: status: total.used: pods is 2, want 3",
				"quota team: status: reserved: pods is 1, want none",
			},
		},
		"the slices'": {
			change: func(said figures) {
				said.quotas["team"].Status.Namespaces = []quotav1.ResourceQuotaStatusByNamespace{
					{Namespace: "b", Status: corev1.ResourceQuotaStatus{Used: list("pods", "1", "requests.cpu", "2")}}, {Namespace: "c"},
				}
			},
			want: []string{
				"quota team: status: namespace a is selected, and not listed",
				"quota team: status: namespace b: used: pods is 1, want 2",
				"quota team: status: namespace c is listed, and not selected",
			},
		},
		"the views'": {
			change: func(said figures) {
				views := said.views["team"]
				views["b"].Status = quotav1.LocalResourceQuotaStatus{
					Total: corev1.ResourceQuotaStatus{
						Hard: list("pods", "5", "requests.cpu", "3"), Used: list("pods", "2", "requests.cpu", "2500m"),
					},
					Used:      list("pods", "2", "requests.cpu", "1"),
					Reserved:  list("pods", "1"),
					Available: list("pods", "1", "requests.cpu", "0"),
				}
				views["c"] = views["a"]
				delete(views, "a")
			},
			want: []string{
				"quota team: view in namespace a: there is none, and the namespace is selected",
				"quota team: view in namespace b: total.hard: requests.cpu is 3, want 2",
				"quota team: view in namespace b: total.used: pods is 2, want 3",
				"quota team: view in namespace b: used: requests.cpu is 1, want 2",
				"quota team: view in namespace b: reserved: pods is 1, want none",
				"quota team: view in namespace b: available: pods is 1, want 2",
				"quota team: view in namespace c: there is one, and the namespace is not selected",
			},
		},
		"a namespace that is going needs no view": {
			change: func(said figures) { delete(said.views["team"], "a") },
			going:  map[string]bool{"a": true},
		},
		"quotas that one of them doesn't know": {
			change: func(said figures) {
				said.quotas["other"] = said.quotas["team"]
				delete(said.quotas, "team")
				said.add(&quotav1.LocalResourceQuota{ObjectMeta: builders.Meta("a", "deleted")})
			},
			want: []string{
				"quota team: there is none any more", "quota other: it was not judged",
				"view deleted in namespace a: there is no such quota",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			said := saidOf(builders.Quota("team").Obj(), lives)
			test.change(said)
			report := Report{Quotas: map[string]QuotaReport{"team": lives, "deleted": {Violations: []Violation{{}}}}}
			var got []string
			if err := differences(report, test.going, said); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
