// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

func list(pairs ...string) corev1.ResourceList {
	made := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		made[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return made
}

func podOf(namespace string, requests ...string) Item {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list(requests...)}}}
	return Item{Resource: pods, Kind: "Pod", Object: pod, Count: 1}
}

// ended are pods of which only the objects are left.
func ended(namespace string, count int64) Item {
	item := podOf(namespace)
	item.Object = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
	item.Count = count
	return item
}

func service(namespace string, kind corev1.ServiceType) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", ResourceVersion: "1"},
		Spec:       corev1.ServiceSpec{Type: kind, AllocateLoadBalancerNodePorts: ptr.To(false)},
	}
}

// workload makes so many pods.
func workload(namespace, name string, count int64, requests ...string) Demand {
	return Demand{
		Kind: "ReplicaSet", Namespace: namespace, Name: name,
		Pods: &Pods{New: []Item{podOf(namespace, requests...)}, Wanted: count},
	}
}

// rolling replaces pods by as many new ones. So many may be missing meanwhile.
func rolling(count, unavailable int64, fresh, old Item) Demand {
	return Demand{Namespace: "a", Pods: &Pods{
		New: []Item{fresh}, Old: []Group{{Items: []Item{old}, Count: count}}, Wanted: count, Unavailable: unavailable,
	}}
}

// starting replaces pods by as many new ones, each of which is there before an old one goes.
func starting(count int64, fresh, old Item) Demand {
	demand := rolling(count, 0, fresh, old)
	demand.Pods.Surge = 1
	return demand
}

// unknown has old pods that aren't known.
func unknown(demand Demand) Demand {
	demand.Pods.Old[0].Items = nil
	return demand
}

func withSurge(limit Limit, pairs ...string) Limit {
	limit.Surge = list(pairs...)
	return limit
}

// either has new pods that may be something else.
func either(demand Demand, item Item) Demand {
	demand.Pods.Either = []Item{item}
	return demand
}

func limit(name string, left corev1.ResourceList, namespaces ...string) Limit {
	return Limit{Source: Shared, Name: name, Namespaces: namespaces, Spec: corev1.ResourceQuotaSpec{Hard: left}, Left: left}
}

func asItIs(object client.Object) (completed client.Object, refusal string) { return object, "" }

func verdictOn(t require, demands []Demand, limits []Limit) Verdict {
	t.Helper()
	verdict, err := NewFitter(evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), asItIs).Fit(demands, limits)
	if err != nil {
		t.Fatal(err)
	}
	return verdict
}

// require has the methods that tests and properties have in common.
type require interface {
	Helper()
	Fatal(args ...any)
}

