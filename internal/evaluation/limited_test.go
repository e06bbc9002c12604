// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	resourcequotaapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	upstreamquota "k8s.io/apiserver/pkg/quota/v1"
	"pgregory.net/rapid"
)

func limitedNames(resource schema.GroupResource, contain ...string) resourcequotaapi.LimitedResource {
	return resourcequotaapi.LimitedResource{APIGroup: resource.Group, Resource: resource.Resource, MatchContains: contain}
}

func limitedScope(scope corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) resourcequotaapi.LimitedResource {
	return resourcequotaapi.LimitedResource{Resource: "pods", MatchScopes: scopeSelector(scope, operator, values...).MatchExpressions}
}

// scopedQuota is quotaOf with a scopeSelector.
func scopedQuota(
	name, hard string, scope corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string,
) Quota {
	quota := quotaOf(name, corev1.ResourceName(hard))
	quota.Spec.ScopeSelector = scopeSelector(scope, operator, values...)
	return quota
}

func podOfClass(class string) *corev1.Pod {
	pod := typicalPod()
	pod.Spec.PriorityClassName = class
	return pod
}

// awayFrom keeps the pod away from the pods of this term.
func awayFrom(term corev1.PodAffinityTerm) *corev1.Pod {
	pod := typicalPod()
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term},
	}}
	return pod
}

// limitedTest is a request where something is limited by default. What is
// uncovered is the exact text.
type limitedTest struct {
	limited       resourcequotaapi.LimitedResource
	request       admission.Attributes
	quotas        []Quota
	want          []Charge
	wantUncovered string
}

func (test limitedTest) run(t *testing.T) {
	got, err := New(clockAt{now: testNow()}, ClaimSources{}, test.limited).Charges(test.request, test.quotas)
	if diff := cmp.Diff(test.want, got); diff != "" {
		t.Errorf("charges (-want,+got):\n%s", diff)
	}
	refusal, isRefusal := errors.AsType[*Refusal](err)
	switch {
	case test.wantUncovered == "" && err != nil:
		t.Errorf("want it covered or free, got %v", err)
	case test.wantUncovered != "" && (!isRefusal || refusal.Message != test.wantUncovered || !refusal.Uncovered):
		t.Errorf("want %q uncovered, got %#v", test.wantUncovered, err)
	}
}

func TestATrialCoversNothing(t *testing.T) {
	tried := func(quota Quota, names ...corev1.ResourceName) Quota {
		quota.Tried, quota.Advisory = map[corev1.ResourceName]bool{}, map[corev1.ResourceName]bool{}
		for _, name := range names {
			quota.Tried[name], quota.Advisory[name] = true, true
		}
		return quota
	}
	cpu := amountsOf("requests.cpu", "2")
	pod := creation(pods(), typicalPod())
	top := limitedScope(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpIn, "top")
	ofTop := scopedQuota("m", "pods", corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpIn, "top")
	for name, test := range map[string]limitedTest{
		"a name": {
			limited: limitedNames(pods(), "requests.cpu"), request: pod, quotas: []Quota{tried(quotaOf("m", "requests.cpu"), "requests.cpu")},
			wantUncovered: "insufficient quota to consume: requests.cpu",
		},
		"a name beside one that is limited": {
			limited: limitedNames(pods(), "requests.cpu"), request: pod, quotas: []Quota{tried(quotaOf("m", "requests.cpu", "services"), "services")},
			want: []Charge{{Quota: "m", Amounts: cpu}},
		},
		"it is charged where another quota covers": {
			limited: limitedNames(pods(), "requests.cpu"), request: pod, quotas: []Quota{tried(quotaOf("m", "requests.cpu"), "requests.cpu"), quotaOf("z", "requests.cpu")},
			want: []Charge{{Quota: "m", Amounts: cpu}, {Quota: "z", Amounts: cpu}},
		},
		"a scope": {
			limited: top, request: creation(pods(), podOfClass("top")), quotas: []Quota{tried(ofTop, "pods")},
			wantUncovered: "insufficient quota to match these scopes: [{PriorityClass In [top]}]",
		},
	} {
		t.Run(name, test.run)
	}
}

