// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

func settings() webhookconfig.Settings {
	return webhookconfig.Settings{
		Endpoint: webhookconfig.Endpoint{URL: "https://localhost", CABundle: []byte("authority")},
		Paths:    webhookconfig.Paths{Objects: "/o", Quotas: "/q", Probe: "/p"}, FailurePolicy: admissionregistrationv1.Fail,
	}
}

// A quota that this release refuses, such as one of before its validation was
// stricter, must not be left out: requests that it limits wouldn't be asked
// about.
func TestAQuotaThatIsInvalidIsAskedAbout(t *testing.T) {
	pods := []schema.GroupResource{{Resource: "pods"}}
	byTeam := metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	for name, test := range map[string]struct {
		change  func(*quotav1.ClusterResourceQuotaSpec)
		limited []schema.GroupResource
		where   string
	}{
		"a valid one": {change: func(*quotav1.ClusterResourceQuotaSpec) {}, limited: pods, where: "team=shop"},
		"an amount that can't be": {
			change: func(s *quotav1.ClusterResourceQuotaSpec) { s.Quota.Hard["pods"] = resource.MustParse("-1") }, limited: pods, where: "team=shop",
		},
		"a scope that doesn't exist": {
			change:  func(s *quotav1.ClusterResourceQuotaSpec) { s.Quota.Scopes = []corev1.ResourceQuotaScope{"Sleeping"} },
			limited: pods, where: "team=shop",
		},
		"a requirement that can't be": {
			change: func(s *quotav1.ClusterResourceQuotaSpec) {
				s.Selector.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "In"}}
			},
			limited: pods, where: "team=shop",
		},
		"no requirement that can be": {
			change: func(s *quotav1.ClusterResourceQuotaSpec) {
				s.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"not a label": "x"}}
			},
			limited: pods,
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "uid", Generation: 1, ResourceVersion: "7"}}
			object.Spec.Selector.LabelSelector = byTeam.DeepCopy()
			object.Spec.Quota.Hard = corev1.ResourceList{"pods": resource.MustParse("1")}
			test.change(&object.Spec)
			c := &Controller{
				evaluators: evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), options: Options{Define: definition.Salvage, Judged: areMade},
			}
			got := c.quota(settings(), object)
			if diff := cmp.Diff(test.limited, got.Limited); diff != "" || got.Selector.String() != test.where {
				t.Errorf("in %q, limited (-want,+got):\n%s", got.Selector.String(), diff)
			}
			webhooks, _ := settings().Webhooks([]webhookconfig.Quota{got})
			if asks := len(webhooks) == 3; asks != (test.where != "") || !got.Preflight {
				t.Errorf("got %d entries", len(webhooks))
			}
		})
	}
}

// areMade reports whether workloads make objects of a resource.
func areMade(resource schema.GroupResource) bool {
	return resource.Resource == "pods" || resource.Resource == "persistentvolumeclaims"
}

func TestWhoseWorkloadsAreJudged(t *testing.T) {
	for name, test := range map[string]struct {
		limited corev1.ResourceName
		mode    quotav1.PreflightMode
		enforce quotav1.EnforcementMode
		without bool
		want    bool
	}{
		"a limit on pods":              {limited: "pods", want: true},
		"a limit on what pods ask of":  {limited: "requests.nvidia.com/gpu", want: true},
		"a limit on claims":            {limited: "requests.storage", mode: quotav1.PreflightDeny, want: true},
		"nothing that workloads make":  {limited: "services"},
		"turned off":                   {limited: "pods", mode: quotav1.PreflightOff},
		"a limit that only warns":      {limited: "pods", enforce: quotav1.EnforcementWarn, want: true},
		"an operator that judges none": {limited: "pods", without: true},
		"a limit without an effect":    {limited: "pods", enforce: quotav1.EnforcementAudit},
	} {
		t.Run(name, func(t *testing.T) {
			object := &quotav1.ClusterResourceQuota{}
			object.Spec.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
			object.Spec.Quota.Hard = corev1.ResourceList{test.limited: resource.MustParse("1")}
			object.Spec.Preflight, object.Spec.Enforcement.Mode = test.mode, test.enforce
			c := &Controller{
				evaluators: evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), options: Options{Define: definition.Salvage, Judged: areMade},
			}
			if test.without {
				c.options.Judged = nil
			}
			if got := c.quota(settings(), object).Preflight; got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestWhichQuotasAdmitWhileNobodyDecides(t *testing.T) {
	for name, test := range map[string]struct {
		enforcement quotav1.Enforcement
		flag        admissionregistrationv1.FailurePolicyType
		want        bool
	}{
		"it doesn't say":                    {flag: admissionregistrationv1.Fail},
		"it doesn't say, and the flag does": {flag: admissionregistrationv1.Ignore, want: true},
		"it admits":                         {enforcement: quotav1.Enforcement{WhenUnavailable: quotav1.UnavailableAdmit}, flag: admissionregistrationv1.Fail, want: true},
		"it refuses with any flag": {
			enforcement: quotav1.Enforcement{WhenUnavailable: quotav1.UnavailableRefuse}, flag: admissionregistrationv1.Ignore,
		},
		"it refuses nothing": {enforcement: quotav1.Enforcement{Mode: quotav1.EnforcementAudit}, flag: admissionregistrationv1.Fail, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			object := &quotav1.ClusterResourceQuota{}
			object.Spec.Quota.Hard = corev1.ResourceList{"pods": resource.MustParse("1"), "services": resource.MustParse("1")}
			object.Spec.Enforcement = test.enforcement
			c := &Controller{
				evaluators: evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), options: Options{Define: definition.Salvage},
			}
			settings := settings()
			settings.FailurePolicy = test.flag
			if got := c.quota(settings, object).Admits; got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
