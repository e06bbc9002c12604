// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"errors"
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

// limitedTest is a request while something is limited by default. uncovered is
// the exact text.
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

// The property below compares any others with Kubernetes.
func TestWhatIsLimitedByDefault(t *testing.T) {
	top := limitedScope(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpIn, "top")
	ofTop, ofTopQuota := creation(pods(), podOfClass("top")), scopedQuota("m", "pods", corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpIn, "top")
	const topUncovered = "insufficient quota to match these scopes: [{PriorityClass In [top]}]"
	across := limitedScope(corev1.ResourceQuotaScopeCrossNamespacePodAffinity, corev1.ScopeSelectorOpExists)
	storage := limitedNames(volumeClaims(), "requests.storage")
	gold := creation(volumeClaims(), volumeClaimOf("gold", "1Gi"))
	const goldStorage = "gold.storageclass.storage.k8s.io/requests.storage"
	balancers := limitedNames(services(), "services.loadbalancers")
	balancer, internal := serviceOf(corev1.ServiceTypeLoadBalancer, 1), serviceOf(corev1.ServiceTypeClusterIP)
	one := amountsOf("pods", "1")
	for name, test := range map[string]limitedTest{
		"a class is refused without a quota of it": {limited: top, request: ofTop, quotas: []Quota{quotaOf("all", "pods")}, wantUncovered: topUncovered},
		"another class is free":                    {limited: top, request: creation(pods(), podOfClass("low"))},
		"a quota of the class covers it for a quota before it, which counts it too": {
			limited: top, request: ofTop, quotas: []Quota{quotaOf("a", "pods"), ofTopQuota}, want: []Charge{{Quota: "a", Amounts: one}, {Quota: "m", Amounts: one}}},
		"a quota that refuses nothing covers it": {
			limited: top, request: ofTop, quotas: []Quota{ofTopQuota.advising()}, want: []Charge{{Quota: "m", Amounts: one}}},
		"an update that uses no more is free": {limited: top, request: resize(podOfClass("top"), podOfClass("top"))},
		"an update that uses more is refused": {limited: top, request: resize(resized(podOfClass("top"), "9"), podOfClass("top")), wantUncovered: topUncovered},
		"affinity to other namespaces is refused": {
			limited: across, request: creation(pods(), awayFrom(corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}})),
			wantUncovered: "insufficient quota to match these scopes: [{CrossNamespacePodAffinity Exists []}]"},
		"affinity within the namespace is free": {limited: across, request: creation(pods(), awayFrom(corev1.PodAffinityTerm{}))},
		"storage of a class is refused by both names if a quota has only one of them": {
			limited: storage, request: gold, quotas: []Quota{quotaOf("all", "requests.storage")}, wantUncovered: "insufficient quota to consume: " + goldStorage},
		"two quotas cover it together": {
			limited: storage, request: gold, quotas: []Quota{quotaOf("a", goldStorage), quotaOf("b", "requests.storage")},
			want: []Charge{{Quota: "a", Amounts: amountsOf(goldStorage, "1Gi")}, {Quota: "b", Amounts: amountsOf("requests.storage", "1Gi")}}},
		"a service that becomes a load balancer is refused": {
			limited: balancers, request: update(services(), balancer, internal), wantUncovered: "insufficient quota to consume: services.loadbalancers"},
		"a load balancer that was there may stay": {limited: balancers, request: update(services(), balancer, balancer.DeepCopy())},
	} {
		t.Run(name, test.run)
	}
}

// Upstream admits a pod, and charges nothing, if it can't match a limit by
// default.
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

// anyLimited draws a limit of this resource, mostly, and of others.
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

// compareAll compares the charges to all quotas with Kubernetes' charges to them
// in force, asked once for all of them. Its first refusal is by the first quota
// by name.
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
	// It measures a pod once more to see whether it consumes a limited resource.
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
