// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/internal/selection"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// ground is a cluster with these objects, of which the lists of some kinds may not be read.
func ground(t *testing.T, forbidden []string, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		if kind.Version == "v1" && kind.Kind != "Widget" {
			mapper.Add(kind, meta.RESTScopeNamespace)
		}
	}
	isConfiguration := func(object client.Object) bool { return object.GetName() == reach.ConfigurationName }
	if !slices.ContainsFunc(objects, isConfiguration) {
		objects = append(objects, installed(t, admissionregistrationv1.Fail, "kube-system"))
	}
	inner := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).Build()
	return interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if key.Name == reach.ConfigurationName && slices.Contains(forbidden, "ValidatingWebhookConfiguration") {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "validatingwebhookconfigurations"}, key.Name, errors.New("no right"))
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			kind, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			for _, one := range forbidden {
				if kind.Kind == one+"List" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: one}, "", errors.New("no right"))
				}
			}
			return c.List(ctx, list, options...)
		},
	})
}

// installed is the webhook configuration of an operator with this policy and these protected namespaces.
func installed(t *testing.T, policy admissionregistrationv1.FailurePolicyType, protected ...string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	selector, err := selection.Compile(builders.Quota("q").Label("team", "another").Obj().Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	made := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: reach.ConfigurationName}}
	quotas := []reach.Quota{{Name: "q", UID: "q", Selector: selector, Limited: []schema.GroupResource{{Resource: "pods"}}}}
	if len(protected) == 0 {
		quotas = nil
	}
	made.Webhooks, _ = reach.Settings{Protected: protected, FailurePolicy: policy}.Webhooks(quotas)
	return made
}

// What the operator is told decides what the API server asks about, and what it does without an answer.
func TestAPlanGoesByTheOperatorsFlags(t *testing.T) {
	const ignore, fail = admissionregistrationv1.Ignore, admissionregistrationv1.Fail
	quota := manifest("payments", `{selector: {labels: {matchLabels: {team: payments}}}, quota: {hard: {pods: "20"}}}`)
	for name, test := range map[string]struct {
		forbidden []string
		installed *admissionregistrationv1.ValidatingWebhookConfiguration
		missing   bool
		asked     string // of which namespaces, with which policy
		notes     string
	}{
		"others than the defaults": {installed: installed(t, ignore, "shop"), asked: "[kube-system] Ignore, admitted"},
		"the defaults":             {installed: installed(t, fail, "kube-system"), asked: "[shop] Fail, refused"},
		"nothing is limited yet": {
			installed: installed(t, ignore), asked: "[shop] Ignore, admitted",
			notes: "The webhook configuration doesn't show the protected namespaces: it is assumed that the operator runs with the default ones.",
		},
		"nobody may read it": {
			forbidden: []string{"ValidatingWebhookConfiguration"}, installed: installed(t, ignore, "shop"), asked: "[shop] Fail, refused",
			notes: "You may not read the webhook configuration shared-quota: " +
				"it is assumed that the operator runs with --failure-policy=Fail and the default protected namespaces.",
		},
		"there is none": {
			installed: installed(t, ignore, "shop"), missing: true, asked: "[shop] Fail, refused",
			notes: "There is no webhook configuration shared-quota: " +
				"it is assumed that the operator runs with --failure-policy=Fail and the default protected namespaces.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := ground(t, test.forbidden, place("shop", "team", "payments"), place("kube-system", "team", "payments"), test.installed)
			if test.missing {
				if err := cluster.Delete(t.Context(), test.installed); err != nil {
					t.Fatal(err)
				}
			}
			got := planOf(t, cluster, quota)
			if len(got.Webhook.Changes) != 1 {
				t.Fatalf("changes %+v", got.Webhook.Changes)
			}
			change, becomes := got.Webhook.Changes[0], map[quotav1.UnavailablePolicy]string{"Admit": "admitted", "Refuse": "refused"}
			if asked := fmt.Sprintf("%v %s, %s", change.Namespaces, change.FailurePolicy, becomes[got.Quotas[0].WhenUnavailable]); asked != test.asked {
				t.Errorf("got %s, want %s", asked, test.asked)
			}
			if diff := cmp.Diff(test.notes, strings.Join(got.Notes, "; ")); diff != "" {
				t.Errorf("notes (-want,+got):\n%s", diff)
			}
		})
	}
}

