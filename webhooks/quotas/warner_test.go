// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// The text of each warning, word for word.
const (
	idle = "spec.selector selects no namespace (team=nobody): nothing is limited until one matches; " +
		"label namespaces, or correct the selector"
	selectsProtected = "spec.selector selects protected namespaces, where nothing is ever refused: " +
		"exclude kube-public, kube-system, such as by the label kubernetes.io/metadata.name"
	alsoOpenShift = "OpenShift's ClusterResourceQuota of the same name selects ledgers, shop too: both limit what is there; " +
		"delete that one once this one is enforced"
	below = "spec.quota.hard is below what is used: pods by 2 (3/1), requests.cpu by 500m (1500m/1); " +
		"no more is admitted until less is used: delete something, or raise the limit"
	belowButWarned = "spec.quota.hard is below what is used: pods by 2 (3/1); requests that don't fit are admitted, and their senders are warned: " +
		"delete something, or raise the limit, before the mode is Deny"
	limitNothing = "names in spec.quota.hard that limit nothing: count/nodes (outside of namespaces), count/events, " +
		"vendor.example/gpu (write requests.vendor.example/gpu), count/jobs (write count/jobs.batch); correct or remove them"
	unserved = "the cluster doesn't serve what is limited by count/gizmos, count/widgets.example.com: correct spec.quota.hard, " +
		"or install its CustomResourceDefinition"
	overlapping = "other quotas limit the same: all (requests.cpu in 2 namespaces), team (pods, requests.cpu in 1 namespace); " +
		"a request must fit each quota whose mode is Deny: see that this is meant"
	audits = "spec.enforcement.mode is Audit, which refuses nothing: " +
		"requests that don't fit are admitted, and noted in events and in the API server's audit log; set Deny to have them refused"
	selectsTwo = "spec.selector selects 2 namespaces: ledgers, shop"
	unchecked  = "the operator could not check this, because a read failed or took too long: "
	again      = "; try again with --dry-run=server to have it checked"
)

var (
	jobs    = schema.GroupResource{Resource: "jobs"}
	gizmos  = schema.GroupResource{Resource: "gizmos"}
	nodes   = schema.GroupResource{Resource: "nodes"}
	widgets = schema.GroupResource{Group: "example.com", Resource: "widgets"}
	claims  = schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}
)

// payments is a cluster of three teams that serves no gizmos, no widgets, and jobs in another group.
func payments() *surroundings {
	return &surroundings{
		teams: map[string]string{
			"shop": "payments", "ledgers": "payments", "web": "search", "kube-system": "system", "kube-public": "system",
		},
		served: map[schema.GroupResource]*Served{widgets: {}, gizmos: {}, jobs: {}, nodes: {Version: "v1"}},
	}
}

// busy is payments with three pods in shop, one in ledgers and one of the team search.
func busy() *surroundings {
	around := payments()
	around.objects = map[string][]client.Object{"pods": {
		builders.Pod("shop", "a").Request("cpu", "500m").Obj(), builders.Pod("shop", "b").Request("cpu", "500m").Obj(),
		builders.Pod("shop", "c").Obj(), builders.Pod("ledgers", "d").Request("cpu", "500m").Obj(), builders.Pod("web", "e").Obj(),
	}}
	return around
}

func (s *surroundings) warnings(ctx context.Context, previous, current *quotav1.ClusterResourceQuota) admission.Warnings {
	return s.warner().Warnings(ctx, previous, current)
}

// dryRun is the context of a request that is one.
func dryRun(ctx context.Context) context.Context {
	return admission.NewContextWithRequest(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{DryRun: ptr.To(true)}})
}

// quota is of a team and limits this, in pairs of name and quantity.
func quota(team string, hard ...string) *quotav1.ClusterResourceQuota {
	limits := corev1.ResourceList{}
	for i := 0; i < len(hard); i += 2 {
		limits[corev1.ResourceName(hard[i])] = resource.MustParse(hard[i+1])
	}
	return &quotav1.ClusterResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "payments", Generation: 2},
		Spec:       quotav1.ClusterResourceQuotaSpec{Selector: ofTeam(team), Quota: quotav1.ResourceQuotaSpec{Hard: limits}},
	}
}