func TestScopesThatAreLimitedByDefault(t *testing.T) {
	const (
		class    = corev1.ResourceQuotaScopePriorityClass
		crossing = corev1.ResourceQuotaScopeCrossNamespacePodAffinity
		in       = corev1.ScopeSelectorOpIn
		exists   = corev1.ScopeSelectorOpExists
	)
	top := limitedScope(class, in, "top")
	const topUncovered = "insufficient quota to match these scopes: [{PriorityClass In [top]}]"
	anyClass := limitedScope(class, exists)
	const anyClassUncovered = "insufficient quota to match these scopes: [{PriorityClass Exists []}]"
	across := limitedScope(crossing, exists)
	const acrossUncovered = "insufficient quota to match these scopes: [{CrossNamespacePodAffinity Exists []}]"
	ofTop := creation(pods(), podOfClass("top"))
	ofTopQuota := scopedQuota("m", "pods", class, in, "top")
	one := amountsOf("pods", "1")
	ending := podOfClass("top")
	ending.Spec.ActiveDeadlineSeconds = new(int64)

	for name, test := range map[string]limitedTest{
		"a class is refused where there is no quota":             {limited: top, request: ofTop, wantUncovered: topUncovered},
		"and under a quota of all pods":                          {limited: top, request: ofTop, quotas: []Quota{quotaOf("all", "pods")}, wantUncovered: topUncovered},
		"and under a quota of another class":                     {limited: top, request: ofTop, quotas: []Quota{scopedQuota("m", "pods", class, in, "low")}, wantUncovered: topUncovered},
		"and under a quota of other objects":                     {limited: top, request: ofTop, quotas: []Quota{quotaOf("all", "services")}, wantUncovered: topUncovered},
		"another class is free":                                  {limited: top, request: creation(pods(), podOfClass("low"))},
		"and charged where there is a quota":                     {limited: top, request: creation(pods(), podOfClass("low")), quotas: []Quota{quotaOf("all", "pods")}, want: []Charge{{Quota: "all", Amounts: one}}},
		"so is a pod without a class":                            {limited: top, request: creation(pods(), podOfClass(""))},
		"other objects are free":                                 {limited: top, request: creation(services(), serviceOf(corev1.ServiceTypeClusterIP))},
		"a quota of the class covers and counts it":              {limited: top, request: ofTop, quotas: []Quota{ofTopQuota}, want: []Charge{{Quota: "m", Amounts: one}}},
		"so does one of several classes":                         {limited: top, request: ofTop, quotas: []Quota{scopedQuota("m", "pods", class, in, "low", "top")}, want: []Charge{{Quota: "m", Amounts: one}}},
		"so does one of any class":                               {limited: top, request: ofTop, quotas: []Quota{scopedQuota("m", "pods", class, exists)}, want: []Charge{{Quota: "m", Amounts: one}}},
		"it covers for a quota before it, which counts it too":   {limited: top, request: ofTop, quotas: []Quota{quotaOf("a", "pods"), ofTopQuota}, want: []Charge{{Quota: "a", Amounts: one}, {Quota: "m", Amounts: one}}},
		"and for one after it":                                   {limited: top, request: ofTop, quotas: []Quota{ofTopQuota, quotaOf("z", "pods")}, want: []Charge{{Quota: "m", Amounts: one}, {Quota: "z", Amounts: one}}},
		"any class is refused where any is limited":              {limited: anyClass, request: creation(pods(), podOfClass("low")), wantUncovered: anyClassUncovered},
		"but no pod without one":                                 {limited: anyClass, request: creation(pods(), podOfClass(""))},
		"and a quota of the pod's class covers it":               {limited: anyClass, request: ofTop, quotas: []Quota{ofTopQuota}, want: []Charge{{Quota: "m", Amounts: one}}},
		"an update that uses no more is free":                    {limited: top, request: resize(podOfClass("top"), podOfClass("top"))},
		"one that uses more is refused":                          {limited: top, request: resize(resized(podOfClass("top"), "9"), podOfClass("top")), wantUncovered: topUncovered},
		"an end of a pod that was there is free without a quota": {limited: top, request: update(pods(), ending, podOfClass("top"))},

		"affinity to other namespaces by name is refused": {
			limited: across, request: creation(pods(), awayFrom(corev1.PodAffinityTerm{Namespaces: []string{"b"}})), wantUncovered: acrossUncovered},
		"and by selector": {
			limited: across, request: creation(pods(), awayFrom(corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}})), wantUncovered: acrossUncovered},
		"affinity within the namespace is free": {limited: across, request: creation(pods(), awayFrom(corev1.PodAffinityTerm{}))},
		"a quota of such affinity covers and counts it": {
			limited: across, request: creation(pods(), awayFrom(corev1.PodAffinityTerm{Namespaces: []string{"b"}})),
			quotas: []Quota{scopedQuota("m", "pods", crossing, exists)}, want: []Charge{{Quota: "m", Amounts: one}}},
		"a quota of a class doesn't": {
			limited: across, request: creation(pods(), awayFrom(corev1.PodAffinityTerm{Namespaces: []string{"b"}})),
			quotas: []Quota{scopedQuota("m", "pods", class, exists)}, wantUncovered: acrossUncovered},
	} {
		t.Run(name, test.run)
	}
}

func TestNamesThatAreLimitedByDefault(t *testing.T) {
	storage := limitedNames(volumeClaims(), "requests.storage")
	byClass := limitedNames(volumeClaims(), ".storageclass.storage.k8s.io/")
	balancers := limitedNames(services(), "services.loadbalancers")
	ofWidgets := limitedNames(schema.GroupResource{Group: "example.com", Resource: "widgets"}, "count/")
	gold, plain := creation(volumeClaims(), volumeClaimOf("gold", "1Gi")), creation(volumeClaims(), volumeClaimOf("", "1Gi"))
	balancer, internal := serviceOf(corev1.ServiceTypeLoadBalancer, 1), serviceOf(corev1.ServiceTypeClusterIP)
	const goldClaims, goldStorage = "gold.storageclass.storage.k8s.io/persistentvolumeclaims", "gold.storageclass.storage.k8s.io/requests.storage"
	const balancersUncovered = "insufficient quota to consume: services.loadbalancers"
	widget := creation(schema.GroupResource{Group: "example.com", Resource: "widgets"}, metadataOf("Widget"))

	for name, test := range map[string]limitedTest{
		"storage is refused where there is no quota": {
			limited: storage, request: plain, wantUncovered: "insufficient quota to consume: requests.storage"},
		"and under a quota of claims": {
			limited: storage, request: plain, quotas: []Quota{quotaOf("all", "persistentvolumeclaims")},
			wantUncovered: "insufficient quota to consume: requests.storage"},
		"of a class, under both names": {
			limited: storage, request: gold, wantUncovered: "insufficient quota to consume: " + goldStorage + ",requests.storage"},
		"which a quota of one of them doesn't cover": {
			limited: storage, request: gold, quotas: []Quota{quotaOf("all", "requests.storage")},
			wantUncovered: "insufficient quota to consume: " + goldStorage},
		"but two quotas do together": {
			limited: storage, request: gold, quotas: []Quota{quotaOf("a", goldStorage), quotaOf("b", "requests.storage")},
			want: []Charge{{Quota: "a", Amounts: amountsOf(goldStorage, "1Gi")}, {Quota: "b", Amounts: amountsOf("requests.storage", "1Gi")}}},
		"a storage class is refused by each of its names": {
			limited: byClass, request: gold, wantUncovered: "insufficient quota to consume: " + goldClaims + "," + goldStorage},
		"a claim without a class isn't": {limited: byClass, request: plain},
		"a load balancer is refused":    {limited: balancers, request: creation(services(), balancer), wantUncovered: balancersUncovered},
		"also when a service becomes one": {
			limited: balancers, request: update(services(), balancer, internal), wantUncovered: balancersUncovered},
		"one that was there may stay":              {limited: balancers, request: update(services(), balancer, balancer.DeepCopy())},
		"and go":                                   {limited: balancers, request: update(services(), internal, balancer)},
		"other services are free":                  {limited: balancers, request: creation(services(), internal)},
		"a quota of load balancers covers them":    {limited: balancers, request: creation(services(), balancer), quotas: []Quota{quotaOf("m", "services.loadbalancers")}, want: []Charge{{Quota: "m", Amounts: amountsOf("services.loadbalancers", "1")}}},
		"a custom resource is refused by its name": {limited: ofWidgets, request: widget, wantUncovered: "insufficient quota to consume: count/widgets.example.com"},
		"but not another that has the same":        {limited: ofWidgets, request: creation(schema.GroupResource{Resource: "secrets"}, metadataOf("Secret"))},
	} {
		t.Run(name, test.run)
	}
}

