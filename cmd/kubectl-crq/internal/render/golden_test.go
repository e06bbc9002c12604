// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

var update = flag.Bool("update", false, "write the files under testdata anew")

// now is when everything is looked at.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(seconds int64) metav1.Time { return metav1.Unix(now.Unix()-seconds, 0) }

// styles are the outputs that each text is written for.
var styles = map[string]Style{
	"pipe":   {},
	"plain":  {Width: 120},
	"colour": {Width: 120, Colour: true},
	"narrow": {Width: 80},
}

func peak(amount string, seconds int64) quotav1.Peak {
	return quotav1.Peak{Amount: resource.MustParse(amount), At: ago(seconds)}
}

func list(pairs ...string) corev1.ResourceList {
	amounts := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		amounts[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return amounts
}

func slice(namespace string, used ...string) quotav1.ResourceQuotaStatusByNamespace {
	return quotav1.ResourceQuotaStatusByNamespace{Namespace: namespace, Status: corev1.ResourceQuotaStatus{Used: list(used...)}}
}

// payments has something of everything: much, little, nothing and all used.
func payments() *quotav1.ClusterResourceQuota {
	quota := builders.Quota("payments").Label("team", "payments").
		Hard("pods", "50").Hard("requests.cpu", "20").Hard("requests.memory", "64Gi").
		Hard("services.loadbalancers", "2").Hard("count/deployments.apps", "20").Obj()
	quota.Generation, quota.CreationTimestamp = 3, ago(7200)
	quota.Status = quotav1.ClusterResourceQuotaStatus{
		ObservedGeneration: 2,
		Total: corev1.ResourceQuotaStatus{Used: list("pods", "40", "requests.cpu", "2500m", "requests.memory", "1536Mi",
			"services.loadbalancers", "2", "count/deployments.apps", "0")},
		Reserved: list("pods", "3", "requests.cpu", "300m"),
		Peaks: []quotav1.ResourcePeaks{
			{Resource: "pods", Day: peak("43", 600), Week: peak("45", 200_000), Month: peak("50", 2_000_000)},
			{Resource: "requests.cpu", Week: peak("4", 100_000), Month: peak("4", 100_000)}, // nothing is known of today
		},
		NamespaceCount: 4,
		Namespaces: []quotav1.ResourceQuotaStatusByNamespace{
			slice("invoices", "pods", "1"),
			slice("ledgers", "pods", "12", "requests.cpu", "500m"),
			slice("refunds", "pods", "2"),
			slice("shop", "pods", "25", "requests.cpu", "2", "requests.memory", "1536Mi", "services.loadbalancers", "2"),
		},
		Conditions: []metav1.Condition{
			{Type: quotav1.ConditionReady, Status: metav1.ConditionTrue, Reason: quotav1.ReasonCounted,
				Message: "usage is counted", LastTransitionTime: ago(3600)},
			{Type: quotav1.ConditionEnforced, Status: metav1.ConditionFalse, Reason: quotav1.ReasonWebhookPending,
				Message: "the webhook configuration doesn't cover it yet", LastTransitionTime: ago(5)},
		},
	}
	return quota
}

// fresh has not been looked at by any operator.
func fresh() *quotav1.ClusterResourceQuota {
	quota := builders.Quota("fresh").Label("team", "new").Hard("pods", "0").Hard("cpu", "4").Scopes(corev1.ResourceQuotaScopeBestEffort).Obj()
	quota.Generation, quota.Status.ObservedGeneration = 1, -1 // as the CRD has it
	quota.Status.Total.Used = list("pods", "0")
	return quota
}

// surged has surge, of which two workloads hold some.
func surged() *quotav1.ClusterResourceQuota {
	quota := builders.Quota("surged").Label("team", "payments").Hard("pods", "10").Hard("requests.cpu", "4").Hard("services", "2").
		Surge("pods", "3").Surge("requests.cpu", "1").Obj()
	quota.Status.Total.Used = list("pods", "12", "requests.cpu", "4", "services", "0")
	quota.Status.Peaks = []quotav1.ResourcePeaks{
		{Resource: "pods", Day: peak("10", 600), Week: peak("10", 600), Month: peak("10", 600), Surge: peak("3", 200_000)},
	}
	quota.Status.Surge = &quotav1.SurgeStatus{
		Hard: list("pods", "3", "requests.cpu", "1"), Used: list("pods", "2", "requests.cpu", "0"),
		Workloads: []quotav1.SurgingWorkload{
			{Kind: "Deployment", Namespace: "shop", Name: "web", Since: ago(3600)}, {Kind: "DaemonSet", Namespace: "tools", Name: "agent", Since: ago(60)},
		},
	}
	return quota
}

func TestSurge(t *testing.T) {
	fresh := surged()
	fresh.Status = quotav1.ClusterResourceQuotaStatus{}
	for name, quota := range map[string]*quotav1.ClusterResourceQuota{"held": surged(), "fresh": fresh} {
		t.Run(name, func(t *testing.T) {
			of := Coverage{Quota: quota.Name, Figures: OfQuota(quota), Surge: SurgeOf(quota)}
			view := of
			if view.SurgeHere = true; name == "held" {
				view.Surge = &quotav1.SurgeStatus{Hard: of.Surge.Hard, Used: of.Surge.Used}
			}
			wantGolden(t, "surge-"+name, Top([]quotav1.ClusterResourceQuota{*quota}, TopOptions{})+"\n"+
				Describe(Description{Quota: quota, Selector: "team=payments"}, Style{}, now)+"\n"+
				Explain(Explanation{Namespace: "shop", Coverages: []Coverage{of}}, Style{})+"\n"+
				Explain(Explanation{Namespace: "shop", FromViews: true, Coverages: []Coverage{view}}, Style{}))
		})
	}
}

func wantGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("unlike %s (-want,+got):\n%s", path, diff)
	}
}