func ofTeam(team string) quotav1.ClusterResourceQuotaSelector {
	return quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}}
}

// with changes a quota.
func with(quota *quotav1.ClusterResourceQuota, change func(*quotav1.ClusterResourceQuota)) *quotav1.ClusterResourceQuota {
	change(quota)
	return quota
}

// using sets the use of the quota.
func using(quota *quotav1.ClusterResourceQuota, used ...string) *quotav1.ClusterResourceQuota {
	quota.Status.ObservedGeneration = quota.Generation
	quota.Status.Total.Used = quotaOf(used...)
	return quota
}

// counted is another quota that has counted a namespace's use.
func counted(quota *quotav1.ClusterResourceQuota, name, namespace string, used ...string) *quotav1.ClusterResourceQuota {
	quota.Name, quota.Status.ObservedGeneration = name, quota.Generation
	quota.Status.Conditions = []metav1.Condition{{Type: quotav1.ConditionReady, Status: metav1.ConditionTrue}}
	quota.Status.Namespaces = []quotav1.ResourceQuotaStatusByNamespace{
		{Namespace: namespace, Status: corev1.ResourceQuotaStatus{Used: quotaOf(used...)}},
	}
	return quota
}

func quotaOf(pairs ...string) corev1.ResourceList { return quota("", pairs...).Spec.Quota.Hard }

func scoped(quota *quotav1.ClusterResourceQuota) {
	quota.Spec.Quota.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopeBestEffort, Operator: corev1.ScopeSelectorOpExists},
	}}
}

func TestWarningsAboutANewQuota(t *testing.T) {
	for name, test := range map[string]struct {
		around func(*surroundings)
		quota  *quotav1.ClusterResourceQuota
		want   admission.Warnings
	}{
		"all is well":                     {quota: quota("payments", "pods", "1", "requests.cpu", "1", "count/deployments.apps", "1", "requests.vendor.example/gpu", "1")},
		"it selects nothing":              {quota: quota("nobody", "pods", "1"), want: admission.Warnings{idle}},
		"it selects protected namespaces": {quota: quota("system", "pods", "1"), want: admission.Warnings{selectsProtected}},
		"OpenShift's quota of its name selects the same namespaces": {
			around: func(s *surroundings) {
				s.openShift = map[string]quotav1.ClusterResourceQuotaSelector{"payments": ofTeam("payments")}
			},
			quota: quota("payments", "pods", "1"),
			want:  admission.Warnings{alsoOpenShift},
		},
		"OpenShift's quota of its name selects other namespaces": {
			around: func(s *surroundings) {
				s.openShift = map[string]quotav1.ClusterResourceQuotaSelector{"payments": ofTeam("search")}
			},
			quota: quota("payments", "pods", "1"),
		},
		"OpenShift's quota of another name selects the same namespaces": {
			around: func(s *surroundings) {
				s.openShift = map[string]quotav1.ClusterResourceQuotaSelector{"other": ofTeam("payments")}
			},
			quota: quota("payments", "pods", "1"),
		},
		"it limits what nothing uses, or what doesn't live in namespaces": {
			quota: quota("payments", "vendor.example/gpu", "1", "count/events", "1", "count/nodes", "1", "count/jobs", "1", "pods", "1"),
			want:  admission.Warnings{limitNothing},
		},
		"the cluster doesn't serve what it limits": {
			quota: quota("payments", "count/widgets.example.com", "1", "count/gizmos", "1", "pods", "1"),
			want:  admission.Warnings{unserved},
		},
		"whether the cluster serves what it limits can't be told": {
			around: func(s *surroundings) { s.served[widgets] = nil },
			quota:  quota("payments", "count/widgets.example.com", "1"),
		},
		"one of two resources that use what it limits isn't served": {
			around: func(s *surroundings) { s.served[claims] = &Served{} },
			quota:  quota("payments", "requests.vendor.example/gpu", "1"),
		},
		"what it says of its use is not its own": {quota: using(quota("payments", "pods", "1"), "pods", "3")},
		"several things at a time": {
			around: func(s *surroundings) {
				s.teams["kube-public"], s.teams["kube-system"] = "payments", "payments"
				s.openShift = map[string]quotav1.ClusterResourceQuotaSelector{"payments": ofTeam("payments")}
			},
			quota: quota("payments", "count/nodes", "1", "count/widgets.example.com", "1", "count/gizmos", "1",
				"vendor.example/gpu", "1", "count/events", "1", "count/jobs", "1"),
			want: admission.Warnings{
				limitNothing, unserved, selectsProtected, strings.Replace(alsoOpenShift, "ledgers", "kube-public, kube-system, ledgers", 1),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			around := busy()
			if test.around != nil {
				test.around(around)
			}
			if diff := cmp.Diff(test.want, around.warnings(t.Context(), nil, test.quota)); diff != "" {
				t.Errorf("warnings (-want,+got):\n%s", diff)
			}
			if len(around.visited) > 0 {
				t.Errorf("listed %q, though it is no dry run", around.visited)
			}
		})
	}
}