func TestFitter(t *testing.T) {
	for name, test := range map[string]struct {
		demands  []Demand
		limits   []Limit
		rows     []string
		refusals []string
		want     Outcome
	}{
		"there is room to the last pod": {
			demands: []Demand{workload("a", "web", 3)},
			limits:  []Limit{limit("team", list("pods", "3"), "a")},
			rows:    []string{"team pods 3 of 3"}, want: Fits,
		},
		"one is too many": {
			demands: []Demand{workload("a", "web", 4)},
			limits:  []Limit{limit("team", list("pods", "3"), "a")},
			rows:    []string{"team pods 4 of 3 short 1"}, want: DoesNot,
		},
		"two workloads take from the same": {
			demands: []Demand{workload("a", "web", 2, "cpu", "300m"), workload("a", "api", 2, "cpu", "100m")},
			limits:  []Limit{limit("team", list("requests.cpu", "500m"), "a")},
			rows:    []string{"team requests.cpu 800m of 500m short 300m"}, want: DoesNot,
		},
		"two namespaces share a quota, and have one each": {
			demands: []Demand{workload("a", "web", 2), workload("b", "web", 3)},
			limits: []Limit{
				limit("team", list("pods", "5"), "a", "b"), limit("own-a", list("pods", "2"), "a"), limit("own-b", list("pods", "2"), "b"),
			},
			rows: []string{"team pods 5 of 5", "own-a pods 2 of 2", "own-b pods 3 of 2 short 1"}, want: DoesNot,
		},
		"more is used than is allowed": {
			demands: []Demand{workload("a", "web", 1)},
			limits:  []Limit{limit("team", list("pods", "-2"), "a")},
			rows:    []string{"team pods 1 of -2 short 3"}, want: DoesNot,
		},
		"a pod that replaces one of its size is refused all the same": {
			demands: []Demand{rolling(8, 1, podOf("a", "cpu", "2"), podOf("a", "cpu", "2"))},
			limits:  []Limit{limit("team", list("requests.cpu", "-3"), "a")},
			rows:    []string{"team requests.cpu 0 of -3 short 3"}, want: DoesNot,
		},
		"what is freed before brings it below the limit": {
			demands: []Demand{rolling(8, 8, podOf("a", "cpu", "1"), podOf("a", "cpu", "2"))},
			limits:  []Limit{limit("team", list("requests.cpu", "-6", "pods", "0"), "a")},
			want:    Fits,
		},
		"what is freed before doesn't suffice": {
			demands: []Demand{rolling(8, 8, podOf("a", "cpu", "1500m"), podOf("a", "cpu", "2"))},
			limits:  []Limit{limit("team", list("requests.cpu", "-6"), "a")},
			rows:    []string{"team requests.cpu -4 of -6 short 2"}, want: DoesNot,
		},
		"the greater of what a new pod may be counts": {
			demands: []Demand{either(workload("a", "web", 3, "cpu", "1", "memory", "1Gi"), podOf("a", "cpu", "2", "memory", "500Mi"))},
			limits:  []Limit{limit("team", list("requests.cpu", "9", "requests.memory", "9Gi"), "a")},
			rows:    []string{"team requests.cpu 6 of 9", "team requests.memory 3Gi of 9Gi"}, want: Fits,
		},
		"what is over its limit and isn't asked for doesn't matter": {
			demands: []Demand{workload("a", "web", 1)},
			limits:  []Limit{limit("team", list("pods", "1", "services", "-2"), "a")},
			rows:    []string{"team pods 1 of 1"}, want: Fits,
		},
		"a pod must say what it requests": {
			demands:  []Demand{workload("a", "web", 3)},
			limits:   []Limit{limit("team", list("requests.cpu", "9"), "a")},
			refusals: []string{"ReplicaSet a/web Pod failed quota: team: must specify requests.cpu for: main"}, want: DoesNot,
		},
		"none of the pods is missing, so none is refused": {
			demands: []Demand{{Namespace: "a", Pods: &Pods{New: []Item{podOf("a")}, Wanted: 2, Present: 2}}},
			limits:  []Limit{limit("team", list("requests.cpu", "9"), "a")}, want: Fits,
		},
		"what isn't counted yet isn't available": {
			demands: []Demand{workload("a", "web", 1, "cpu", "1")},
			limits: []Limit{{Source: Shared, Name: "team", Namespaces: []string{"a"}, Left: list("pods", "5"),
				Spec: corev1.ResourceQuotaSpec{Hard: list("pods", "5", "requests.cpu", "9")}}},
			rows: []string{"team pods 1 of 5", "team requests.cpu 1 of ?"}, want: Unknown,
		},
		"a demand that doesn't fit doesn't, with anything else uncounted": {
			demands: []Demand{workload("a", "web", 6, "cpu", "1")},
			limits: []Limit{{Source: Shared, Name: "team", Namespaces: []string{"a"}, Left: list("pods", "5"),
				Spec: corev1.ResourceQuotaSpec{Hard: list("pods", "5", "requests.cpu", "9")}}},
			rows: []string{"team pods 6 of 5 short 1", "team requests.cpu 6 of ?"}, want: DoesNot,
		},
		"what one frees isn't there for another": {
			demands: []Demand{
				{Namespace: "a", Pods: &Pods{
					New: []Item{podOf("a", "cpu", "1")}, Old: []Group{{Items: []Item{podOf("a", "cpu", "4")}, Count: 1}},
					Wanted: 1, Unavailable: 1,
				}},
				workload("a", "web", 1, "cpu", "1"),
			},
			limits: []Limit{limit("team", list("requests.cpu", "0"), "a")},
			rows:   []string{"team requests.cpu 1 of 0 short 1"}, want: DoesNot,
		},
		"a quota of another scope isn't charged": {
			demands: []Demand{workload("a", "web", 3, "cpu", "1")},
			limits: []Limit{{Source: Shared, Name: "team", Namespaces: []string{"a"}, Left: list("pods", "0"),
				Spec: corev1.ResourceQuotaSpec{Hard: list("pods", "0"), Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}}}},
			want: Fits,
		},
		"pods that have ended are objects all the same": {
			demands: []Demand{{Namespace: "a", Kind: "Job", Name: "import",
				Items: []Item{ended("a", 7)}, Pods: &Pods{New: []Item{podOf("a")}, Wanted: 2}}},
			limits: []Limit{limit("team", list("pods", "2", "count/pods", "8"), "a")},
			rows:   []string{"team count/pods 9 of 8 short 1", "team pods 2 of 2"}, want: DoesNot,
		},
		"an update costs what it adds": {
			demands: []Demand{{Namespace: "a", Items: []Item{{
				Resource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, Kind: "Service", Count: 1,
				Object: service("a", corev1.ServiceTypeLoadBalancer), Old: service("a", corev1.ServiceTypeClusterIP),
			}}}},
			limits: []Limit{limit("team", list("services", "0", "services.loadbalancers", "1"), "a")},
			rows:   []string{"team services.loadbalancers 1 of 1"}, want: Fits,
		},
		"nothing limits it": {demands: []Demand{workload("a", "web", 3)}, want: Fits},
		"a rollout takes surge": {
			demands: []Demand{starting(3, podOf("a"), podOf("a"))}, limits: []Limit{withSurge(limit("team", list("pods", "0"), "a"), "pods", "5")},
			rows: []string{"team pods 1 of 0 takes 1 of 5"}, want: Fits,
		},
		"two rollouts take surge": {
			demands: []Demand{starting(3, podOf("a"), podOf("a")), starting(3, podOf("a"), podOf("a"))},
			limits:  []Limit{withSurge(limit("team", list("pods", "-3"), "a"), "pods", "5")},
			rows:    []string{"team pods 2 of -3 takes 2 of 2"}, want: Fits,
		},
		"one rollout takes surge, and what is created besides has no room while it does": {
			demands: []Demand{starting(3, podOf("a"), podOf("a")), workload("a", "web", 1)},
			limits:  []Limit{withSurge(limit("team", list("pods", "1"), "a"), "pods", "5")},
			rows:    []string{"team pods 2 of 1 short 1"}, want: DoesNot,
		},
		"a rollout is short of a resource without surge": {
			demands: []Demand{starting(3, podOf("a", "cpu", "1"), podOf("a", "cpu", "1"))},
			limits:  []Limit{withSurge(limit("team", list("pods", "0", "requests.cpu", "0"), "a"), "pods", "5")},
			rows:    []string{"team pods 1 of 0 takes 1 of 5", "team requests.cpu 1 of 0 short 1"}, want: DoesNot,
		},
		"larger pods take none": {
			demands: []Demand{starting(3, podOf("a", "cpu", "2"), podOf("a", "cpu", "1"))},
			limits:  []Limit{withSurge(limit("team", list("pods", "0"), "a"), "pods", "5")},
			rows:    []string{"team pods 1 of 0 short 1 not for larger pods"}, want: DoesNot,
		},
		"nor do pods that replace unknown ones": {
			demands: []Demand{unknown(starting(3, podOf("a"), podOf("a")))}, limits: []Limit{withSurge(limit("team", list("pods", "0"), "a"), "pods", "5")},
			rows: []string{"team pods 3 of 0 short 3 not for larger pods"}, want: DoesNot,
		},
		"larger pods for which there is room take none": {
			demands: []Demand{starting(3, podOf("a", "cpu", "2"), podOf("a", "cpu", "1"))},
			limits:  []Limit{withSurge(limit("team", list("pods", "1"), "a"), "pods", "5")},
			rows:    []string{"team pods 1 of 1"}, want: Fits,
		},
		"smaller pods take some": {
			demands: []Demand{starting(3, podOf("a", "cpu", "1"), podOf("a", "cpu", "2"))},
			limits:  []Limit{withSurge(limit("team", list("pods", "0"), "a"), "pods", "5")},
			rows:    []string{"team pods 1 of 0 takes 1 of 5"}, want: Fits,
		},
		"pods that are made after others have gone take none": {
			demands: []Demand{rolling(3, 1, podOf("a"), podOf("a"))}, limits: []Limit{withSurge(limit("team", list("pods", "-1"), "a"), "pods", "5")},
			rows: []string{"team pods 0 of -1 short 1"}, want: DoesNot,
		},
	} {
		t.Run(name, func(t *testing.T) {
			verdict := verdictOn(t, test.demands, test.limits)
			if diff := cmp.Diff(test.rows, rowTexts(verdict)); diff != "" {
				t.Errorf("rows (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(test.refusals, refusalTexts(verdict)); diff != "" {
				t.Errorf("refusals (-want,+got):\n%s", diff)
			}
			if got := verdict.Outcome(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func rowTexts(verdict Verdict) []string {
	var texts []string
	for _, row := range verdict.Rows {
		text := fmt.Sprintf("%s %s %s of ", row.Limit.Name, row.Resource, row.Requested.String())
		if row.Counted {
			text += row.Available.String()
		} else {
			text += "?"
		}
		if !row.Shortfall.IsZero() {
			text += " short " + row.Shortfall.String()
		}
		if row.Surge != SurgeNone {
			text += " " + string(row.Surge)
		}
		if takes, left := row.TakesSurge(), row.SurgeLeft(); !takes.IsZero() {
			text += " takes " + takes.String() + " of " + left.String()
		}
		texts = append(texts, text)
	}
	return texts
}

func refusalTexts(verdict Verdict) []string {
	var texts []string
	for _, r := range verdict.Refusals {
		texts = append(texts, fmt.Sprintf("%s %s/%s %s %s", r.Kind, r.Namespace, r.Name, r.Refused, r.Message))
	}
	return texts
}

func TestAnObjectThatAdmissionWouldRefuseIsLeftOutAndReported(t *testing.T) {
	refuse := func(object client.Object) (client.Object, string) {
		return object, "maximum cpu usage per Container is 1, but limit is 2"
	}
	fitter := NewFitter(evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), refuse)
	verdict, err := fitter.Fit([]Demand{workload("a", "web", 3)}, []Limit{limit("team", list("pods", "1"), "a")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ReplicaSet a/web Pod maximum cpu usage per Container is 1, but limit is 2"}
	if diff := cmp.Diff(want, refusalTexts(verdict)); diff != "" || len(verdict.Rows) > 0 || verdict.Outcome() != DoesNot {
		t.Errorf("got %v, refusals (-want,+got):\n%s", verdict, diff)
	}
}

func TestPodsThatAreOnlyReplacedByFewerAreNotRefused(t *testing.T) {
	refuse := func(object client.Object) (client.Object, string) { return object, "refused" }
	demand := rolling(3, 1, podOf("a"), podOf("a"))
	demand.Pods.Wanted = 0
	verdict, err := NewFitter(evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), refuse).Fit(
		[]Demand{demand}, []Limit{limit("team", list("limits.cpu", "1"), "a")})
	if err != nil || verdict.Outcome() != Fits {
		t.Errorf("%v, %+v", err, verdict)
	}
}

func TestOldPodsThatWouldBeRefusedNowFreeWhatTheyTake(t *testing.T) {
	demand := rolling(3, 0, podOf("a", "cpu", "100m"), podOf("a"))
	demand.Pods.Wanted, demand.Pods.Surge = 1, 1
	over := limit("team", list("pods", "-1", "requests.cpu", "1"), "a")
	if verdict := verdictOn(t, []Demand{demand}, []Limit{over}); verdict.Outcome() != Fits {
		t.Errorf("%+v", verdict)
	}
}

// Pods of a template free the amounts that admission made of it, even if it
// refuses it by now.
func TestAnOldPodOfATemplateIsChargedAsItWasCompleted(t *testing.T) {
	doubled := func(object client.Object) (client.Object, string) {
		pod := object.(*corev1.Pod).DeepCopy()
		requests := pod.Spec.Containers[0].Resources.Requests
		for name, quantity := range requests {
			requests[name] = times(quantity, 2)
		}
		return pod, "too small by now"
	}
	for name, test := range map[string]struct {
		templated bool
		want      []string
	}{
		"of a template":  {templated: true, want: []string{"team requests.cpu 2 of 9"}},
		"as it is there": {want: []string{"team requests.cpu 4 of 9"}},
	} {
		t.Run(name, func(t *testing.T) {
			demand := Demand{Namespace: "a", Pods: &Pods{Wanted: 1, Grows: 2,
				Old: []Group{{Items: []Item{podOf("a", "cpu", "2")}, Count: 1, Templated: test.templated}}}}
			if test.templated {
				demand.Pods.Old[0].Items = []Item{podOf("a", "cpu", "500m")}
			}
			verdict, err := NewFitter(evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), doubled).Fit(
				[]Demand{demand}, []Limit{limit("team", list("requests.cpu", "9"), "a")})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, rowTexts(verdict)); diff != "" || len(verdict.Refusals) > 0 {
				t.Errorf("%v (-want,+got):\n%s", verdict.Refusals, diff)
			}
		})
	}
}

// A claim that a living pod made got the default class, too.
func TestTheClaimOfAnOldPodIsChargedAsItWasCompleted(t *testing.T) {
	const standard = "standard.storageclass.storage.k8s.io/persistentvolumeclaims"
	classed := func(object client.Object) (client.Object, string) {
		claim, ok := object.DeepCopyObject().(*corev1.PersistentVolumeClaim)
		if !ok {
			return object, ""
		}
		claim.Spec.StorageClassName = ptr.To("standard")
		return claim, ""
	}
	claim := Item{Resource: claimResource, Kind: "PersistentVolumeClaim", Count: 1,
		Object: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}}
	demand := Demand{Namespace: "a", Pods: &Pods{
		New: []Item{podOf("a"), claim}, Old: []Group{{Items: []Item{podOf("a"), claim}, Count: 3}}, Wanted: 3, Unavailable: 1,
	}}
	verdict, err := NewFitter(evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), classed).Fit(
		[]Demand{demand}, []Limit{limit("team", list(standard, "0"), "a")})
	if err != nil || verdict.Outcome() != Fits {
		t.Errorf("%v, %v", err, rowTexts(verdict))
	}
}

// However many quotas there are, and however often it is asked, an object is completed once.
func TestAnObjectIsCompletedOnce(t *testing.T) {
	completed := 0
	fitter := NewFitter(evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), func(object client.Object) (client.Object, string) {
		completed++
		return object, ""
	})
	demand := rolling(8, 1, podOf("a", "cpu", "1"), podOf("a", "cpu", "2"))
	demand.Items, demand.Pods.Old[0].Templated = []Item{ended("a", 3)}, true
	for i := range 10 {
		quota := limit(fmt.Sprint("team-", i), list("requests.cpu", "9", "count/pods", "9"), "a")
		if _, err := fitter.Fit([]Demand{demand}, []Limit{quota}); err != nil {
			t.Fatal(err)
		}
		if _, err := fitter.Room(demand, quota); err != nil {
			t.Fatal(err)
		}
	}
	if completed != 3 {
		t.Errorf("completed %d times, want 3", completed)
	}
}

func drawDemands(t *rapid.T) []Demand {
	demands := make([]Demand, rapid.IntRange(1, 3).Draw(t, "demands"))
	for i := range demands {
		namespace := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace")
		cpu := fmt.Sprintf("%dm", rapid.Int64Range(0, 700).Draw(t, "cpu"))
		demands[i] = workload(namespace, fmt.Sprint("web-", i), rapid.Int64Range(0, 5).Draw(t, "count"), "cpu", cpu)
		demands[i].Pods.Present = rapid.Int64Range(0, 2).Draw(t, "present")
	}
	return demands
}

func drawLimits(t *rapid.T) []Limit {
	draw := func(name string, namespaces ...string) Limit {
		return limit(name, corev1.ResourceList{
			corev1.ResourcePods:        *resource.NewQuantity(rapid.Int64Range(-2, 12).Draw(t, name+" pods"), resource.DecimalSI),
			corev1.ResourceRequestsCPU: *resource.NewMilliQuantity(rapid.Int64Range(-1000, 6000).Draw(t, name+" cpu"), resource.DecimalSI),
		}, namespaces...)
	}
	return []Limit{draw("team", "a", "b"), draw("own", "a")}
}

// A demand that fits is admitted by the ledger that enforces the quotas, pod by
// pod in any order; of a demand that doesn't, the ledger refuses something.
func TestFittingIsBeingAdmitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demands, limits := drawDemands(t), drawLimits(t)
		said := verdictOn(t, demands, limits).Outcome()
		admitted := admittedByLedgers(t, demands, limits)
		if (said == Fits) != admitted {
			t.Fatalf("said %q, admitted: %t", said, admitted)
		}
	})
}

