// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"fmt"
	"regexp"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// The messages themselves are tested word for word where they are made. A suite shows that a request is answered for
// the right reason.

// BeExceeded matches the refusal of a request that a quota has no room for, of a resource such as pods.
func BeExceeded(quota, resource string) gomegatypes.GomegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(MatchRegexp(
		`exceeded quota: %s, requested: (\S+,)?%s=`, regexp.QuoteMeta(quota), regexp.QuoteMeta(resource))))
}

// BeExceededAt is BeExceeded where so much is used of so much.
func BeExceededAt(quota, resource, used, hard string) gomegatypes.GomegaMatcher {
	return And(BeExceeded(quota, resource), MatchError(MatchRegexp(`used: (\S+,)?%[1]s=%[2]s\b.*limited: (\S+,)?%[1]s=%[3]s\b`,
		regexp.QuoteMeta(resource), regexp.QuoteMeta(used), regexp.QuoteMeta(hard))))
}

// BeUncounted matches the refusal of a request that a quota limits by a resource that isn't counted.
func BeUncounted(quota, resource string) gomegatypes.GomegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(MatchRegexp(
		`status unknown for quota: %s, resources: (\S+,)?%s\b`, regexp.QuoteMeta(quota), regexp.QuoteMeta(resource))))
}

// BeProtected matches the answer to users who write what the operator keeps, by the policy.
func BeProtected() gomegatypes.GomegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("is written by the shared quota operator alone")))
}

// BeForbidden matches RBAC's answer to users who lack the right to do something with a resource.
func BeForbidden(verb, resource string) gomegatypes.GomegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("cannot %s resource %q", verb, resource)))
}

// HaveCondition matches a quota by one of its conditions: STATUS REASON: MESSAGE. It is "" if the condition isn't
// there, or tells of another generation.
func HaveCondition(kind string, says gomegatypes.GomegaMatcher) gomegatypes.GomegaMatcher {
	return WithTransform(func(quota *quotav1.ClusterResourceQuota) string {
		condition := meta.FindStatusCondition(quota.Status.Conditions, kind)
		if condition == nil || condition.ObservedGeneration != quota.Generation {
			return ""
		}
		return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
	}, says)
}

// Quota returns what reads a quota, for Eventually.
func Quota(api client.Reader, name string) func(context.Context) (*quotav1.ClusterResourceQuota, error) {
	return func(ctx context.Context) (*quotav1.ClusterResourceQuota, error) {
		quota := &quotav1.ClusterResourceQuota{}
		err := api.Get(ctx, client.ObjectKey{Name: name}, quota)
		return quota, err
	}
}

// Used returns what reads how much of a resource a quota's namespaces use, for Eventually.
func Used(api client.Reader, name, resource string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		quota, err := Quota(api, name)(ctx)
		amount := quota.Status.Total.Used[corev1.ResourceName(resource)]
		return amount.String(), err
	}
}

// Gone returns what reports whether an object is there no more, for Eventually.
func Gone(api client.Reader, object client.Object) func(context.Context) bool {
	return func(ctx context.Context) bool {
		return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(object), object))
	}
}

// Merge returns a JSON merge patch.
func Merge(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }
