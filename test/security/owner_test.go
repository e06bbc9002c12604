// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	projectOwner = "project-owner"
	quotas       = "resourcequotas"
)

// agreed are the names that project owners may write.
func agreed() []string {
	return []string{"default", "terminating", "not-terminating", "best-effort", "not-best-effort"}
}

// native is a ResourceQuota of Kubernetes' own.
func native(namespace, name string) *corev1.ResourceQuota {
	quota := builders.ResourceQuota(namespace, name)
	quota.Spec.Hard = corev1.ResourceList{"pods": resource.MustParse("1")}
	return quota
}

// applied is a quota as server-side apply sends it.
func applied(quota *corev1.ResourceQuota) client.Patch {
	GinkgoHelper()
	document, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ResourceQuota",
		"metadata": map[string]any{"name": quota.Name, "namespace": quota.Namespace}, "spec": quota.Spec,
	})
	Expect(err).NotTo(HaveOccurred())
	return client.RawPatch(types.ApplyPatchType, document)
}

func apply(ctx context.Context, by client.Client, quota *corev1.ResourceQuota) error {
	return by.Patch(ctx, quota, applied(quota), client.FieldOwner("owner"))
}

// beMisnamed matches the answer to who creates a quota of another name than the
// agreed ones.
func beMisnamed(name string) gomegatypes.GomegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("use one of these names instead of %s, or ask", name)))
}

// owning returns a project owner of a namespace, once both may: RBAC lets them
// create quotas, and the policy lets them create no other.
func owning(ctx context.Context, namespace string) client.WithWatch {
	GinkgoHelper()
	owner := granted(ctx, namespace, projectOwner, "owner-of-"+namespace)
	Eventually(ctx, func(ctx context.Context) error {
		return owner.Create(ctx, native(namespace, "default"), client.DryRunAll)
	}).Should(Succeed())
	Eventually(ctx, func(ctx context.Context) error {
		return owner.Create(ctx, native(namespace, "other"), client.DryRunAll)
	}).Should(beMisnamed("other"))
	return owner
}