func TestWarningsAboutAChange(t *testing.T) {
	busy := func() *quotav1.ClusterResourceQuota {
		return using(quota("payments", "pods", "5", "requests.cpu", "2"), "pods", "3", "requests.cpu", "1500m")
	}
	for name, test := range map[string]struct {
		was, is *quotav1.ClusterResourceQuota
		want    admission.Warnings
	}{
		"limits fall below what is used": {was: busy(), is: quota("payments", "pods", "1", "requests.cpu", "1"), want: admission.Warnings{below}},
		"a limit of a quota that warns falls below what is used": {
			was: in(quotav1.EnforcementWarn, busy()), is: in(quotav1.EnforcementWarn, quota("payments", "pods", "1", "requests.cpu", "2")),
			want: admission.Warnings{belowButWarned},
		},
		"a limit rises and is still below what is used": {
			was:  using(quota("payments", "pods", "1"), "pods", "3"),
			is:   quota("payments", "pods", "2"),
			want: admission.Warnings{strings.Replace(below, "pods by 2 (3/1), requests.cpu by 500m (1500m/1)", "pods by 1 (3/2)", 1)},
		},
		"limits fall to what is used": {was: busy(), is: quota("payments", "pods", "3", "requests.cpu", "1500m")},
		"another limit falls than that which is below": {
			was:  using(quota("payments", "pods", "1", "requests.cpu", "2"), "pods", "3", "requests.cpu", "1500m"),
			is:   quota("payments", "pods", "1", "requests.cpu", "1"),
			want: admission.Warnings{strings.Replace(below, "pods by 2 (3/1), ", "", 1)},
		},
		"the largest share is the first, and a limit of zero is before it": {
			was: using(quota("payments", "pods", "9", "secrets", "9", "services", "9"), "pods", "4", "secrets", "8", "services", "1"),
			is:  quota("payments", "pods", "2", "secrets", "2", "services", "0"),
			want: admission.Warnings{strings.Replace(below, "pods by 2 (3/1), requests.cpu by 500m (1500m/1)",
				"services by 1 (1/0), secrets by 6 (8/2), pods by 2 (4/2)", 1)},
		},
		"a limit falls below the peak": {
			was: peaking(quota("payments", "pods", "30", "secrets", "5"), "pods", "20"), is: quota("payments", "pods", "15", "secrets", "5"),
			want: admission.Warnings{"spec.quota.hard is below the peak of the last 30 days (pods: 20/15): " +
				"it fits what is used now, and not what was; see status.peaks"},
		},
		"a limit rises and is still below the peak": {was: peaking(quota("payments", "pods", "10"), "pods", "20"), is: quota("payments", "pods", "15")},
		"a limit falls to the peak":                 {was: peaking(quota("payments", "pods", "30"), "pods", "20"), is: quota("payments", "pods", "20")},
		"a limit falls below the peak while the selector changes": {
			was: peaking(quota("payments", "pods", "30"), "pods", "20"), is: quota("search", "pods", "15"),
		},
		"limits fall while the selector changes": {was: busy(), is: quota("search", "pods", "1")},
		"limits fall while the scopes change":    {was: busy(), is: with(quota("payments", "pods", "1"), scoped)},
		"limits fall before the last change is counted": {
			was: with(busy(), func(q *quotav1.ClusterResourceQuota) { q.Status.ObservedGeneration-- }),
			is:  quota("payments", "pods", "1"),
		},
		"the selector selects nothing any more": {was: quota("payments", "pods", "1"), is: quota("nobody", "pods", "1"), want: admission.Warnings{idle}},
		"the selector selects protected namespaces now": {
			was: quota("payments", "pods", "1"), is: quota("system", "pods", "1"),
			want: admission.Warnings{selectsProtected},
		},
		"what is not served is limited too": {
			was: quota("payments", "count/gizmos", "1"), is: quota("payments", "count/gizmos", "1", "count/widgets.example.com", "1"),
			want: admission.Warnings{strings.Replace(unserved, "count/gizmos, ", "", 1)},
		},
		"what can't be limited is limited too": {
			was: quota("payments", "pods", "1"), is: quota("payments", "pods", "1", "count/nodes", "1", "count/events", "1", "vendor.example/gpu", "1", "count/jobs", "1"),
			want: admission.Warnings{limitNothing},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, payments().warnings(t.Context(), test.was, test.is)); diff != "" {
				t.Errorf("warnings (-want,+got):\n%s", diff)
			}
		})
	}
}

