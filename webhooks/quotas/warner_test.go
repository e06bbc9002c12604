// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

// What each warning says, word for word.
const (
	idle = "spec.selector selects no namespace (team=nobody): nothing is limited until one matches; " +
		"label namespaces, or correct the selector"
	selectsProtected = "spec.selector selects protected namespaces, where nothing is ever refused: " +
		"exclude kube-public, kube-system, such as by the label kubernetes.io/metadata.name"
	alsoOpenShift = "OpenShift's ClusterResourceQuota of the same name selects ledgers, shop too: both limit what is there; " +
		"delete that one once this one is enforced"
	below = "spec.quota.hard is below what is used (pods: 3/1, requests.cpu: 1500m/1): no more is admitted until less is used; " +
		"delete something, or raise the limit"
	unlimitable = "Kubernetes keeps no quota on count/events, vendor.example/gpu: correct spec.quota.hard; an extended resource is " +
		"requests.DOMAIN/NAME, a count is count/RESOURCE.GROUP"
	unserved = "the cluster doesn't serve what is limited by count/podz, count/widgets.example.com: correct spec.quota.hard, " +
		"or install its CustomResourceDefinition"
	clusterScoped = "count/nodes can't be limited, for its objects live outside of namespaces: remove it from spec.quota.hard"
)

var (
	podz    = schema.GroupResource{Resource: "podz"}
	nodes   = schema.GroupResource{Resource: "nodes"}
	widgets = schema.GroupResource{Group: "example.com", Resource: "widgets"}
	claims  = schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}
)

// payments is a cluster of three teams that serves neither podz nor widgets.
func payments() *surroundings {
	return &surroundings{
		teams: map[string]string{
			"shop": "payments", "ledgers": "payments", "web": "search", "kube-system": "system", "kube-public": "system",
		},
		places: map[schema.GroupResource]Place{widgets: Nowhere, podz: Nowhere, nodes: OutsideNamespaces},
	}
}