func admittedByLedgers(t *rapid.T, demands []Demand, limits []Limit) bool {
	var each []Item
	for _, demand := range demands {
		for range demand.Pods.Missing() {
			each = append(each, demand.Pods.New[0])
		}
	}
	each = rapid.Permutation(each).Draw(t, "order")
	evaluators := evaluation.New(clock.RealClock{}, evaluation.ClaimSources{})
	for i := range limits {
		basis := ledger.Basis{Quota: "quota", Generation: 1, Digest: "digest"}
		draft := ledger.Edit(ledger.State{Basis: basis, Used: timesAll(limits[i].Left, 0)})
		for n, item := range each {
			if !slices.Contains(limits[i].Namespaces, item.Object.GetNamespace()) {
				continue
			}
			charges, err := evaluators.Charges(attributes(item), []evaluation.Quota{{Name: limits[i].Name, Spec: limits[i].Spec}})
			if err != nil {
				t.Fatal(err)
			}
			if len(charges) == 0 {
				continue
			}
			reservation := ledger.Reservation{
				Object: ledger.Object{
					Resource: pods, Namespace: item.Object.GetNamespace(), Name: fmt.Sprint("pod-", n), UID: types.UID(fmt.Sprint(n)),
				},
				Amounts: charges[0].Amounts,
			}
			decision := draft.Reserve(ledger.Charge{
				Limits:      ledger.Limits{Name: limits[i].Name, Basis: basis, Hard: limits[i].Left},
				Reservation: reservation,
			})
			if _, granted := decision.(ledger.Granted); !granted {
				return false
			}
		}
	}
	return true
}