func place(name string, labels ...string) *corev1.Namespace {
	builder := builders.Namespace(name).Label(corev1.LabelMetadataName, name)
	for i := 0; i+1 < len(labels); i += 2 {
		builder.Label(labels[i], labels[i+1])
	}
	return builder.Obj()
}

func planOf(t *testing.T, cluster client.Client, content string) *render.Plan {
	t.Helper()
	files, notes, err := fileOf(content)
	if err != nil {
		t.Fatal(err)
	}
	p := &planner{meter: newMeter(clock.RealClock{}), notes: append([]string{}, notes...)}
	if err := p.read(t.Context(), cluster, files); err != nil {
		t.Fatal(err)
	}
	found, err := p.plan(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// counted is a live quota for pods that was applied and that the operator has counted: so many pods in each of the
// namespaces.
func counted(name, team, hard string, pods map[string]int64) *quotav1.ClusterResourceQuota {
	quota := builders.Quota(name).Label("team", team).Hard("pods", hard).Obj()
	quota.Generation, quota.Status.ObservedGeneration = 1, 1
	quota.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: fmt.Sprintf(
		`{"spec":{"selector":{"labels":{"matchLabels":{"team":%q}}},"quota":{"hard":{"pods":%q}}}}`, team, hard)}
	total := int64(0)
	for namespace, count := range pods {
		total += count
		quota.Status.Namespaces = append(quota.Status.Namespaces, quotav1.ResourceQuotaStatusByNamespace{Namespace: namespace,
			Status: corev1.ResourceQuotaStatus{Used: corev1.ResourceList{"pods": *resource.NewQuantity(count, resource.DecimalSI)}}})
	}
	quota.Status.Total.Used = corev1.ResourceList{"pods": *resource.NewQuantity(total, resource.DecimalSI)}
	return quota
}

func podsIn(namespace string, count int) []client.Object {
	var pods []client.Object
	for i := range count {
		pods = append(pods, builders.Pod(namespace, fmt.Sprintf("pod-%d", i)).Request("cpu", "500m").Obj())
	}
	return pods
}

func team(name, hard string) string {
	return manifest(name, "{selector: {labels: {matchLabels: {team: "+name+"}}}, quota: {hard: {"+hard+"}}}")
}

func TestALoweredLimit(t *testing.T) {
	live := counted("payments", "payments", "20", map[string]int64{"shop": 15})
	live.Status.Reserved = corev1.ResourceList{"pods": resource.MustParse("1")}
	live.Status.HistorySince = ptr.To(daysAgo(30))
	live.Status.History = []quotav1.ResourceHistory{seen("pods", "18", 2, "3")}
	node := &corev1.Node{ObjectMeta: builders.Meta("", "one"), Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"pods": resource.MustParse("110")}}}
	// Nothing is counted: the pods here are fewer than the status says.
	cluster := ground(t, nil, append(podsIn("shop", 3), place("shop", "team", "payments"), live, node)...)
	got := render.PlanText(planOf(t, cluster, team("payments", "pods: 10")), render.Style{})
	const want = `Above the limit would be pods of payments by 6.

payments: changed
  By team=payments it selects the namespace shop.
  RESOURCE   MODE   WAS   HARD   USED   ABOVE   PEAK
  pods       Deny   20    10     16     6       18
  pods: 6 more is used than the limit. What exists stays; requests for more are refused.
  pods: of the 2 requests that didn't fit in the last 30 days, the largest would have needed 23.
  While the operator can't decide, its requests are refused.

Webhook configuration: 1 entry for quotas, as now

All limits together, against 1 node:
  RESOURCE   NOW   PLANNED   ALLOCATABLE   OF ALLOCATABLE
  pods       20    10        110           10%
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want,+got):\n%s", diff)
	}
}

func TestANewQuotaIsCounted(t *testing.T) {
	objects := append(podsIn("shop", 2), podsIn("books", 1)...)
	objects = append(objects, podsIn("other", 5)...)
	objects = append(objects, place("shop", "team", "payments"), place("books", "team", "payments"), place("other"),
		place("kube-system", "team", "payments"), builders.Secret("shop", "s"), builders.ConfigMap("shop", "c"),
		counted("platform", "payments", "100", nil))
	got := planOf(t, ground(t, nil, objects...), manifest("payments", "{"+selector+`, enforcement: {mode: Warn, overrides: [{resource: pods, mode: Deny}]},`+
		` quota: {hard: {pods: "3", cpu: "1", count/secrets: "5", count/widgets.example.com: "1"}}}`))
	const want = `Above the limit would be cpu of payments by 500m.