func (s *surroundings) warnings(ctx context.Context, previous, current *quotav1.ClusterResourceQuota) admission.Warnings {
	evaluators := evaluation.New(clocktesting.NewFakeClock(time.Unix(0, 0)), evaluation.ClaimSources{})
	return NewWarner(s, evaluators, s, []string{"kube-system", "kube-public"}).Warnings(ctx, previous, current)
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

// using says what is used of the quota.
func using(quota *quotav1.ClusterResourceQuota, used ...string) *quotav1.ClusterResourceQuota {
	quota.Status.ObservedGeneration = quota.Generation
	quota.Status.Total.Used = quotaOf(used...)
	return quota
}

func quotaOf(pairs ...string) corev1.ResourceList { return quota("", pairs...).Spec.Quota.Hard }

func TestWarningsAboutANewQuota(t *testing.T) {
	for name, test := range map[string]struct {
		around func(*surroundings)
		quota  *quotav1.ClusterResourceQuota
		want   admission.Warnings
	}{
		"all is well": {
			quota: quota("payments", "pods", "1", "requests.cpu", "1", "count/deployments.apps", "1", "requests.vendor.example/gpu", "1"),
		},
		"it selects nothing": {
			quota: quota("nobody", "pods", "1"),
			want:  admission.Warnings{idle},
		},
		"it selects protected namespaces": {
			quota: quota("system", "pods", "1"),
			want:  admission.Warnings{selectsProtected},
		},
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
		"OpenShift's quota of its name selects no one knows what": {
			around: func(s *surroundings) { s.openShift = map[string]quotav1.ClusterResourceQuotaSelector{"payments": {}} },
			quota:  quota("payments", "pods", "1"),
		},
		"OpenShift's quota of another name selects the same namespaces": {
			around: func(s *surroundings) {
				s.openShift = map[string]quotav1.ClusterResourceQuotaSelector{"other": ofTeam("payments")}
			},
			quota: quota("payments", "pods", "1"),
		},
		"Kubernetes keeps no quota on what it names": {
			quota: quota("payments", "vendor.example/gpu", "1", "count/events", "1", "pods", "1"),
			want:  admission.Warnings{unlimitable},
		},
		"the cluster doesn't serve what it limits": {
			quota: quota("payments", "count/widgets.example.com", "1", "count/podz", "1", "pods", "1"),
			want:  admission.Warnings{unserved},
		},
		"it limits what doesn't live in namespaces": {
			quota: quota("payments", "count/nodes", "1", "pods", "1"),
			want:  admission.Warnings{clusterScoped},
		},
		"whether the cluster serves what it limits can't be told": {
			around: func(s *surroundings) { s.places[widgets] = 0 },
			quota:  quota("payments", "count/widgets.example.com", "1"),
		},
		"one of two resources that use what it limits isn't served": {
			around: func(s *surroundings) { s.places[claims] = Nowhere },
			quota:  quota("payments", "requests.vendor.example/gpu", "1"),
		},
		"what it says of its use is not its own": {
			quota: using(quota("payments", "pods", "1"), "pods", "3"),
		},
		"several things at a time": {
			around: func(s *surroundings) {
				s.teams["kube-public"], s.teams["kube-system"] = "payments", "payments"
				s.openShift = map[string]quotav1.ClusterResourceQuotaSelector{"payments": ofTeam("payments")}
			},
			quota: quota("payments", "count/nodes", "1", "count/widgets.example.com", "1", "count/podz", "1",
				"vendor.example/gpu", "1", "count/events", "1"),
			want: admission.Warnings{
				selectsProtected, strings.Replace(alsoOpenShift, "ledgers", "kube-public, kube-system, ledgers", 1),
				unlimitable, unserved, clusterScoped,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			around := payments()
			if test.around != nil {
				test.around(around)
			}
			if diff := cmp.Diff(test.want, around.warnings(t.Context(), nil, test.quota)); diff != "" {
				t.Errorf("warnings (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestWarningsAboutAChange(t *testing.T) {
	busy := func() *quotav1.ClusterResourceQuota {
		return using(quota("payments", "pods", "5", "requests.cpu", "2"), "pods", "3", "requests.cpu", "1500m")
	}
	with := func(quota *quotav1.ClusterResourceQuota, change func(*quotav1.ClusterResourceQuota)) *quotav1.ClusterResourceQuota {
		change(quota)
		return quota
	}
	for name, test := range map[string]struct {
		was, is *quotav1.ClusterResourceQuota
		want    admission.Warnings
	}{
		"limits fall below what is used": {
			was: busy(), is: quota("payments", "pods", "1", "requests.cpu", "1"),
			want: admission.Warnings{below},
		},
		"a limit rises and is still below what is used": {
			was:  using(quota("payments", "pods", "1"), "pods", "3"),
			is:   quota("payments", "pods", "2"),
			want: admission.Warnings{strings.Replace(below, "pods: 3/1, requests.cpu: 1500m/1", "pods: 3/2", 1)},
		},
		"limits fall to what is used": {
			was: busy(), is: quota("payments", "pods", "3", "requests.cpu", "1500m"),
		},
		"another limit falls than that which is below": {
			was:  using(quota("payments", "pods", "1", "requests.cpu", "2"), "pods", "3", "requests.cpu", "1500m"),
			is:   quota("payments", "pods", "1", "requests.cpu", "1"),
			want: admission.Warnings{strings.Replace(below, "pods: 3/1, ", "", 1)},
		},
		"a limit falls below the peak": {
			was: peaking(quota("payments", "pods", "30", "secrets", "5"), "pods", "20"), is: quota("payments", "pods", "15", "secrets", "5"),
			want: admission.Warnings{"spec.quota.hard is below the peak of the last 30 days (pods: 20/15): " +
				"it fits what is used now, and not what was; see status.history"},
		},
		"a limit rises and is still below the peak": {
			was: peaking(quota("payments", "pods", "10"), "pods", "20"), is: quota("payments", "pods", "15"),
		},
		"a limit falls to the peak": {
			was: peaking(quota("payments", "pods", "30"), "pods", "20"), is: quota("payments", "pods", "20"),
		},
		"a limit falls below the peak while the selector changes": {
			was: peaking(quota("payments", "pods", "30"), "pods", "20"), is: quota("search", "pods", "15"),
		},
		"a trial is below what is used": {
			was: busy(), is: with(quota("payments", "pods", "3", "requests.cpu", "1500m"), func(q *quotav1.ClusterResourceQuota) {
				q.Spec.Trial.Hard = quotaOf("pods", "1")
			}),
		},
		"limits fall while the selector changes": {
			was: busy(), is: quota("search", "pods", "1"),
		},
		"limits fall while the scopes change": {
			was: busy(), is: with(quota("payments", "pods", "1"), func(q *quotav1.ClusterResourceQuota) {
				q.Spec.Quota.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
					{ScopeName: corev1.ResourceQuotaScopeBestEffort, Operator: corev1.ScopeSelectorOpExists},
				}}
			}),
		},
		"limits fall before the last change is counted": {
			was: with(busy(), func(q *quotav1.ClusterResourceQuota) { q.Status.ObservedGeneration-- }),
			is:  quota("payments", "pods", "1"),
		},
		"the selector selects nothing any more": {
			was: quota("payments", "pods", "1"), is: quota("nobody", "pods", "1"),
			want: admission.Warnings{idle},
		},
		"the selector selects protected namespaces now": {
			was: quota("payments", "pods", "1"), is: quota("system", "pods", "1"),
			want: admission.Warnings{selectsProtected},
		},
		"what is not served is limited too": {
			was: quota("payments", "count/podz", "1"), is: quota("payments", "count/podz", "1", "count/widgets.example.com", "1"),
			want: admission.Warnings{strings.Replace(unserved, "count/podz, ", "", 1)},
		},
		"what can't be limited is limited too": {
			was: quota("payments", "pods", "1"), is: quota("payments", "pods", "1", "count/events", "1", "vendor.example/gpu", "1"),
			want: admission.Warnings{unlimitable},
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
	quota.Status.History = []quotav1.ResourceHistory{{Resource: name, Peak: quotav1.PeakHistory{Month: resource.MustParse(peak)}}}
	return quota
}

// Who changes something else must not be told again of what was there before.
func TestNothingIsSaidOfWhatARequestDoesNotChange(t *testing.T) {
	bad := func() *quotav1.ClusterResourceQuota {
		return using(quota("nobody", "pods", "1", "count/podz", "1", "count/nodes", "1", "count/events", "1"), "pods", "3")
	}
	for name, change := range map[string]func(*quotav1.ClusterResourceQuota){
		"nothing":    func(*quotav1.ClusterResourceQuota) {},
		"its labels": func(q *quotav1.ClusterResourceQuota) { q.Labels = map[string]string{"a": "b"} },
		"its status": func(q *quotav1.ClusterResourceQuota) { q.Status.Total.Used = quotaOf("pods", "9") },
		"a limit of which there is nothing to say": func(q *quotav1.ClusterResourceQuota) {
			q.Spec.Quota.Hard["count/podz"] = resource.MustParse("2")
		},
		"a limit's notation": func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota.Hard["pods"] = resource.MustParse("1000m") },
		"a limit that goes":  func(q *quotav1.ClusterResourceQuota) { delete(q.Spec.Quota.Hard, "count/podz") },
		"the selector's notation": func(q *quotav1.ClusterResourceQuota) {
			q.Spec.Selector.AnnotationSelector = map[string]string{}
		},
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

func TestNoWarningWithoutKnowledge(t *testing.T) {
	broken := errors.New("broken")
	all := admission.Warnings{selectsProtected, strings.Replace(alsoOpenShift, "ledgers, shop", "kube-public, kube-system", 1), unserved}
	for name, test := range map[string]struct {
		around func(*surroundings)
		want   admission.Warnings
	}{
		"all is known":                        {around: func(*surroundings) {}, want: all},
		"the namespaces are not known":        {around: func(s *surroundings) { s.namespacesErr = broken }, want: all[2:]},
		"OpenShift's quotas can't be read":    {around: func(s *surroundings) { s.openShiftErr = broken }, want: admission.Warnings{all[0], all[2]}},
		"what the cluster serves isn't known": {around: func(s *surroundings) { s.placesErr = broken }, want: all[:2]},
	} {
		t.Run(name, func(t *testing.T) {
			around := payments()
			around.openShift = map[string]quotav1.ClusterResourceQuotaSelector{"payments": ofTeam("system")}
			test.around(around)
			got := around.warnings(t.Context(), nil, quota("system", "count/podz", "1", "count/widgets.example.com", "1"))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("warnings (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestAClusterThatDoesNotAnswerIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), warnTimeout+time.Second)
		defer cancel()
		around := payments()
		around.hang = true
		if warnings := around.warnings(ctx, nil, quota("payments", "pods", "1", "count/podz", "1")); len(warnings) > 0 {
			t.Errorf("got the warnings %q, want none", warnings)
		}
		if ctx.Err() != nil {
			t.Errorf("waited for longer than %s", warnTimeout)
		}
		if around.asked == 0 {
			t.Error("want the cluster asked")
		}
	})
}

func TestAWarningIsShortWhateverItIsAbout(t *testing.T) {
	const longest = 200
	long := strings.Repeat("n", validation.DNS1123SubdomainMaxLength)
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("%s-%d", long[:20], i))
	}
	for name, items := range map[string][]string{"one long name": {long}, "many names": many} {
		found := &findings{
			idleSelector: items[0], protected: items, openShift: items, belowUsed: items, belowPeak: items,
			unlimitable: items, unserved: items, clusterScoped: items,
		}
		warnings := found.warnings()
		if len(warnings) != 8 {
			t.Errorf("%s: got %d warnings, want one of each", name, len(warnings))
		}
		for _, warning := range warnings {
			if len(warning) > longest {
				t.Errorf("%s: got %d bytes, want at most %d: %s", name, len(warning), longest, warning)
			}
		}
	}
}

func TestAListIsCutToALine(t *testing.T) {
	long := strings.Repeat("x", room)
	for name, test := range map[string]struct {
		items []string
		want  string
	}{
		"one":                {items: []string{"a"}, want: "a"},
		"several":            {items: []string{"a", "b", "c"}, want: "a, b, c"},
		"more than fit":      {items: []string{long[:50], "b", "ccccccc", "d"}, want: long[:50] + ", b and 2 more"},
		"one that just fits": {items: []string{long}, want: long},
		"one that doesn't":   {items: []string{long + "x", "b"}, want: long[:room-3] + "... and 1 more"},
		"a rune in two":      {items: []string{long[:room-4] + "äöü"}, want: long[:room-4] + "..."},
		"a line in two":      {items: []string{"a\nb\tc"}, want: "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := list(test.items); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
