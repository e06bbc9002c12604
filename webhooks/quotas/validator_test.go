// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func quotaOfPods(limit string) *quotav1.ClusterResourceQuota {
	return &quotav1.ClusterResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "team"},
		Spec: quotav1.ClusterResourceQuotaSpec{
			Selector: quotav1.ClusterResourceQuotaSelector{AnnotationSelector: map[string]string{"owner": "alice"}},
			Quota:    quotav1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse(limit)}},
		},
	}
}

// listing adds so many bytes of values to the selector.
func listing(quota *quotav1.ClusterResourceQuota, bytes int) *quotav1.ClusterResourceQuota {
	const length = validation.LabelValueMaxLength
	values := slices.Repeat([]string{strings.Repeat("v", length)}, bytes/(length+len(`"",`)))
	quota.Spec.Selector.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: values},
	}}
	return quota
}

func leaving(quota *quotav1.ClusterResourceQuota) *quotav1.ClusterResourceQuota {
	since := metav1.Unix(1000, 0)
	quota.DeletionTimestamp = &since
	return quota
}

func TestValidator(t *testing.T) {
	const mistake = `ClusterResourceQuota.quota.sharedquota.dev "team" is invalid: ` +
		`spec.quota.hard[pods]: Invalid value: "-1": must be greater than or equal to 0`
	for name, test := range map[string]struct {
		validate func(context.Context) error
		want     string
	}{
		"a valid quota may be made":  {validate: creating(quotaOfPods("1"))},
		"an invalid one may not":     {validate: creating(quotaOfPods("-1")), want: mistake},
		"a quota may become another": {validate: updating(quotaOfPods("1"), quotaOfPods("2"))},
		"but not an invalid one":     {validate: updating(quotaOfPods("1"), quotaOfPods("-1")), want: mistake},
		"nor one whose selector is too large for etcd": {
			validate: updating(quotaOfPods("1"), listing(quotaOfPods("1"), maxSelector+100)),
			want: `spec.selector: Forbidden: takes 1024 KiB, and etcd can't store more than 1024 KiB of it together with the quota's status: ` +
				`label the namespaces, and select by this label`,
		},
		"one that has such a selector already may change otherwise": {
			validate: updating(listing(quotaOfPods("1"), maxSelector+100), listing(quotaOfPods("2"), maxSelector+100)),
		},
		"an invalid one may be repaired": {validate: updating(quotaOfPods("-1"), quotaOfPods("1"))},
		"one that is leaving may go":     {validate: updating(quotaOfPods("-1"), leaving(quotaOfPods("-1")))},
		"an invalid one may be deleted": {validate: func(ctx context.Context) error {
			_, err := validator().ValidateDelete(ctx, quotaOfPods("-1"))
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) { requireError(t, test.validate(t.Context()), test.want) })
	}
}

// validator has nothing to warn of that doesn't follow from the quota itself.
func validator() *Validator {
	around := &surroundings{teams: map[string]string{"shop": "payments"}}
	return NewValidator(around.warner(), NewFences(clocktesting.NewFakeClock(time.Unix(0, 0)), &ledgers{}, time.Minute))
}

func TestAnInvalidQuotaIsRefusedWithoutAWarning(t *testing.T) {
	invalid, valid := quota("nobody", "pods", "-1"), quota("payments", "pods", "1")
	for name, validate := range map[string]func(context.Context) (admission.Warnings, error){
		"when it is made": func(ctx context.Context) (admission.Warnings, error) { return validator().ValidateCreate(ctx, invalid) },
		"when it is changed": func(ctx context.Context) (admission.Warnings, error) {
			return validator().ValidateUpdate(ctx, valid, invalid)
		},
	} {
		t.Run(name, func(t *testing.T) {
			warnings, err := validate(t.Context())
			if !apierrors.IsInvalid(err) || len(warnings) > 0 {
				t.Errorf("got the warnings %q and the error %v, want it invalid and no warning", warnings, err)
			}
		})
	}
}

func TestAQuotaThatIsWarnedOfIsTaken(t *testing.T) {
	warnings, err := validator().ValidateCreate(t.Context(), quota("nobody", "pods", "1"))
	if err != nil || !slices.Equal(warnings, admission.Warnings{idle}) {
		t.Errorf("created: got %q and the error %v, want %q and none", warnings, err, idle)
	}
	warnings, err = validator().ValidateUpdate(t.Context(), quota("payments", "pods", "1"), quota("nobody", "pods", "1"))
	if err != nil || !slices.Equal(warnings, admission.Warnings{idle}) {
		t.Errorf("changed: got %q and the error %v, want %q and none", warnings, err, idle)
	}
	warnings, err = validator().ValidateUpdate(t.Context(), quota("payments", "pods", "1"), leaving(quota("nobody", "pods", "1")))
	if err != nil || len(warnings) > 0 {
		t.Errorf("leaving: got %q and the error %v, want neither", warnings, err)
	}
}

// A selector that is large for the webhook configuration is warned of when it is new.
func TestALargeSelectorIsWarnedOf(t *testing.T) {
	large := func(size int) *quotav1.ClusterResourceQuota { return listing(quotaOfPods("1"), size) }
	for name, test := range map[string]struct {
		previous, current *quotav1.ClusterResourceQuota
		want              bool
	}{
		"it is new":        {current: large(65 << 10), want: true},
		"it becomes large": {previous: quotaOfPods("1"), current: large(65 << 10), want: true},
		"it was so before": {previous: large(65 << 10), current: large(65 << 10)},
		"it isn't large":   {current: large(63 << 10)},
	} {
		t.Run(name, func(t *testing.T) {
			warnings := payments().warnings(t.Context(), test.previous, test.current)
			const want = "spec.selector takes 65 KiB: if all selectors are too large for the webhook configuration, " +
				"requests in namespaces that no quota selects need the operator, too; label the namespaces, and select by this label"
			if slices.Contains(warnings, want) != test.want {
				t.Errorf("got %q", warnings)
			}
		})
	}
}

func creating(quota *quotav1.ClusterResourceQuota) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := validator().ValidateCreate(ctx, quota)
		return err
	}
}

func updating(previous, current *quotav1.ClusterResourceQuota) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := validator().ValidateUpdate(ctx, previous, current)
		return err
	}
}

func requireError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("got the error %v, want none", err)
		}
		return
	}
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("got the error %v, want it invalid: %s", err, want)
	}
}