// The shortfall is exact: with so much more it fits, and with any less it
// doesn't.
func TestTheShortfallIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demands, limits := drawDemands(t), drawLimits(t)
		verdict := verdictOn(t, demands, limits)
		for _, row := range verdict.Rows {
			left := row.Limit.Left[row.Resource]
			left.Add(row.Shortfall)
			row.Limit.Left[row.Resource] = left
		}
		if got := verdictOn(t, demands, limits).Outcome(); got != Fits {
			t.Fatalf("with what was short it %s", got)
		}
		for _, row := range verdict.Rows {
			if row.Shortfall.IsZero() {
				continue
			}
			left := row.Limit.Left[row.Resource]
			left.Sub(resource.MustParse("1m"))
			row.Limit.Left[row.Resource] = left
			if got := verdictOn(t, demands, limits).Outcome(); got != DoesNot {
				t.Fatalf("with less than what was short it %s", got)
			}
			return
		}
	})
}

func TestMoreToMakeOrLessAvailableNeverFitsBetter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demands, limits := drawDemands(t), drawLimits(t)
		before := verdictOn(t, demands, limits).Outcome()
		demands = append(demands, drawDemands(t)...)
		for i := range limits {
			for name, left := range limits[i].Left {
				left.Sub(*resource.NewQuantity(rapid.Int64Range(0, 2).Draw(t, "less"), resource.DecimalSI))
				limits[i].Left[name] = left
			}
		}
		if after := verdictOn(t, demands, limits).Outcome(); before == DoesNot && after == Fits {
			t.Fatal("it fits now")
		}
	})
}