// Upstream admits a pod, and charges nothing, where it can't match what is
// limited by default.
func TestAnUnknownOperatorAdmitsNothing(t *testing.T) {
	evaluators := New(clockAt{now: testNow()}, ClaimSources{}, limitedScope(corev1.ResourceQuotaScopePriorityClass, "Near", "x"))
	charges, err := evaluators.Charges(creation(pods(), typicalPod()), []Quota{quotaOf("team", "pods")})
	const want = "matching what is limited by default with pods: error on matching scope {PriorityClass Near [x]}: " +
		`failed to parse and convert selector: "Near" is not a valid scope selector operator`
	if err == nil || err.Error() != want || charges != nil {
		t.Errorf("got %v, %v, want %s", charges, err, want)
	}
}

// A quota that refuses the object as such speaks first, and no quota is asked for.
func TestARefusalByAQuotaIsNotForWantOfOne(t *testing.T) {
	evaluators := New(clockAt{now: testNow()}, ClaimSources{}, limitedScope(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpExists))
	pod := podOf(container("c1", nil, nil))
	pod.Spec.PriorityClassName = "top"
	_, err := evaluators.Charges(creation(pods(), pod), []Quota{quotaOf("team", "cpu")})
	refusal, isRefusal := errors.AsType[*Refusal](err)
	if !isRefusal || refusal.Uncovered || refusal.Message != "failed quota: team: must specify cpu for: c1" {
		t.Errorf("got %#v", err)
	}
}

// anyLimited draws what is limited of this resource, mostly, and of others.
func anyLimited(resource schema.GroupResource) *rapid.Generator[resourcequotaapi.LimitedResource] {
	return rapid.Custom(func(t *rapid.T) resourcequotaapi.LimitedResource {
		limited := limitedNames(rapid.SampledFrom([]schema.GroupResource{resource, resource, pods(), volumeClaims()}).Draw(t, "limited resource"))
		parts := []string{"pods", "cpu", "requests.storage", ".storageclass.storage.k8s.io/", "services.loadbalancers", "count/", ""}
		for _, name := range namesFor(resource) {
			parts = append(parts, string(name))
		}
		limited.MatchContains = rapid.SliceOfN(rapid.SampledFrom(parts), 0, 2).Draw(t, "contained")
		limited.MatchScopes = rapid.SliceOfN(anyScopeExpression(), 0, 1).Draw(t, "limited scopes")
		return limited
	})
}

// anyQuotasUnder draws quotas of which one may be of a scope that is limited.
func anyQuotasUnder(limited []resourcequotaapi.LimitedResource, from []corev1.ResourceName) *rapid.Generator[[]Quota] {
	return rapid.Custom(func(t *rapid.T) []Quota {
		quotas := rapid.SliceOfNDistinct(anyQuota(from), 0, 5, func(q Quota) string { return q.Name }).Draw(t, "quotas")
		if len(quotas) > 0 && rapid.Bool().Draw(t, "of the limited scope") {
			quotas[0].Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: limited[0].MatchScopes}
		}
		return quotas
	})
}

