// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// forgets notes which quotas must be counted again.
type forgets struct {
	quotas []string
	err    error
}

func (f *forgets) forget(_ context.Context, quota string, _ types.UID) error {
	f.quotas = append(f.quotas, quota)
	return f.err
}

// Objects that nobody was asked about may have been stored before anybody counted.
func TestAQuotaIsCountedAnewBeforeItIsEnforcedAgain(t *testing.T) {
	generated := func(t *testing.T) *admissionregistrationv1.ValidatingWebhookConfiguration {
		t.Helper()
		current, _ := (&Controller{}).wanted(settings(), viewOf(&admissionregistrationv1.ValidatingWebhookConfiguration{}, team(t, 7)))
		current.Generation = 1
		return current
	}
	edited := func(t *testing.T) *admissionregistrationv1.ValidatingWebhookConfiguration {
		t.Helper()
		current := generated(t)
		current.Webhooks, current.Generation = nil, 2
		return current
	}
	// Others have added a requirement, after it was written and while it was.
	narrowed := func(t *testing.T, values string, operator metav1.LabelSelectorOperator) *admissionregistrationv1.ValidatingWebhookConfiguration {
		t.Helper()
		current := generated(t)
		current.Generation = 2
		for i := range current.Webhooks {
			selector := current.Webhooks[i].NamespaceSelector
			selector.MatchExpressions = append(selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: "kind", Operator: operator, Values: []string{values}})
		}
		return current
	}
	mutated := func(t *testing.T) *admissionregistrationv1.ValidatingWebhookConfiguration {
		t.Helper()
		current := narrowed(t, "shop", "NotIn")
		current.Generation = 1
		return current
	}
	for name, test := range map[string]struct {
		is      *admissionregistrationv1.ValidatingWebhookConfiguration
		missing bool
		begun   bool
		want    bool
	}{
		"if there is no configuration":                            {is: &admissionregistrationv1.ValidatingWebhookConfiguration{}, missing: true, want: true},
		"even if there was one a moment ago":                      {is: &admissionregistrationv1.ValidatingWebhookConfiguration{}, missing: true, begun: true, want: true},
		"if somebody edited it before anybody counted":            {is: edited(t), want: true},
		"but not for an edit that the count has followed":         {is: edited(t), begun: true},
		"nor for the configuration of the leader before this one": {is: generated(t)},
		"nor if others only added what takes nothing out":         {is: narrowed(t, "cattle", "NotIn")},
		"but if what they added takes a namespace out":            {is: narrowed(t, "shop", "NotIn"), want: true},
		"even as it was written":                                  {is: mutated(t), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			told := &forgets{}
			controller := &Controller{
				clock: clocktesting.NewFakeClock(time.Unix(0, 0)), options: Options{Forget: told.forget}, begun: test.begun,
			}
			seen := viewOf(test.is, team(t, 7))
			seen.missing = test.missing
			controller.begin(seen)
			if err := controller.forget(t.Context(), team(t, 7)); err != nil {
				t.Fatal(err)
			}
			if forgotten := len(told.quotas) > 0; forgotten != test.want {
				t.Errorf("counted anew: got %t, want %t", forgotten, test.want)
			}
			if len(controller.due) != 0 {
				t.Errorf("want nothing due any more, got %v", controller.due)
			}
		})
	}
}

func TestOnlyAQuotaThatWasNotForgottenIsTriedAgain(t *testing.T) {
	seen := &forgets{err: errors.New("no answer")}
	controller := &Controller{clock: clocktesting.NewFakeClock(time.Unix(0, 0)), options: Options{Forget: seen.forget}}
	quotas := team(t, 7)
	nothing := viewOf(&admissionregistrationv1.ValidatingWebhookConfiguration{}, quotas)
	nothing.missing = true
	controller.begin(nothing)
	if err := controller.forget(t.Context(), quotas); err == nil || len(controller.due) != len(quotas) {
		t.Errorf("want it tried again, got %v, due %v", err, controller.due)
	}
	seen.err = nil
	for range 2 {
		if err := controller.forget(t.Context(), quotas); err != nil {
			t.Error(err)
		}
	}
	if len(seen.quotas) != 2*len(quotas) {
		t.Errorf("want each tried twice, got %v", seen.quotas)
	}
}

// For as long as use can't be forgotten, the configuration waits. After that nobody would
// be asked about any quota.
func TestTheConfigurationWaitsALittleForWhatIsForgotten(t *testing.T) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{quotav1.AddToScheme, admissionregistrationv1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	quota := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "uid"}}
	quota.Spec.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	quota.Spec.Quota.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
	server := fake.NewClientBuilder().WithScheme(known).WithObjects(quota).Build()
	now, seen := clocktesting.NewFakeClock(time.Unix(0, 0)), &forgets{err: errors.New("no answer")}
	controller := NewController(now, server, evaluation.New(now, evaluation.ClaimSources{}), Options{
		Define:   definition.Salvage,
		Settings: settings, Forget: seen.forget, Proofs: &reach.Proofs{}, Observed: func([]string) {},
	})
	reconciles := func(failing, written bool) {
		t.Helper()
		_, err := controller.Reconcile(t.Context(), reconcile.Request{})
		if (err != nil) != failing {
			t.Errorf("error: got %v, want one: %t", err, failing)
		}
		current := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		err = server.Get(t.Context(), client.ObjectKey{Name: reach.ConfigurationName}, current)
		if (err == nil) != written || client.IgnoreNotFound(err) != nil {
			t.Errorf("after %s: got %v, want it written: %t", now.Since(time.Unix(0, 0)), err, written)
		}
	}
	reconciles(true, false)
	now.Step(forgetPatience - time.Second)
	reconciles(true, false)
	now.Step(time.Second)
	reconciles(true, true)
	reconciles(true, true) // it goes on trying
	seen.err = nil
	reconciles(false, true)
	reconciles(false, true)
	if len(seen.quotas) != 5 {
		t.Errorf("want five attempts, got %d", len(seen.quotas))
	}

	current := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	current.Name = reach.ConfigurationName
	if err := server.Delete(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	seen.err = errors.New("no answer")
	now.Step(cacheDelay)
	reconciles(true, false) // another wait begins
}