func TestTop(t *testing.T) {
	quotas := []quotav1.ClusterResourceQuota{*payments(), *fresh()}
	for name, style := range styles {
		t.Run(name, func(t *testing.T) {
			wantGolden(t, "top-"+name, Top(quotas, TopOptions{Style: style, Namespaces: 2}))
			wantGolden(t, "top-wide-"+name, Top(quotas, TopOptions{Style: style, Namespaces: 2, Wide: true, ByUsage: true}))
			wantGolden(t, "top-namespaces-"+name, TopNamespaces(payments(), TopOptions{Style: style, Namespaces: 2}))
		})
	}
}

func TestNoNamespaceIsNamedWhereNoneUsesAnything(t *testing.T) {
	if got := TopNamespaces(fresh(), TopOptions{Namespaces: 2}); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestDescribe(t *testing.T) {
	events := []corev1.Event{
		{Type: corev1.EventTypeNormal, Reason: "Enforced", Message: "every request is checked\n", LastTimestamp: ago(60),
			Source: corev1.EventSource{Component: "shared-quota"}},
		{Type: corev1.EventTypeWarning, Reason: "Full", Message: "services.loadbalancers is full", ReportingController: "shared-quota",
			EventTime: metav1.NewMicroTime(now.Add(-300 * time.Second)), Series: &corev1.EventSeries{
				Count: 4, LastObservedTime: metav1.NewMicroTime(now.Add(-10 * time.Second))}},
	}
	for name, style := range styles {
		t.Run(name, func(t *testing.T) {
			of := Description{Quota: payments(), Selector: "team=payments", Events: events}
			wantGolden(t, "describe-"+name, Describe(of, style, now))
		})
	}
	t.Run("a quota that doesn't only refuse", func(t *testing.T) {
		quota := payments()
		quota.Spec.Enforcement = quotav1.Enforcement{
			Mode: quotav1.EnforcementWarn, WhenUnavailable: quotav1.UnavailableAdmit,
		}
		quota.Status.Conditions = append(quota.Status.Conditions, metav1.Condition{
			Type: quotav1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: quotav1.ReasonWebhookPending, LastTransitionTime: ago(5),
			Message: "Enforced is False, WebhookPending: the webhook configuration doesn't cover it yet",
		})
		wantGolden(t, "describe-modes", Describe(Description{Quota: quota, Selector: "team=payments"}, Style{}, now))
	})
	t.Run("nothing is there yet", func(t *testing.T) {
		of := Description{Quota: fresh(), Selector: "team=new", EventsUnread: "<you can't>"}
		wantGolden(t, "describe-fresh", Describe(of, Style{}, now))
	})
}

func TestExplain(t *testing.T) {
	explanation := Explanation{
		Namespace: "shop", Labels: map[string]string{"team": "payments", "tier": "test"},
		Coverages: []Coverage{
			{Quota: "payments", By: []string{"label team=payments"}, Figures: OfQuota(payments()), Here: list("pods", "25"),
				Notes: []string{"It is not Enforced (WebhookPending): soon"}},
			{Quota: "fresh", By: []string{"label team", "annotation owner=vera"}, Figures: OfQuota(fresh()),
				Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort},
				ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
					ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"high", "low"}}}}},
		},
		NearMisses: []NearMiss{{Quota: "prod", Wants: "label tier=prod", Has: "tier=test"}, {Quota: "gold", Wants: "annotation class=gold"}},
	}
	for name, style := range styles {
		t.Run(name, func(t *testing.T) { wantGolden(t, "explain-"+name, Explain(explanation, style)) })
	}
	t.Run("no quota covers it", func(t *testing.T) { wantGolden(t, "explain-free", Explain(Explanation{Namespace: "default"}, Style{})) })
	t.Run("only the local views can be read", func(t *testing.T) {
		of := Explanation{Namespace: "shop", FromViews: true, Coverages: []Coverage{{Quota: "payments", Figures: OfQuota(payments())}}}
		wantGolden(t, "explain-views", Explain(of, Style{}))
		wantGolden(t, "explain-unviewed", Explain(Explanation{Namespace: "shop", FromViews: true}, Style{}))
	})
}

