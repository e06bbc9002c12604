// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// refusedDeployment is short of two quotas, of which one can't be read.
func refusedDeployment() *Why {
	quantity := func(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }
	row := func(name, one, all, available, short, hard, here string) WhyRow {
		return WhyRow{
			Resource: corev1.ResourceName(name), One: *quantity(one), All: *quantity(all), Available: quantity(available), Short: quantity(short),
			Hard: *quantity(hard), Used: quantity("20"), Here: quantity(here),
		}
	}
	cpu := row("requests.cpu", "250m", "750m", "100m", "650m", "20", "12")
	cpu.Largest = []WhyUser{{ObjectName{"Pod", "cart-1"}, *quantity("4")}, {ObjectName{"Pod", "cart-2"}, *quantity("2")}}
	pods := row("pods", "1", "3", "9", "0", "50", "40")
	uncounted := WhyRow{Resource: "services", One: *quantity("1"), All: *quantity("1"), Hard: *quantity("3")}
	own := WhyQuota{Quota: "quota/default", Rows: []WhyRow{row("pods", "1", "3", "0", "3", "40", "40")}}
	own.Rows[0].Used = quantity("40")
	const message = "exceeded quota: payments, requested: requests.cpu=250m, used: requests.cpu=19900m, limited: requests.cpu=20"
	return &Why{
		Namespace: "shop", Subject: ObjectName{"Deployment", "web"}, Result: "does not fit", Cause: QuotaShort,
		Summary: "Deployment/web lacks 3 of its 8 pods: crq/payments is short of requests.cpu: 650m; quota/default is short of pods: 3.",
		Chain: []WhyLink{
			{ObjectName: ObjectName{"Deployment", "web"}, State: "wants 8 pods, has 5, 4 ready"},
			{
				ObjectName: ObjectName{"ReplicaSet", "web-6d9"}, State: "wants 8 pods, has 5, 4 ready", Woken: ptr.To(ago(300)),
				Refusals: []WhyRefusal{
					{Reason: quotav1.ReasonQuotaExceeded, Quota: "crq/payments", Message: message, First: ago(200), Last: ago(12), Count: 15},
					{Reason: "RefusedElsewhere", By: "webhook policy", Message: `admission webhook "policy" denied the request: no`, First: ago(400), Last: ago(400), Count: 1},
					{Reason: quotav1.ReasonQuotaExceeded, Quota: "quota/default", Message: "exceeded quota: default", First: ago(700), Last: ago(700)},
				},
			},
		},
		Pods: []WhyPods{
			{State: "not scheduled", Message: "0/3 nodes are available: 3 Insufficient memory.", Count: 2, Example: "web-6d9-a"},
			{State: "not ready", Count: 1, Example: "web-6d9-b"},
		},
		Quotas:   []WhyQuota{{Quota: "crq/payments", Unread: true, Rows: []WhyRow{pods, cpu, uncounted}}, own},
		Waiting:  []WhyWaiting{{ObjectName: ObjectName{"ReplicaSet", "web-6d9"}, Quota: "crq/payments", Since: ago(180), Short: list("requests.cpu", "150m"), Woken: true}},
		Remedies: []string{"Delete or shrink something in any namespace of the quota that uses requests.cpu: 650m.", "kubectl crq reclaim -n shop lists what holds quota and does nothing."},
		Notes:    []string{"You may not read LimitRanges."},
	}
}

func TestWhyText(t *testing.T) {
	for name, style := range styles {
		t.Run(name, func(t *testing.T) { wantGolden(t, "why-"+name, WhyText(refusedDeployment(), style, now)) })
	}
	t.Run("somebody who may read the quota", func(t *testing.T) {
		of := refusedDeployment()
		of.Quotas[0].Unread = false
		of.Quotas[0].HeldBy(payments(), 1)
		of.Quotas, of.Waiting = of.Quotas[:1], []WhyWaiting{{ObjectName: ObjectName{"ReplicaSet", "web-6d9"}, Quota: "crq/payments", Since: ago(180)}}
		wantGolden(t, "why-administrator", WhyText(of, Style{}, now))
	})
	t.Run("nothing is refused", func(t *testing.T) {
		of := &Why{Summary: "Nothing is refused: there is the 1 pod of Deployment/web.", Chain: refusedDeployment().Chain[:1]}
		wantGolden(t, "why-nothing", WhyText(of, Style{}, now))
	})
	t.Run("nothing can be told", func(t *testing.T) {
		if got := WhyText(&Why{Cause: NotCounted, Remedies: []string{"Ask."}}, Style{}, now); !strings.HasSuffix(got, "\nTo find out:\n- Ask.\n") {
			t.Errorf("got %q", got)
		}
	})
}

