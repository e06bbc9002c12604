// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func TestBooks(t *testing.T) {
	pod := func(namespace, name string) *corev1.Pod { return builders.Pod(namespace, name).Obj() }
	cpu := func(name, quantity string) *corev1.Pod {
		return builders.Pod("a", name).Request(corev1.ResourceCPU, quantity).Obj()
	}
	ending := func(grace int64) *corev1.Pod {
		pod := pod("a", "x")
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: start}, &grace
		return pod
	}
	succeeded := pod("a", "x")
	succeeded.Status.Phase = corev1.PodSucceeded
	annotated := ns("a", "blue")
	annotated.Annotations = map[string]string{"owner": "ann"}

	for name, test := range map[string]struct {
		steps []step
		want  seen
	}{
		"nothing lives under a quota without namespaces": {
			[]step{put(pod("a", "x")), put(ns("a", "blue")), put(team().Hard("pods", "1").Obj())},
			seen{Lives: "pods=0", Peak: "pods=0"},
		},
		"what lived before the quota is counted and not judged": {
			[]step{put(pod("a", "x")), put(pod("a", "y")), put(ns("a", "red")), put(team().Hard("pods", "1").Obj())},
			seen{Lives: "pods=2", Peak: "pods=2", Slices: map[string]string{"a": "pods=2"}},
		},
		"objects come and go, and the peak stays": {
			[]step{
				put(team().Hard("pods", "2").Obj()), put(ns("a", "red")), put(ns("b", "red")), put(ns("c", "blue")),
				put(pod("a", "x")), put(pod("b", "x")), put(pod("c", "x")), gone(pod("a", "x")),
			},
			seen{Lives: "pods=1", Peak: "pods=2", Admitted: 2, Slices: map[string]string{"a": "pods=0", "b": "pods=1"}},
		},
		"each commit that raises what is above hard is a violation, in order": {
			[]step{
				put(team().Hard("pods", "1").Hard("count/pods", "2").Obj()), put(ns("a", "red")), put(ns("b", "red")),
				put(pod("a", "x")), put(pod("b", "x")), put(pod("b", "y")), put(pod("b", "y")), gone(pod("b", "y")), put(pod("b", "z")),
			},
			seen{
				Lives: "count/pods=3 pods=3", Peak: "count/pods=3 pods=3", Admitted: 4,
				Slices: map[string]string{"a": "count/pods=1 pods=1", "b": "count/pods=2 pods=2"},
				Violations: []string{
					"revision 5: pods/b/x raised pods under quota team to 2, above 1",
					"revision 6: pods/b/y raised count/pods under quota team to 3, above 2",
					"revision 6: pods/b/y raised pods under quota team to 3, above 1",
					"revision 9: pods/b/z raised count/pods under quota team to 3, above 2",
					"revision 9: pods/b/z raised pods under quota team to 3, above 1",
				},
			},
		},
		"what is above a limit that isn't enforced is none": {
			[]step{
				put(team().Hard("pods", "1").Enforcement(quotav1.EnforcementAudit, "").Obj()),
				put(ns("a", "red")), put(pod("a", "x")), put(pod("a", "y")),
			},
			seen{Lives: "pods=2", Peak: "pods=2", Admitted: 2, Slices: map[string]string{"a": "pods=2"}},
		},
		"within surge a commit is no violation, and told apart": {
			[]step{
				put(team().Hard("pods", "1").Surge("pods", "1").Obj()), put(ns("a", "red")),
				put(pod("a", "x")), put(pod("a", "y")), put(pod("a", "z")),
			},
			seen{
				Lives: "pods=3", Peak: "pods=3", Admitted: 3, Slices: map[string]string{"a": "pods=3"},
				Violations: []string{"revision 5: pods/a/z raised pods under quota team to 3, above 2"},
				Surged:     []string{"revision 4: pods/a/y raised pods under quota team to 2, above 1"},
			},
		},
		"surge of one resource is none of another": {
			[]step{
				put(team().Hard("pods", "1").Hard("count/pods", "1").Surge("pods", "5").Obj()), put(ns("a", "red")),
				put(pod("a", "x")), put(pod("a", "y")),
			},
			seen{
				Lives: "count/pods=2 pods=2", Peak: "count/pods=2 pods=2", Admitted: 2, Slices: map[string]string{"a": "count/pods=2 pods=2"},
				Violations: []string{"revision 4: pods/a/y raised count/pods under quota team to 2, above 1"},
				Surged:     []string{"revision 4: pods/a/y raised pods under quota team to 2, above 1"},
			},
		},
		"a surge that is removed is none, and what took it before stays told": {
			[]step{
				put(team().Hard("pods", "1").Surge("pods", "2").Obj()), put(ns("a", "red")), put(pod("a", "x")), put(pod("a", "y")),
				put(team().Hard("pods", "1").Obj()), put(pod("a", "z")),
			},
			seen{
				Lives: "pods=3", Peak: "pods=3", Admitted: 3, Slices: map[string]string{"a": "pods=3"},
				Violations: []string{"revision 6: pods/a/z raised pods under quota team to 3, above 1"},
				Surged:     []string{"revision 4: pods/a/y raised pods under quota team to 2, above 1"},
			},
		},
		"a surge that isn't enforced is taken by nobody": {
			[]step{
				put(team().Hard("pods", "1").Surge("pods", "1").Enforcement(quotav1.EnforcementWarn, "").Obj()),
				put(ns("a", "red")), put(pod("a", "x")), put(pod("a", "y")),
			},
			seen{Lives: "pods=2", Peak: "pods=2", Admitted: 2, Slices: map[string]string{"a": "pods=2"}},
		},
		"an update that takes nothing more is none, however much lives": {
			[]step{
				put(ns("a", "red")), put(cpu("x", "2")), put(team().Hard("requests.cpu", "1").Obj()),
				put(cpu("x", "2")), put(cpu("x", "1500m")),
			},
			seen{Lives: "requests.cpu=1500m", Peak: "requests.cpu=2", Slices: map[string]string{"a": "requests.cpu=1500m"}},
		},
		"a resize raises by the difference": {
			[]step{
				put(team().Hard("requests.cpu", "3").Hard("pods", "1").Obj()), put(ns("a", "red")),
				put(cpu("x", "1")), put(cpu("x", "3")), put(cpu("x", "3500m")),
			},
			seen{
				Lives: "pods=1 requests.cpu=3500m", Peak: "pods=1 requests.cpu=3500m", Admitted: 3,
				Slices:     map[string]string{"a": "pods=1 requests.cpu=3500m"},
				Violations: []string{"revision 5: pods/a/x raised requests.cpu under quota team to 3500m, above 3"},
			},
		},
		"a pod that has ended leaves its place": {
			[]step{
				put(team().Hard("pods", "1").Hard("count/pods", "2").Obj()), put(ns("a", "red")),
				put(pod("a", "x")), put(succeeded), put(pod("a", "y")),
			},
			seen{
				Lives: "count/pods=2 pods=1", Peak: "count/pods=2 pods=1", Admitted: 2,
				Slices: map[string]string{"a": "count/pods=2 pods=1"},
			},
		},
		"a pod past its grace period leaves its place without a commit": {
			[]step{
				put(team().Hard("pods", "1").Obj()), put(ns("a", "red")),
				put(pod("a", "x")), put(ending(30)), pass(30*time.Second + 1), put(pod("a", "y")),
			},
			seen{Lives: "pods=1", Peak: "pods=1", Admitted: 2, Slices: map[string]string{"a": "pods=1"}},
		},
		"a pod within its grace period keeps its place": {
			[]step{
				put(team().Hard("pods", "1").Obj()), put(ns("a", "red")),
				put(pod("a", "x")), put(ending(30)), pass(30 * time.Second), put(pod("a", "y")),
			},
			seen{
				Lives: "pods=2", Peak: "pods=2", Admitted: 2, Slices: map[string]string{"a": "pods=2"},
				Violations: []string{"revision 6: pods/a/y raised pods under quota team to 2, above 1"},
			},
		},
		"a pod past its grace period that is touched again still counts for nothing": {
			[]step{
				put(team().Hard("pods", "1").Obj()), put(ns("a", "red")),
				put(pod("a", "x")), put(ending(30)), pass(time.Minute), put(ending(30)), pass(time.Minute), gone(ending(30)),
			},
			seen{Lives: "pods=0", Peak: "pods=1", Admitted: 1, Slices: map[string]string{"a": "pods=0"}},
		},
		"a relabelled namespace moves in with all it has, which is a peak and no violation": {
			[]step{
				put(team().Hard("pods", "1").Obj()), put(ns("a", "red")), put(ns("b", "blue")),
				put(pod("a", "x")), put(pod("b", "x")), put(pod("b", "y")), put(ns("b", "red")),
			},
			seen{Lives: "pods=3", Peak: "pods=3", Admitted: 1, Slices: map[string]string{"a": "pods=1", "b": "pods=2"}},
		},
		"a relabelled namespace moves out with all it has": {
			[]step{
				put(team().Hard("pods", "2").Obj()), put(ns("a", "red")), put(ns("b", "red")),
				put(pod("a", "x")), put(pod("b", "x")), put(ns("b", "blue")), put(pod("b", "y")), put(pod("a", "y")),
			},
			seen{Lives: "pods=2", Peak: "pods=2", Admitted: 3, Slices: map[string]string{"a": "pods=2"}},
		},
		"annotations alone select": {
			[]step{
				put(builders.Quota("team").Annotation("owner", "ann").Hard("pods", "1").Obj()), put(annotated), put(ns("b", "red")),
				put(pod("a", "x")), put(pod("b", "x")),
			},
			seen{Lives: "pods=1", Peak: "pods=1", Admitted: 1, Slices: map[string]string{"a": "pods=1"}},
		},
		"labels and annotations select together": {
			[]step{
				put(team().Annotation("owner", "ann").Hard("pods", "1").Obj()), put(annotated), put(ns("b", "red")),
				put(pod("a", "x")), put(pod("b", "x")),
			},
			seen{Lives: "pods=0", Peak: "pods=0"},
		},
		"a lowered limit is no violation, what comes after is": {
			[]step{
				put(team().Hard("pods", "2").Obj()), put(ns("a", "red")), put(pod("a", "x")), put(pod("a", "y")),
				put(team().Hard("pods", "1").Obj()), put(pod("a", "z")),
			},
			seen{
				Lives: "pods=3", Peak: "pods=3", Admitted: 3, Slices: map[string]string{"a": "pods=3"},
				Violations: []string{"revision 6: pods/a/z raised pods under quota team to 3, above 1"},
			},
		},
		"a resource that is limited later is counted from the records": {
			[]step{
				put(team().Hard("pods", "5").Obj()), put(ns("a", "red")), put(cpu("x", "1")), put(cpu("y", "2")), gone(cpu("y", "2")),
				put(team().Hard("pods", "5").Hard("requests.cpu", "4").Obj()),
			},
			seen{
				Lives: "pods=1 requests.cpu=1", Peak: "pods=2 requests.cpu=1", Admitted: 2,
				Slices: map[string]string{"a": "pods=1 requests.cpu=1"},
			},
		},
		"a quota whose status is written goes on": {
			[]step{
				put(as("1", team().Hard("pods", "1").Obj())), put(ns("a", "red")), put(pod("a", "x")),
				put(as("1", team().Hard("pods", "1").Obj())),
			},
			seen{Lives: "pods=1", Peak: "pods=1", Admitted: 1, Slices: map[string]string{"a": "pods=1"}},
		},
		"another quota of the same name begins anew, and keeps the violations": {
			[]step{
				put(as("1", team().Hard("pods", "1").Obj())), put(ns("a", "red")), put(pod("a", "x")), put(pod("a", "y")),
				gone(pod("a", "x")), gone(team().Obj()), put(as("2", team().Hard("pods", "1").Obj())),
			},
			seen{
				Lives: "pods=1", Peak: "pods=1", Slices: map[string]string{"a": "pods=1"},
				Violations: []string{"revision 4: pods/a/y raised pods under quota team to 2, above 1"},
			},
		},
		"a quota that is replaced unseen begins anew": {
			[]step{
				put(as("1", team().Hard("pods", "2").Obj())), put(ns("a", "red")), put(pod("a", "x")), put(pod("a", "y")),
				gone(pod("a", "x")), put(as("2", team().Hard("pods", "2").Obj())),
			},
			seen{Lives: "pods=1", Peak: "pods=1", Slices: map[string]string{"a": "pods=1"}},
		},
		"a deleted quota leaves its violations": {
			[]step{put(team().Hard("pods", "0").Obj()), put(ns("a", "red")), put(pod("a", "x")), gone(team().Obj())},
			seen{Violations: []string{"revision 3: pods/a/x raised pods under quota team to 1, above 0"}},
		},
		"a deleted namespace leaves": {
			[]step{
				put(team().Hard("pods", "2").Obj()), put(ns("a", "red")), put(ns("b", "red")), put(pod("a", "x")), put(pod("b", "x")),
				gone(pod("a", "x")), gone(ns("a", "")),
			},
			seen{Lives: "pods=1", Peak: "pods=2", Admitted: 2, Slices: map[string]string{"b": "pods=1"}},
		},
		"a namespace that is deleted before its objects takes them along": {
			[]step{put(team().Hard("pods", "2").Obj()), put(ns("a", "red")), put(pod("a", "x")), gone(ns("a", "")), gone(pod("a", "x"))},
			seen{Lives: "pods=0", Peak: "pods=1", Admitted: 1},
		},
		"scopes choose": {
			[]step{
				put(team().Hard("pods", "1").Scopes(corev1.ResourceQuotaScopeNotBestEffort).Obj()), put(ns("a", "red")),
				put(pod("a", "x")), put(cpu("y", "1")), put(cpu("z", "1")),
			},
			seen{
				Lives: "pods=2", Peak: "pods=2", Admitted: 2, Slices: map[string]string{"a": "pods=2"},
				Violations: []string{"revision 5: pods/a/z raised pods under quota team to 2, above 1"},
			},
		},
		"the scope selector chooses by priority class": {
			[]step{
				put(team().Hard("pods", "1").ScopeSelector(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpIn, "high").Obj()),
				put(ns("a", "red")), put(pod("a", "x")), put(builders.Pod("a", "y").PriorityClass("high").Obj()),
			},
			seen{Lives: "pods=1", Peak: "pods=1", Admitted: 1, Slices: map[string]string{"a": "pods=1"}},
		},
		"a pod that changes its scope moves, and is judged where it comes": {
			[]step{
				put(team().Hard("pods", "0").Scopes(corev1.ResourceQuotaScopeTerminating).Obj()), put(ns("a", "red")),
				put(pod("a", "x")), put(builders.Pod("a", "x").Deadline(60).Obj()),
			},
			seen{
				Lives: "pods=1", Peak: "pods=1", Admitted: 1, Slices: map[string]string{"a": "pods=1"},
				Violations: []string{"revision 4: pods/a/x raised pods under quota team to 1, above 0"},
			},
		},
		"services, claims, config maps and custom resources count": {
			[]step{
				put(team().Hard("services.loadbalancers", "1").Hard("services.nodeports", "1").Hard("requests.storage", "2Gi").
					Hard("gold.storageclass.storage.k8s.io/requests.storage", "1Gi").Hard("configmaps", "1").
					Hard("count/configmaps", "1").Hard("count/widgets.example.com", "1").Obj()),
				put(ns("a", "red")),
				put(builders.Service("a", "x").Type(corev1.ServiceTypeLoadBalancer, 80).WithoutNodePorts().Obj()),
				put(builders.VolumeClaim("a", "x").StorageClass("gold").Obj()), put(builders.VolumeClaim("a", "y").Obj()),
				put(builders.ConfigMap("a", "x")), put(widget("a", "x")),
			},
			seen{
				Lives: "configmaps=1 count/configmaps=1 count/widgets.example.com=1 " +
					"gold.storageclass.storage.k8s.io/requests.storage=1Gi requests.storage=2Gi " +
					"services.loadbalancers=1 services.nodeports=0",
				Peak: "configmaps=1 count/configmaps=1 count/widgets.example.com=1 " +
					"gold.storageclass.storage.k8s.io/requests.storage=1Gi requests.storage=2Gi " +
					"services.loadbalancers=1 services.nodeports=0",
				Admitted: 5,
				Slices: map[string]string{"a": "configmaps=1 count/configmaps=1 count/widgets.example.com=1 " +
					"gold.storageclass.storage.k8s.io/requests.storage=1Gi requests.storage=2Gi " +
					"services.loadbalancers=1 services.nodeports=0"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			s.tell(t, test.steps...)
			if diff := cmp.Diff(test.want, s.seen(t, "team")); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestQuotasOverOneNamespaceAreJudgedEach(t *testing.T) {
	s := newStory()
	s.tell(t,
		put(team().Hard("pods", "1").Obj()), put(builders.Quota("all").LabelIn("team", "red", "blue").Hard("pods", "2").Obj()),
		put(ns("a", "red")), put(ns("b", "blue")),
		put(builders.Pod("a", "x").Obj()), put(builders.Pod("a", "y").Obj()), put(builders.Pod("b", "x").Obj()))
	want := map[string][]string{
		"team": {"revision 6: pods/a/y raised pods under quota team to 2, above 1"},
		"all":  {"revision 7: pods/b/x raised pods under quota all to 3, above 2"},
	}
	got := map[string][]string{"team": s.seen(t, "team").Violations, "all": s.seen(t, "all").Violations}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

func TestNothingIsKeptOfWhatIsGone(t *testing.T) {
	s := newStory()
	pod := builders.Pod("a", "x").Obj()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: start}, ptr.To[int64](30)
	class := builders.DeviceClassOffering("gpu", "example.com/gpu")
	s.tell(t,
		put(team().Hard("pods", "1").Obj()), put(ns("a", "red")), put(pod), put(class),
		gone(pod), gone(ns("a", "")), gone(team().Obj()), gone(class))
	left := len(s.books.namespaces) + len(s.books.accounts) + len(s.books.aging) +
		len(s.books.offers) + len(s.books.broken) + len(s.books.verdicts)
	if left > 0 {
		t.Errorf("something is left: %+v", s.books)
	}
}

func TestViolationsAreCapped(t *testing.T) {
	s := newStory()
	s.tell(t, put(team().Hard("pods", "0").Obj()), put(ns("a", "red")))
	for range maxViolations + 7 {
		s.tell(t, put(builders.Pod("a", "x").Obj()), gone(builders.Pod("a", "x").Obj()))
	}
	reports, err := s.books.report()
	if err != nil {
		t.Fatal(err)
	}
	if got := reports["team"]; len(got.Violations) != maxViolations || got.MoreViolations != 7 || got.Violations[0].Revision != 3 {
		t.Errorf("%d violations are kept and %d more, the first at %v", len(got.Violations), got.MoreViolations, got.Violations[0])
	}
	s = newStory()
	s.tell(t, put(team().Hard("pods", "0").Surge("pods", "1").Obj()), put(ns("a", "red")))
	for range maxViolations + 7 {
		s.tell(t, put(builders.Pod("a", "x").Obj()), gone(builders.Pod("a", "x").Obj()))
	}
	if reports, err = s.books.report(); err != nil {
		t.Fatal(err)
	}
	if got := reports["team"]; len(got.Surged) != maxViolations || got.MoreSurged != 7 || len(got.Violations) > 0 {
		t.Errorf("%d commits that took surge are kept and %d more, and %v are violations", len(got.Surged), got.MoreSurged, got.Violations)
	}
}

func TestAnObjectThatCannotBeJudgedIsAnError(t *testing.T) {
	const deviceClass = "gpu.deviceclass.resource.k8s.io/devices"
	invalid := team().Hard("pods", "1").Obj()
	invalid.Spec.Selector.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Like"}}
	for name, test := range map[string]struct {
		steps []step
		want  []string
	}{
		"devices by class": {
			[]step{put(team().Hard(deviceClass, "1").Hard("pods", "1").Obj())},
			[]string{"judging quota team: the judge can't count " + deviceClass},
		},
		"resources that are stored elsewhere, and names of nothing": {
			[]step{put(team().Hard("count/leases.coordination.k8s.io", "1").Hard("count/resourceclaims.resource.k8s.io", "1").Hard("nonsense", "1").Obj())},
			[]string{"can't count count/leases.coordination.k8s.io", "can't count count/resourceclaims.resource.k8s.io", "can't count nonsense"},
		},
		"devices by the name of their class": {
			[]step{put(team().Hard("requests.deviceclass.resource.kubernetes.io/gpu", "1").Obj())},
			[]string{"can't count requests.deviceclass.resource.kubernetes.io/gpu"},
		},
		"an extended resource that a device class offers": {
			[]step{put(team().Hard("requests.example.com/gpu", "1").Obj()), put(builders.DeviceClassOffering("gpu", "example.com/gpu"))},
			[]string{"can't count requests.example.com/gpu"},
		},
		"an extended resource that is offered no more": {
			[]step{
				put(team().Hard("requests.example.com/gpu", "1").Obj()), put(builders.DeviceClassOffering("gpu", "example.com/gpu")),
				gone(builders.DeviceClassOffering("gpu", "example.com/gpu")),
			},
			nil,
		},
		"a selector that makes no sense": {
			[]step{put(invalid), put(ns("a", "red"))},
			[]string{`judging quota team: compiling the selector: "Like" is not a valid label selector operator`},
		},
		"a quota that is gone": {
			[]step{put(team().Hard(deviceClass, "1").Obj()), gone(team().Obj()), put(invalid), gone(invalid)},
			nil,
		},
		"what Kubernetes has for counting": {
			[]step{put(team().Hard("count/deployments.apps", "1").Hard("count/ingresses.networking.k8s.io", "1").
				Hard("count/endpoints", "1").Hard("count/pods", "1").Hard("replicationcontrollers", "1").
				Hard("requests.example.com/gpu", "1").Hard("requests.hugepages-2Mi", "1").Hard("limits.memory", "1").Obj())},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			s.tell(t, test.steps...)
			_, err := s.books.report()
			if (err != nil) != (test.want != nil) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got error %v, want one with %q", err, want)
				}
			}
		})
	}
}

func TestAnObjectThatCannotBeMeasuredIsAnError(t *testing.T) {
	s := newStory()
	at := place{resource: pods, namespace: "a", name: "x"}
	err := s.books.apply(event{revision: 7, key: "/registry/pods/a/x", at: at, object: builders.ConfigMap("a", "x")})
	if err == nil || !strings.Contains(err.Error(), "entering /registry/pods/a/x at revision 7: measuring: ") {
		t.Errorf("got error %v", err)
	}
}