payments: new
  By team=payments it selects 3 namespaces: books, kube-system, shop.
  RESOURCE                    MODE   WAS   HARD   USED    ABOVE   PEAK
  count/secrets               Warn   -     5      1       -       -
  count/widgets.example.com   Warn   -     1      0       -       -
  cpu                         Warn   -     1      1500m   500m    -
  pods                        Deny   -     3      3       -       -
  cpu: 500m more is used than the limit. What exists stays; requests for more are admitted, and whoever sends them is warned.
  pods: all of the limit is used. Requests for more are refused.
  What is in kube-system is counted and never limited: the operator protects it.
  While the operator can't decide, its requests are refused.

Webhook configuration: 1 entry for quotas, as now
  books, shop: newly asked about secrets, widgets.example.com; failurePolicy Fail.

Overlaps:
  payments and platform both limit pods in books, kube-system, shop.

All limits together, against 0 nodes:
  RESOURCE       NOW   PLANNED   ALLOCATABLE   OF ALLOCATABLE
  pods           100   103       0             -
  requests.cpu   0     1         0             -

Note: The cluster doesn't serve widgets.example.com, so none of it exists.
`
	if diff := cmp.Diff(want, render.PlanText(got, render.Style{})); diff != "" {
		t.Errorf("plan (-want,+got):\n%s", diff)
	}
}

func TestAnotherSelector(t *testing.T) {
	live := counted("payments", "payments", "20", map[string]int64{"shop": 2, "books": 4})
	objects := append(podsIn("shop", 2), place("shop", "team", "payments", "tier", "prod"), place("books", "team", "payments"), place("new", "tier", "prod"), live)
	got := planOf(t, ground(t, nil, objects...), manifest("payments", `{selector: {labels: {matchLabels: {tier: prod}}}, quota: {hard: {pods: "20"}}, enforcement: {mode: Audit}}`))
	if diff := cmp.Diff([]render.PlanAsked{
		{Namespaces: []string{"books"}, NoLonger: []string{"pods"}, Was: "Fail"},
		{Namespaces: []string{"new"}, Newly: []string{"pods"}, FailurePolicy: "Ignore"},
		{Namespaces: []string{"shop"}, FailurePolicy: "Ignore", Was: "Fail"},
	}, got.Webhook.Changes, cmp.Transformer("empty", func(names []string) string { return strings.Join(names, ",") })); diff != "" {
		t.Errorf("webhook (-want,+got):\n%s", diff)
	}
	quota := got.Quotas[0]
	if diff := cmp.Diff([][]string{{"new", "shop"}, {"new"}, {"books"}}, [][]string{quota.Namespaces, quota.Joining, quota.Leaving}); diff != "" {
		t.Errorf("namespaces, joining and leaving (-want,+got):\n%s", diff)
	}
	if limit := quota.Resources[0]; limit.Used.String() != "2" || limit.UsedFrom != render.FromCount || quota.WhenUnavailable != quotav1.UnavailableAdmit {
		t.Errorf("got %+v", quota)
	}
	want := []string{"pods: the mode changes from Deny to Audit: requests that don't fit are admitted, and noted in the API server's audit log."}
	if diff := cmp.Diff(want, quota.Remarks); diff != "" {
		t.Errorf("remarks (-want,+got):\n%s", diff)
	}
}

func TestWhatMayNotBeRead(t *testing.T) {
	objects := append(podsIn("shop", 2), place("shop", "team", "payments", "tier", "prod"), place("books", "team", "payments"),
		counted("payments", "payments", "20", map[string]int64{"shop": 2, "books": 4}))
	file := team("payments", "pods: 3") + "---\n" + manifest("prod", `{selector: {labels: {matchLabels: {tier: prod}}}, quota: {hard: {pods: "20", secrets: 1}}}`)
	t.Run("pods and secrets", func(t *testing.T) {
		got := planOf(t, ground(t, []string{"Pod", "Secret"}, objects...), file)
		prod := got.Quotas[1]
		if limit := prod.Resources[0]; limit.UsedFrom != render.FromOthers || limit.Used.String() != "2" {
			t.Errorf("pods are in the slices of payments; got %+v", limit)
		}
		if limit := prod.Resources[1]; limit.UsedFrom != render.FromNowhere || limit.Used != nil || got.Result != render.PlanAbove {
			t.Errorf("got %s, %+v", got.Result, limit)
		}
		want := []string{"secrets: what is used is unknown until it is counted, because you may not list pods, secrets."}
		if diff := cmp.Diff(want, prod.Remarks); diff != "" {
			t.Errorf("remarks (-want,+got):\n%s", diff)
		}
	})
	t.Run("namespaces and nodes", func(t *testing.T) {
		got := planOf(t, ground(t, []string{"Namespace", "Node"}, objects...), strings.ReplaceAll(file, "pods: 3", "pods: 30"))
		if got.Result != render.PlanUnknown || got.Nodes != nil || got.Sums[0].Allocatable != nil {
			t.Errorf("got %+v", got)
		}
		if diff := cmp.Diff([]string{"shop", "books"}, got.Quotas[0].Namespaces, cmp.Transformer("sorted", func(names []string) int { return len(names) })); diff != "" {
			t.Errorf("namespaces of payments (-want,+got):\n%s", diff)
		}
		if got.Quotas[1].NamespacesKnown || got.Quotas[1].Resources[0].Used != nil {
			t.Errorf("got %+v", got.Quotas[1])
		}
		want := []string{
			"You may not list namespaces: which of them quotas select, share, or let the API server ask about isn't known.",
			"You may not list nodes: all limits together aren't compared with what nodes have.",
		}
		if diff := cmp.Diff(want, got.Notes); diff != "" {
			t.Errorf("notes (-want,+got):\n%s", diff)
		}
	})
}

func TestATrialOfTheLimit(t *testing.T) {
	live := counted("payments", "payments", "20", map[string]int64{"shop": 2})
	live.Spec.Trial.Hard = corev1.ResourceList{"pods": resource.MustParse("10")}
	live.Status.Trial = &quotav1.TrialStatus{Since: daysAgo(9)}
	live.Status.HistorySince, live.Status.History = ptr.To(daysAgo(30)), []quotav1.ResourceHistory{seen("pods", "12", 2, "-12")}
	file := manifest("payments", "{"+selector+`, quota: {hard: {pods: "10"}}, trial: {hard: {pods: "10"}}}`)
	for name, c := range map[string]struct {
		refused []quotav1.TrialRefusals
		want    string
	}{
		"refused nothing": {nil, "pods: the trial of this limit has refused nothing since 2026-11-15."},
		"refused": {[]quotav1.TrialRefusals{{Resource: "pods", Requests: 1}},
			"pods: the trial of this limit would have refused 1 request since 2026-11-15, at most."},
	} {
		t.Run(name, func(t *testing.T) {
			live.Status.Trial.WouldRefuse = c.refused
			got := planOf(t, ground(t, nil, place("shop", "team", "payments"), live.DeepCopy()), file)
			want := []string{"pods: the peak of the last 30 days, 12 on 2026-11-23, is above the limit.",
				"pods: each of the 2 requests that didn't fit in the last 30 days would have fitted.", c.want}
			if diff := cmp.Diff(want, got.Quotas[0].Remarks); diff != "" {
				t.Errorf("remarks (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestOddQuotas(t *testing.T) {
	live := counted("payments", "payments", "20", nil)
	cluster := ground(t, nil, live)
	t.Run("unchanged", func(t *testing.T) {
		if got := planOf(t, cluster, team("payments", "pods: 20")).Quotas[0]; got.Change != render.PlanUnchanged {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("without limits, and for nothing", func(t *testing.T) {
		got := planOf(t, ground(t, nil, live), manifest("payments", "{"+selector+", quota: {}}"))
		want := []string{"It selects no namespace that exists.", "It has no limit.", "It no longer limits pods."}
		if diff := cmp.Diff(want, got.Quotas[0].Remarks); diff != "" || got.Result != render.PlanFits {
			t.Errorf("%s: remarks (-want,+got):\n%s", got.Result, diff)
		}
	})
	t.Run("for programs", func(t *testing.T) {
		got := planOf(t, cluster, team("payments", "pods: 20"))
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(got)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(content["overlaps"])
		if err != nil || string(text) != "[]" {
			t.Errorf("overlaps are %s, %v", text, err)
		}
	})
}
