// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gcustom"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// amounts puts a list into one line, as in "pods=2,requests.cpu=300m".
func amounts(list corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		parts = append(parts, string(name)+"="+quantity.String())
	}
	return strings.Join(parts, ",")
}

// waitUntilEnforced returns once the quota's present spec is counted, unless a
// resource is unavailable, and enforced.
func waitUntilEnforced(ctx context.Context, quota *quotav1.ClusterResourceQuota) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		current := &quotav1.ClusterResourceQuota{}
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), current)).To(Succeed())
		g.Expect(current.Status.ObservedGeneration).To(Equal(current.Generation), "observedGeneration")
		g.Expect(conditionOf(current, quotav1.ConditionEnforced)).To(HavePrefix("True"))
		if !meta.IsStatusConditionTrue(current.Status.Conditions, quotav1.ConditionResourceUnavailable) {
			g.Expect(conditionOf(current, quotav1.ConditionReady)).To(HavePrefix("True"))
		}
		current.DeepCopyInto(quota)
	}).Should(Succeed(), "quota %s", quota.Name)
}

// conditionOf puts a condition that describes the present spec into one line:
// "True Counted: usage is counted".
func conditionOf(quota *quotav1.ClusterResourceQuota, kind string) string {
	condition := meta.FindStatusCondition(quota.Status.Conditions, kind)
	if condition == nil {
		return "missing"
	}
	if condition.ObservedGeneration != quota.Generation {
		return fmt.Sprintf("of generation %d, the quota's is %d", condition.ObservedGeneration, quota.Generation)
	}
	return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
}

// eventuallyUses waits until exactly this is used of the quota, in the form of
// amounts, and nothing is reserved.
func eventuallyUses(ctx context.Context, quota client.Object, used string) {
	GinkgoHelper()
	usesWithin(ctx, deadline, quota, used)
}

// usesWithin is eventuallyUses with a deadline of its own.
func usesWithin(ctx context.Context, timeout time.Duration, quota client.Object, used string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		current := &quotav1.ClusterResourceQuota{}
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), current)).To(Succeed())
		g.Expect(amounts(current.Status.Total.Used)).To(Equal(used), "used of quota %s", current.Name)
		g.Expect(amounts(current.Status.Reserved)).To(BeEmpty(), "reserved of quota %s", current.Name)
	}).WithTimeout(timeout).Should(Succeed())
}

// inTime fails unless something takes less than this, in one attempt of two: a machine that
// pauses makes one longer.
func inTime(limit time.Duration, attempt func() time.Duration) {
	GinkgoHelper()
	took := attempt()
	if took >= limit {
		AddReportEntry("attempted once more, because the first attempt took", took)
		took = attempt()
	}
	Expect(took).To(BeNumerically("<", limit))
}

// deniedBy begins what the API server tells when the webhook refuses a request.
const deniedBy = `admission webhook "objects.quota.sharedquota.dev" denied the request: `

// numbered is the name of an entry of the webhook that is not the first.
var numbered = regexp.MustCompile(`"objects-\d+\.`)

// BeRefused matches the error of a request that the operator answered with 403
// and a message that begins so.
func BeRefused(message string) gomegatypes.GomegaMatcher {
	return gcustom.MakeMatcher(func(err error) (bool, error) {
		return apierrors.IsForbidden(err) && strings.HasPrefix(numbered.ReplaceAllString(err.Error(), `"objects.`), deniedBy+message), nil
	}).WithTemplate("Expected the request to be refused, but:\n{{.FormattedActual}}\n{{if .Actual}}{{.Actual}}{{end}}\n{{.To}} be 403 with\n{{.Data}}", deniedBy+message)
}

// exceeded is what the operator tells about one resource that is exhausted:
//
//	exceeded("team", "pods", "1", "10", "10")
func exceeded(quota, resource, requested, used, limited string) string {
	return fmt.Sprintf("exceeded quota: %[1]s, requested: %[2]s=%[3]s, used: %[2]s=%[4]s, limited: %[2]s=%[5]s",
		quota, resource, requested, used, limited)
}

// slice returns what the status says that one namespace uses, in the form of
// amounts.
func slice(ctx context.Context, quota client.Object, namespace string) string {
	GinkgoHelper()
	current := &quotav1.ClusterResourceQuota{}
	Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), current)).To(Succeed())
	for _, part := range current.Status.Namespaces {
		if part.Namespace == namespace {
			return amounts(part.Status.Used)
		}
	}
	return "not selected"
}