// peaking has a resource of a quota reach a peak.
func peaking(quota *quotav1.ClusterResourceQuota, name corev1.ResourceName, peak string) *quotav1.ClusterResourceQuota {
	quota.Status.Peaks = []quotav1.ResourcePeaks{{Resource: name, Month: quotav1.Peak{Amount: resource.MustParse(peak)}}}
	return quota
}

// A dry run shows more: the quota's effect, though it isn't a mistake.
func TestWarningsOfADryRun(t *testing.T) {
	crossTeam := quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpExists}},
	}}
	others := func(change func(all, team *quotav1.ClusterResourceQuota)) []quotav1.ClusterResourceQuota {
		all, team := counted(quota("", "cpu", "9"), "all", ""), counted(quota("payments", "pods", "9", "requests.cpu", "9"), "team", "shop", "pods", "7")
		all.Spec.Selector = crossTeam
		if change != nil {
			change(all, team)
		}
		return []quotav1.ClusterResourceQuota{*all, *team, *counted(quota("payments", "secrets", "9"), "secrets", "shop"), *quota("payments", "pods", "9")}
	}
	for name, test := range map[string]struct {
		around  func(*surroundings)
		was, is *quotav1.ClusterResourceQuota
		want    admission.Warnings
		// listed are the resources that had to be, sorted.
		listed []string
	}{
		"a new quota that makes sense": {
			is: quota("payments", "pods", "4"), want: admission.Warnings{selectsTwo}, listed: []string{"pods/ledgers", "pods/shop"},
		},
		"a new quota of one namespace": {
			is: quota("search", "pods", "4"), want: admission.Warnings{"spec.selector selects the namespace web"}, listed: []string{"pods/web"},
		},
		"a new quota that is below what is used": {
			is: quota("payments", "pods", "1", "requests.cpu", "1", "services", "1"), listed: []string{"pods/ledgers", "pods/shop", "services/ledgers", "services/shop"},
			want: admission.Warnings{strings.Replace(below, "pods by 2 (3/1)", "pods by 3 (4/1)", 1), selectsTwo},
		},
		"its scopes leave out some": {
			is: with(quota("payments", "pods", "0"), scoped), listed: []string{"pods/ledgers", "pods/shop"},
			want: admission.Warnings{strings.Replace(below, "pods by 2 (3/1), requests.cpu by 500m (1500m/1)", "pods by 1 (1/0)", 1), selectsTwo},
		},
		"another quota has counted a namespace": {
			around: func(s *surroundings) {
				s.quotas = others(func(_, team *quotav1.ClusterResourceQuota) { team.Spec.Selector = ofTeam("nobody") })[1:]
			},
			is: quota("payments", "pods", "1"), listed: []string{"pods/ledgers"},
			want: admission.Warnings{strings.Replace(below, "pods by 2 (3/1), requests.cpu by 500m (1500m/1)", "pods by 7 (8/1)", 1), selectsTwo},
		},
		"another quota has counted other objects": {
			around: func(s *surroundings) {
				s.quotas = []quotav1.ClusterResourceQuota{*with(counted(quota("nobody", "pods", "9"), "team", "shop", "pods", "7"), scoped)}
			},
			is: quota("payments", "pods", "4"), want: admission.Warnings{selectsTwo}, listed: []string{"pods/ledgers", "pods/shop"},
		},
		"another quota's count is old": {
			around: func(s *surroundings) {
				old := counted(quota("nobody", "pods", "9"), "team", "shop", "pods", "7")
				old.Status.ObservedGeneration--
				s.quotas = []quotav1.ClusterResourceQuota{*old}
			},
			is: quota("payments", "pods", "4"), want: admission.Warnings{selectsTwo}, listed: []string{"pods/ledgers", "pods/shop"},
		},
		"another quota isn't Ready": {
			around: func(s *surroundings) {
				stuck := counted(quota("nobody", "pods", "9"), "team", "shop", "pods", "7")
				stuck.Status.Conditions = nil
				s.quotas = []quotav1.ClusterResourceQuota{*stuck}
			},
			is: quota("payments", "pods", "4"), want: admission.Warnings{selectsTwo}, listed: []string{"pods/ledgers", "pods/shop"},
		},
		"other quotas limit the same": {
			around: func(s *surroundings) {
				s.quotas = others(func(_, team *quotav1.ClusterResourceQuota) {
					team.Spec.Selector.LabelSelector.MatchLabels = map[string]string{corev1.LabelMetadataName: "shop"}
				})
			},
			is: quota("payments", "pods", "9", "requests.cpu", "9"), listed: []string{"pods/ledgers", "pods/shop"},
			want: admission.Warnings{overlapping, selectsTwo},
		},
		"the mode is Audit": {
			is: in(quotav1.EnforcementAudit, quota("payments", "pods", "4")), listed: []string{"pods/ledgers", "pods/shop"},
			want: admission.Warnings{audits, selectsTwo},
		},
		"the mode becomes Audit": {
			was: using(quota("payments", "pods", "4")), is: in(quotav1.EnforcementAudit, quota("payments", "pods", "4")),
			want: admission.Warnings{audits},
		},
		"the mode stays Audit": {
			was: using(in(quotav1.EnforcementAudit, quota("payments", "pods", "5")), "pods", "3"),
			is:  in(quotav1.EnforcementAudit, quota("payments", "pods", "4")),
		},
		"a limit falls below what is used": {
			was: using(quota("payments", "pods", "4", "requests.cpu", "2"), "pods", "3", "requests.cpu", "1500m"),
			is:  quota("payments", "pods", "1", "requests.cpu", "1"), want: admission.Warnings{below},
		},
		"a limit is added": {
			was: using(quota("payments", "pods", "4"), "pods", "4"), is: quota("payments", "pods", "4", "requests.cpu", "1"),
			listed: []string{"pods/ledgers", "pods/shop"}, want: admission.Warnings{strings.Replace(below, "pods by 2 (3/1), ", "", 1)},
		},
		"the selector changes": {
			was: using(quota("search", "pods", "3"), "pods", "1"), is: quota("payments", "pods", "3"), listed: []string{"pods/ledgers", "pods/shop"},
			want: admission.Warnings{strings.Replace(below, "pods by 2 (3/1), requests.cpu by 500m (1500m/1)", "pods by 1 (4/3)", 1), selectsTwo},
		},
		"nothing changes": {was: using(quota("payments", "pods", "1"), "pods", "4"), is: quota("payments", "pods", "1")},
		"objects can't be listed": {
			around: func(s *surroundings) { s.visitErr = errors.New("broken") },
			is:     quota("payments", "pods", "1", "requests.cpu", "1"), listed: []string{"pods/ledgers", "pods/shop"},
			want: admission.Warnings{unchecked + "what is used of pods, requests.cpu" + again, selectsTwo},
		},
		"whether what counts is served can't be told": {
			around: func(s *surroundings) { s.served[widgets] = nil },
			is:     quota("payments", "count/widgets.example.com", "1"),
			want:   admission.Warnings{unchecked + "what is used of count/widgets.example.com" + again, selectsTwo},
		},
		"what counts isn't served": {
			is:   quota("payments", "count/gizmos", "1", "count/widgets.example.com", "1"),
			want: admission.Warnings{unserved, selectsTwo},
		},
	} {
		t.Run(name, func(t *testing.T) {
			around := busy()
			if test.around != nil {
				test.around(around)
			}
			if diff := cmp.Diff(test.want, around.warnings(dryRun(t.Context()), test.was, test.is)); diff != "" {
				t.Errorf("warnings (-want,+got):\n%s", diff)
			}
			slices.Sort(around.visited)
			if diff := cmp.Diff(test.listed, around.visited, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("listed (-want,+got):\n%s", diff)
			}
		})
	}
}