func TestHolders(t *testing.T) {
	of := WhyQuota{Quota: "crq/payments", Rows: []WhyRow{
		{Resource: "pods", Short: ptr.To(resource.MustParse("1"))}, {Resource: "requests.cpu", Short: ptr.To(resource.MustParse("0"))},
	}}
	of.HeldBy(payments(), 3)
	want := []WhyHolder{{"shop", resource.MustParse("25")}, {"ledgers", resource.MustParse("12")}, {"refunds", resource.MustParse("2")}}
	if diff := cmp.Diff(want, of.Rows[0].Holders); diff != "" || of.Rows[0].More != 1 {
		t.Errorf("%d more, (-want,+got):\n%s", of.Rows[0].More, diff)
	}
	if of.Rows[1].Holders != nil {
		t.Error("nobody is named for what isn't short")
	}
}

func TestWrap(t *testing.T) {
	for name, test := range map[string]struct {
		width      int
		text, want string
	}{
		"without a terminal":   {0, "one two three", "  one two three\n"},
		"where words end":      {9, "one two three", "  one two\n  three\n"},
		"words aren't broken":  {4, "one two", "  one\n  two\n"},
		"nothing to be broken": {9, "one", "  one\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Style{Width: test.width}).wrap(test.text, indent); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestReclaimText(t *testing.T) {
	freed := func(pairs ...string) []Freed { return []Freed{{Quota: "crq/payments", Amounts: list(pairs...)}} }
	found := &Reclaim{
		Namespaces: []ReclaimNamespace{
			{
				Namespace: "shop", Tightest: Tightest{Quota: "crq/payments", Resource: "requests.cpu", Percent: 92},
				Findings: []Finding{
					{
						ObjectName: ObjectName{"Deployment", "web"}, Finding: PodsIdle, Frees: freed("pods", "2", "requests.cpu", "500m"),
						Message: "2 pods pending, for up to 3h: 0/3 nodes are available.", Command: "kubectl scale deployment/web --replicas=3 -n shop",
					},
					{
						ObjectName: ObjectName{"PersistentVolumeClaim", "data-db-3"}, Finding: ClaimUnused, Frees: freed("requests.storage", "5Gi"),
						Message: "no pod uses it. It was created 3d ago, and is kept by StatefulSet db, ordinal 3.",
						Caution: "its data is there for when that has pods again.",
					},
					{
						ObjectName: ObjectName{"PersistentVolumeClaim", "lost"}, Finding: ClaimUnused, Frees: freed("requests.storage", "1Gi"),
						Message: "no pod uses it. It was created 3d ago.", Command: "kubectl delete persistentvolumeclaim/lost -n shop",
						Caution: "its data is lost, unless the volume's reclaim policy is Retain.",
					},
				},
			},
			{
				Namespace: "tools", Tightest: Tightest{Quota: "quota/default", Resource: "pods", Percent: 100},
				Findings: []Finding{{ObjectName: ObjectName{"Job", "import"}, Message: "completed 3d ago, and still counts.", Command: "kubectl delete job/import -n tools"}},
			},
		},
		Notes: []string{"You may not read endpointslices: what depends on that isn't looked for."},
	}
	for name, style := range styles {
		t.Run(name, func(t *testing.T) { wantGolden(t, "reclaim-"+name, ReclaimText(found, style)) })
	}
	t.Run("nothing", func(t *testing.T) { wantGolden(t, "reclaim-nothing", ReclaimText(&Reclaim{}, Style{})) })
}