func TestReservations(t *testing.T) {
	ledger := Ledger{
		Quota: "payments", Known: true, Intact: true, Reserved: list("pods", "1", "requests.storage", "5Gi"),
		Reservations: []Reservation{
			{Version: "v1", Resource: "pods", Namespace: "shop", Name: "web-1", UID: types.UID("u1"), Attempt: Create,
				Amounts: list("pods", "1"), Expires: ago(3)},
			{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "ledgers", Name: "books", UID: types.UID("u2"),
				Attempt: Update, From: "4711", Amounts: list("requests.storage", "5Gi"), Expires: ago(-75), Doubtful: true},
		},
	}
	for name, style := range styles {
		t.Run(name, func(t *testing.T) {
			wantGolden(t, "reservations-"+name, Reservations(ledger, false, style, now))
			wantGolden(t, "reservations-wide-"+name, Reservations(ledger, true, style, now))
		})
	}
	sealed := ago(30)
	for name, ledger := range map[string]Ledger{
		"suspected": {Quota: "payments", Known: true, Intact: true, Suspected: []Suspected{{Namespace: "shop", Until: ago(-500)}}},
		"escrow": {
			Quota: "payments", Known: true, Intact: true, Reserved: list("pods", "20"),
			Reservations: []Reservation{
				{Group: "quota.sharedquota.dev", Version: "v1", Resource: "escrows", Name: "shared-quota-operator-1", UID: types.UID("u3"),
					Attempt: Escrow, Amounts: list("pods", "20"), Expires: ago(-62)},
			},
		},
		"empty":   {Quota: "payments", Known: true, Intact: true},
		"sealed":  {Quota: "payments", Known: true, Intact: true, Sealed: &sealed},
		"edited":  {Quota: "payments", Known: true, Undecoded: []string{"nonsense"}},
		"unknown": {Quota: "payments", Encoding: 9, Intact: true, Undecoded: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) { wantGolden(t, "reservations-"+name, Reservations(ledger, false, Style{}, now)) })
	}
}