// With 5,000 namespaces each list is one of all namespaces, and memory answers the rest. The clock of the deadline stands
// still: how long it takes is seen on a real API server.
func TestADryRunOfFiveThousandNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		around := payments()
		around.objects = map[string][]client.Object{"pods": {builders.Pod("shop", "p").Obj()}}
		for i := range 5000 {
			name := fmt.Sprintf("n%04d", i)
			around.teams[name] = "many"
			around.objects["pods"] = append(around.objects["pods"], builders.Pod(name, "p").Obj())
		}
		for i := range 20 {
			other := counted(quota("many", "pods", "9000"), fmt.Sprintf("q%03d", i), "")
			other.Status.ObservedGeneration--
			around.quotas = append(around.quotas, *other)
		}
		got := around.warnings(dryRun(t.Context()), nil, quota("many", "pods", "4990", "services", "5"))
		if len(got) != 3 || !strings.Contains(got[0], "pods by 10 (5k/4990)") || !strings.Contains(got[1], "q000 (pods in 5000 namespaces), q001") ||
			!strings.Contains(got[2], "selects 5000 namespaces: n0000, n0001") {
			t.Errorf("got the warnings %q", got)
		}
		slices.Sort(around.visited)
		if !slices.Equal(around.visited, []string{"pods/", "services/"}) {
			t.Errorf("listed %q", around.visited)
		}
	})
}