var _ = Describe("A project owner", Label("owners"), Ordered, func() {
	const own, other, lockdown = "orchard", "elsewhere", "lockdown"
	var owner client.WithWatch

	BeforeAll(func(ctx SpecContext) {
		run(ctx)
		mustCreate(ctx, builders.Namespace(own).Obj(), builders.Namespace(other).Obj())
		owner = owning(ctx, own)
		Expect(admin.Create(ctx, native(own, lockdown))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, native(own, lockdown))).To(Succeed()) })
	})

	for _, name := range agreed() {
		It("writes the quota "+name, func(ctx SpecContext) {
			By("creating it by POST")
			quota := native(own, name)
			Expect(owner.Create(ctx, quota)).To(Succeed())
			Eventually(ctx, func(ctx context.Context) error { // its status is written meanwhile
				Expect(owner.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
				quota.Spec.Hard["pods"] = resource.MustParse("2")
				return owner.Update(ctx, quota)
			}).Should(Succeed())
			Expect(owner.Patch(ctx, quota, suite.Merge(`{"spec":{"hard":{"pods":"3"}}}`))).To(Succeed())
			Expect(quota.Spec.Hard.Pods().Value()).To(BeEquivalentTo(3))
			Expect(owner.Delete(ctx, quota)).To(Succeed())

			By("creating it by server-side apply")
			quota = native(own, name)
			Expect(apply(ctx, owner, quota)).To(Succeed())
			Expect(owner.Delete(ctx, quota)).To(Succeed())
		})

		It("doesn't write the quota "+name+" of another namespace", func(ctx SpecContext) {
			Expect(owner.Create(ctx, native(other, name))).To(suite.BeForbidden("create", quotas))
			Expect(apply(ctx, owner, native(other, name))).To(suite.BeForbidden("patch", quotas))
			Expect(owner.Delete(ctx, native(other, name))).To(suite.BeForbidden("delete", quotas))
		})
	}

	for _, name := range []string{"other", "Default", "default-2", "defaul", "terminating.default", lockdown} {
		It("doesn't create the quota "+name, func(ctx SpecContext) {
			Expect(apply(ctx, owner, native(own, name))).To(suite.BeForbidden("patch", quotas))
			Expect(owner.Update(ctx, native(own, name))).To(suite.BeForbidden("update", quotas))
			if name != "Default" { // which is no name at all
				Expect(owner.Create(ctx, native(own, name))).To(beMisnamed(name))
			}
		})
	}

	It("is told by kubectl what to do instead", func(ctx SpecContext) {
		result, err := cluster.Kubectl(ctx, nil, "create", "quota", "mine", "--hard=pods=1", "-n", own, "--as", "owner-of-"+own)
		Expect(err).NotTo(HaveOccurred())
		const policy = "shared-quota-subdivision"
		Expect(result.Stderr).To(Equal(fmt.Sprintf("error: failed to create quota: resourcequotas \"mine\" is forbidden: "+
			"ValidatingAdmissionPolicy '%s' with binding '%s' denied request: "+
			"project owners name their resourcequotas default, terminating, not-terminating, best-effort or not-best-effort; "+
			"use one of these names instead of mine, or ask a cluster administrator to create it\n", policy, policy)))
	})

	It("doesn't create a quota of a generated name", func(ctx SpecContext) {
		for _, prefix := range []string{"default", "default-", ""} {
			quota := native(own, "")
			quota.GenerateName = prefix
			Expect(owner.Create(ctx, quota)).NotTo(Succeed(), "prefix %q", prefix)
		}
		quota := native(own, "")
		quota.GenerateName = "default"
		Expect(owner.Create(ctx, quota)).To(MatchError(MatchRegexp(`use one of these names instead of default\w{5}, or ask`)))
	})

	It("leaves a lockdown as it is", func(ctx SpecContext) {
		before := native(own, lockdown)
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(owner.Get(ctx, client.ObjectKeyFromObject(before), before)).To(Succeed(), "they may see it")
			g.Expect(before.Status.Hard).NotTo(BeEmpty(), "until its status is there")
		}).Should(Succeed())
		loose := `{"spec":{"hard":{"pods":"100"}}}`
		Expect(owner.Update(ctx, before.DeepCopy())).To(suite.BeForbidden("update", quotas))
		Expect(owner.Patch(ctx, before.DeepCopy(), suite.Merge(loose))).To(suite.BeForbidden("patch", quotas))
		Expect(owner.Delete(ctx, before.DeepCopy())).To(suite.BeForbidden("delete", quotas))
		Expect(owner.DeleteAllOf(ctx, before.DeepCopy(), client.InNamespace(own))).To(suite.BeForbidden("deletecollection", quotas))
		for _, name := range []string{lockdown, "default"} {
			status := native(own, name)
			Expect(owner.Status().Patch(ctx, status, suite.Merge(`{"status":{"hard":{"pods":"100"}}}`))).To(suite.BeForbidden("patch", quotas+"/status"))
			Expect(owner.Status().Update(ctx, status)).To(suite.BeForbidden("update", quotas+"/status"))
		}
		after := native(own, lockdown)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(after), after)).To(Succeed())
		Expect(after).To(Equal(before))
	})

	for _, name := range []corev1.ResourceName{quotas, "count/resourcequotas", "count/localresourcequotas.quota.sharedquota.dev"} {
		It("keeps nobody from locking the namespace down, by limiting "+string(name), func(ctx SpecContext) {
			refused := And(Satisfy(apierrors.IsForbidden), MatchError(HaveSuffix("denied request: project owners can't limit "+
				"the number of quotas in a namespace; take the names that contain resourcequotas out of spec.hard")))
			quota := native(own, "default")
			quota.Spec.Hard[name] = resource.MustParse("1")
			Expect(owner.Create(ctx, quota.DeepCopy())).To(refused)
			Expect(apply(ctx, owner, quota.DeepCopy())).To(refused)

			quota = native(own, "default")
			Expect(owner.Create(ctx, quota)).To(Succeed())
			Expect(owner.Patch(ctx, quota, suite.Merge(fmt.Sprintf(`{"spec":{"hard":{%q:"1"}}}`, name)))).To(refused)
			Expect(owner.Delete(ctx, quota)).To(Succeed())
		})
	}

	It("is an admin otherwise", func(ctx SpecContext) {
		Expect(owner.Create(ctx, builders.ConfigMap(own, "settings"))).To(Succeed())
		Expect(owner.Create(ctx, bindingOf(own, "edit", "colleague"))).To(Succeed())
		Expect(owner.Create(ctx, builders.ConfigMap(other, "settings"))).To(suite.BeForbidden("create", "configmaps"))
	})

	It("subdivides what the namespace may use", func(ctx SpecContext) {
		const name = "divided"
		mustCreate(ctx, builders.Namespace(name).Obj())
		owner := owning(ctx, name)
		quota := native(name, "default")
		quota.Spec.Hard["services"] = resource.MustParse("0")
		Expect(owner.Create(ctx, quota)).To(Succeed())
		// The API server goes by the quota's status, of which it hears a moment after it is stored.
		Eventually(ctx, func(ctx context.Context) error {
			return owner.Create(ctx, builders.Service(name, "probe").Obj(), client.DryRunAll)
		}).Should(suite.BeExceeded("default", "services"))
		Expect(owner.Create(ctx, builders.Pod(name, "first").Obj())).To(Succeed())
		Expect(owner.Create(ctx, builders.Pod(name, "second").Obj())).To(suite.BeExceeded("default", "pods"))
		Expect(owner.Delete(ctx, quota)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return owner.Create(ctx, builders.Pod(name, "second").Obj()) }).Should(Succeed())
	})
})