// compareAll compares the charges to all quotas with what Kubernetes does to
// them in force, asked once for all of them. Its first refusal is by the first
// quota by name.
func compareAll(t *rapid.T, evaluators *Evaluators, request admission.Attributes, quotas []Quota) string {
	quotas = slices.SortedFunc(slices.Values(quotas), func(a, b Quota) int { return strings.Compare(a.Name, b.Name) })
	var inForce []corev1.ResourceQuota
	for _, quota := range quotas {
		inForce = append(inForce, realQuota(t, quota))
	}
	evaluator := upstream(clockAt{now: testNow()}, ClaimSources{}, nil).Get(request.GetResource().GroupResource())
	if evaluator == nil {
		return "ignored" // Events.
	}
	// It measures a pod once more to see whether it consumes what is limited.
	after, wantErr := resourcequota.CheckRequest(inForce, copied(request), podEvaluator{Evaluator: evaluator}, evaluators.limited)
	charges, err := evaluators.Charges(request, quotas)
	if wantErr == nil {
		return compareCharges(t, inForce, after, charges, err)
	}
	if refusal, isRefusal := errors.AsType[*Refusal](err); isRefusal {
		if uncovered := strings.Contains(wantErr.Error(), "insufficient quota to "); refusal.Uncovered != uncovered ||
			!strings.HasSuffix(wantErr.Error(), refusal.Message) {
			t.Fatalf("refused with %#v, upstream says %v", refusal, wantErr)
		}
		return map[bool]string{true: "uncovered", false: "refused"}[refusal.Uncovered]
	}
	if err != nil {
		t.Fatalf("not judged: %v", err)
	}
	for _, quota := range inForce {
		if want := exceededMessage(quota, charged(charges, quota.Name)); strings.HasSuffix(wantErr.Error(), want) {
			return "exceeded"
		}
	}
	t.Fatalf("upstream says %v, the charges are %v", wantErr, charges)
	return ""
}

func compareCharges(t *rapid.T, before, after []corev1.ResourceQuota, charges []Charge, err error) string {
	if err != nil {
		t.Fatalf("upstream admits, got %v", err)
	}
	for i, quota := range before {
		want := upstreamquota.RemoveZeros(upstreamquota.Subtract(after[i].Status.Used, quota.Status.Used))
		if got := charged(charges, quota.Name); !upstreamquota.Equals(want, got) {
			t.Fatalf("quota %s: want charge %v, got %v", quota.Name, want, got)
		}
	}
	if len(charges) == 0 {
		return "free"
	}
	return "charged"
}

func TestLimitedByDefaultMeansTheSameAsInKubernetes(t *testing.T) {
	outcomes := tally{}
	rapid.Check(t, func(t *rapid.T) {
		for _, request := range rapid.SliceOfN(anyRequest(), 20, 20).Draw(t, "requests") {
			resource := request.GetResource().GroupResource()
			limited := rapid.SliceOfN(anyLimited(resource), 1, 2).Draw(t, "limited")
			quotas := anyQuotasUnder(limited, namesFor(resource)).Draw(t, "quotas under it")
			evaluators := New(clockAt{now: testNow()}, ClaimSources{}, limited...)
			outcome := compareAll(t, evaluators, request, quotas)
			if outcome == "charged" && isUncoveredAlone(evaluators, request) {
				outcome = "covered"
			}
			outcomes[outcome]++
		}
	})
	outcomes.require(t, 5, "uncovered", "covered", "charged", "free", "refused", "exceeded")
}

// isUncoveredAlone reports whether the request needs a quota.
func isUncoveredAlone(evaluators *Evaluators, request admission.Attributes) bool {
	_, err := evaluators.Charges(request, nil)
	refusal, isRefusal := errors.AsType[*Refusal](err)
	return isRefusal && refusal.Uncovered
}

// The order in which quotas are given doesn't matter to who is covered.
func TestAnyOfTheQuotasCovers(t *testing.T) {
	evaluators := New(clockAt{now: testNow()}, ClaimSources{}, limitedScope(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpIn, "top"))
	quotas := []Quota{quotaOf("a", "pods"), quotaOf("c", "services"),
		scopedQuota("b", "pods", corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpExists), quotaOf("d", "pods")}
	var first string
	rapid.Check(t, func(t *rapid.T) {
		charges, err := evaluators.Charges(creation(pods(), podOfClass("top")), rapid.Permutation(quotas).Draw(t, "order"))
		if err != nil || len(charges) != 3 {
			t.Fatalf("got %v, %v, want a, b and d charged", charges, err)
		}
		if first == "" {
			first = fmt.Sprint(charges)
		}
		if fmt.Sprint(charges) != first {
			t.Fatalf("got %v, in another order %s", charges, first)
		}
	})
}