// A user that changes something else must not be warned again of the parts that
// were there before.
func TestNothingIsSaidOfWhatARequestDoesNotChange(t *testing.T) {
	bad := func() *quotav1.ClusterResourceQuota {
		return using(quota("nobody", "pods", "1", "count/gizmos", "1", "count/nodes", "1", "count/events", "1"), "pods", "3")
	}
	for name, change := range map[string]func(*quotav1.ClusterResourceQuota){
		"nothing":    func(*quotav1.ClusterResourceQuota) {},
		"its labels": func(q *quotav1.ClusterResourceQuota) { q.Labels = map[string]string{"a": "b"} },
		"its status": func(q *quotav1.ClusterResourceQuota) { q.Status.Total.Used = quotaOf("pods", "9") },
		"a limit of which there is nothing to say": func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota.Hard["count/gizmos"] = resource.MustParse("2") },
		"a limit's notation":                       func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota.Hard["pods"] = resource.MustParse("1000m") },
		"a limit that goes":                        func(q *quotav1.ClusterResourceQuota) { delete(q.Spec.Quota.Hard, "count/gizmos") },
		"the selector's notation":                  func(q *quotav1.ClusterResourceQuota) { q.Spec.Selector.AnnotationSelector = map[string]string{} },
	} {
		t.Run(name, func(t *testing.T) {
			around, current := payments(), bad()
			change(current)
			if warnings := around.warnings(t.Context(), bad(), current); len(warnings) > 0 {
				t.Errorf("got the warnings %q, want none", warnings)
			}
			if around.asked > 0 {
				t.Errorf("the cluster was asked %d times, want not at all", around.asked)
			}
		})
	}
}