func TestLimitsOf(t *testing.T) {
	view := func(namespace, name string, hard, used, reserved corev1.ResourceList) quotav1.LocalResourceQuota {
		return quotav1.LocalResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Status: quotav1.LocalResourceQuotaStatus{
				Total: corev1.ResourceQuotaStatus{Hard: hard, Used: used}, Reserved: reserved,
				Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotBestEffort},
			},
		}
	}
	surging := func(view quotav1.LocalResourceQuota, hard corev1.ResourceList) quotav1.LocalResourceQuota {
		view.Status.Surge = &quotav1.SurgeStatus{Hard: hard}
		return view
	}
	native := corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "own"},
		Spec:       corev1.ResourceQuotaSpec{Hard: list("pods", "9", "services", "2", "secrets", "3")},
		Status:     corev1.ResourceQuotaStatus{Hard: list("pods", "5", "services", "2"), Used: list("pods", "4", "services", "3")},
	}
	got := LimitsOf([]quotav1.LocalResourceQuota{
		surging(view("b", "team", list("pods", "10", "services", "3"), list("pods", "6"), nil), list("pods", "3", "services", "1")),
		surging(view("a", "team", list("pods", "10", "services", "3"), list("pods", "5", "services", "1"), list("pods", "2")), list("pods", "2")),
		view("a", "all", list("pods", "10"), list("pods", "12"), list("pods", "1")),
	}, []corev1.ResourceQuota{native})

	scopes := []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotBestEffort}
	want := []Limit{
		{Source: Shared, Name: "all", Namespaces: []string{"a"}, Spec: corev1.ResourceQuotaSpec{Hard: list("pods", "10"), Scopes: scopes}, Left: list("pods", "-3")},
		{
			Source: Shared, Name: "team", Namespaces: []string{"a", "b"}, Spec: corev1.ResourceQuotaSpec{Hard: list("pods", "10", "services", "3"), Scopes: scopes},
			Left: list("pods", "3"), Surge: list("pods", "2"),
		},
		{Source: Native, Name: "own", Namespaces: []string{"a"}, Spec: native.Spec, Left: list("pods", "5", "services", "-1")},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Limit{}, "Used", "Here")); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

func TestAQuotaThatAdmitsIsCountedAndRefusesNothing(t *testing.T) {
	for name, status := range map[string]quotav1.LocalResourceQuotaStatus{
		"a protected namespace": {Protected: true}, "a mode that warns": {Mode: quotav1.EnforcementWarn},
	} {
		var views []quotav1.LocalResourceQuota
		for quota, hard := range map[string][]string{"full": {"pods", "0"}, "strict": {"limits.cpu", "0", "pods", "0"}} {
			status.Total = corev1.ResourceQuotaStatus{Hard: list(hard...), Used: list(hard...)}
			views = append(views, quotav1.LocalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: quota}, Status: status})
		}
		limits := LimitsOf(views, nil)
		pod := podWith(nil, nil)
		demand, err := Expand(Manifest{Resource: podResource, Kind: "Pod", Object: pod})
		if err != nil {
			t.Fatal(err)
		}
		verdict, err := NewFitter(evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), asItIs).Fit([]Demand{demand}, limits)
		if err != nil || verdict.Outcome() != Fits || len(verdict.Rows) != 2 || verdict.Rows[0].Limit.Admits == "" {
			t.Errorf("%s: %v, %+v, want the pods of both quotas, also of the one whose limits.cpu the pod doesn't state", name, err, verdict)
		}
	}
}
