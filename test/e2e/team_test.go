// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// teamLabel is the label of a namespace that says whose it is.
const teamLabel = "team"

var teams atomic.Int32

// team is one spec's own part of the cluster: namespaces that carry its label,
// and quotas that select them.
type team struct {
	name       string
	namespaces int
}

func newTeam() *team {
	return &team{name: fmt.Sprintf("team-%d", teams.Add(1))}
}

// nextName returns the name of the team's next namespace.
func (t *team) nextName() string {
	t.namespaces++
	return fmt.Sprintf("%s-n%d", t.name, t.namespaces)
}

// namespace creates one more namespace of the team and returns its name.
func (t *team) namespace(ctx context.Context) string {
	GinkgoHelper()
	name := t.nextName()
	mustCreate(ctx, builders.Namespace(name).Label(teamLabel, t.name).Obj())
	return name
}

// quota starts the team's quota, which has the team's name.
func (t *team) quota() *builders.QuotaBuilder {
	return builders.Quota(t.name).Label(teamLabel, t.name)
}

// mustCreate creates an object that must not be refused, and returns it.
func mustCreate[T client.Object](ctx context.Context, object T) T {
	GinkgoHelper()
	Expect(api.Create(ctx, object)).To(Succeed())
	return object
}

// mustDelete deletes an object at once: without a grace period, and without
// waiting for what it owns.
func mustDelete(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(api.Delete(ctx, object, client.GracePeriodSeconds(0),
		client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
}

// enforce creates a quota, and returns once it is enforced. It is deleted with
// the spec.
func enforce(ctx context.Context, quota *builders.QuotaBuilder) *quotav1.ClusterResourceQuota {
	GinkgoHelper()
	created := createQuota(ctx, quota.Obj())
	waitUntilEnforced(ctx, created)
	return created
}

// createQuota creates a quota that is deleted with the spec.
func createQuota(ctx context.Context, quota *quotav1.ClusterResourceQuota) *quotav1.ClusterResourceQuota {
	GinkgoHelper()
	mustCreate(ctx, quota)
	DeferCleanup(deleteIfThere, quota)
	return quota
}

func deleteIfThere(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(api.Delete(ctx, object))).To(Succeed())
}

// change updates a quota's spec, and returns it once the change is enforced.
func change(ctx context.Context, quota *quotav1.ClusterResourceQuota, how func(*quotav1.ClusterResourceQuotaSpec)) {
	GinkgoHelper()
	Expect(tryChange(ctx, quota, how)).To(Succeed())
	waitUntilEnforced(ctx, quota)
}

// tryChange updates a quota's spec.
func tryChange(ctx context.Context, quota *quotav1.ClusterResourceQuota, how func(*quotav1.ClusterResourceQuotaSpec)) error {
	before := quota.DeepCopy()
	how(&quota.Spec)
	return api.Patch(ctx, quota, client.MergeFrom(before))
}