func TestOneLineHasWhatIsNotKnown(t *testing.T) {
	broken := errors.New("broken")
	all := admission.Warnings{unserved, selectsProtected, strings.Replace(alsoOpenShift, "ledgers, shop", "kube-public, kube-system", 1)}
	for name, test := range map[string]struct {
		around func(*surroundings)
		want   admission.Warnings
	}{
		"all is known": {around: func(*surroundings) {}, want: all},
		"the namespaces are not known": {
			around: func(s *surroundings) { s.namespacesErr = broken }, want: admission.Warnings{all[0], unchecked + "which namespaces are selected" + again},
		},
		"OpenShift's quotas can't be read": {
			around: func(s *surroundings) { s.openShiftErr = broken },
			want:   admission.Warnings{all[0], all[1], unchecked + "whether OpenShift has a quota of this name" + again},
		},
		"what the cluster serves isn't known": {
			around: func(s *surroundings) { s.servedErr = broken }, want: admission.Warnings{all[1], all[2], unchecked + "what the cluster serves" + again},
		},
		"a name that limits nothing, in any cluster": {
			around: func(s *surroundings) { s.servedErr, s.namespacesErr = broken, broken },
			want:   admission.Warnings{unchecked + "what the cluster serves, which namespaces are selected" + again},
		},
	} {
		t.Run(name, func(t *testing.T) {
			around := payments()
			around.openShift = map[string]quotav1.ClusterResourceQuotaSelector{"payments": ofTeam("system")}
			test.around(around)
			got := around.warnings(t.Context(), nil, quota("system", "count/gizmos", "1", "count/widgets.example.com", "1"))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("warnings (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestAClusterThatDoesNotAnswerIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(dryRun(t.Context()), time.Second)
		defer cancel()
		around := payments()
		around.hang = true
		got := around.warnings(ctx, nil, quota("payments", "pods", "1", "count/gizmos", "1"))
		want := admission.Warnings{unchecked + "what the cluster serves, which namespaces are selected" + again}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("warnings (-want,+got):\n%s", diff)
		}
		if ctx.Err() != nil {
			t.Error("it took longer than a second")
		}
	})
}

func TestTenShortLinesWhateverTheyAreAbout(t *testing.T) {
	long := strings.Repeat("n", validation.DNS1123SubdomainMaxLength)
	var many []string
	for i := range 5000 {
		many = append(many, fmt.Sprintf("%s-%d", long[:20], i))
	}
	for _, mode := range []quotav1.EnforcementMode{quotav1.EnforcementDeny, quotav1.EnforcementWarn, quotav1.EnforcementAudit} {
		for name, items := range map[string][]string{"one long name": {long}, "many names": many} {
			found := &findings{
				above: items, limitNothing: items, unserved: items, protected: items, openShift: items, belowPeak: items,
				unknown: items, overlaps: items, selected: items, mode: mode, newMode: true, largeSelector: "65 KiB",
			}
			warnings := found.warnings()
			if len(warnings) != 10 {
				t.Errorf("%s: got %d warnings, want ten", name, len(warnings))
			}
			for _, warning := range append(warnings, (&findings{idleSelector: items[0]}).warnings()...) {
				if len(warning) > webhookconfig.MaxWarning {
					t.Errorf("%s: got %d bytes, want at most %d: %s", name, len(warning), webhookconfig.MaxWarning, warning)
				}
			}
		}
	}
}

func TestAListIsCutToALine(t *testing.T) {
	const room = 75
	long := strings.Repeat("x", 60)
	for name, test := range map[string]struct {
		items []string
		want  string
	}{
		"one":                {items: []string{"a"}, want: "a"},
		"several":            {items: []string{"a", "b", "c"}, want: "a, b, c"},
		"more than fit":      {items: []string{long[:50], "b", "ccccccc", "d"}, want: long[:50] + ", b and 2 more"},
		"one that just fits": {items: []string{long}, want: long},
		"one that doesn't":   {items: []string{long + "x", "b"}, want: long[:57] + "... and 1 more"},
		"a rune in two":      {items: []string{long[:56] + "äöü"}, want: long[:56] + "..."},
		"a line in two":      {items: []string{"a\nb\tc"}, want: "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := list(test.items, room); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
