// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// beBeyondTheirs matches RBAC's answer to who grants what they haven't.
func beBeyondTheirs() gomegatypes.GomegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("is attempting to grant RBAC permissions not currently held")))
}

// allowing are the rights to do something with ResourceQuotas of any name.
func allowing(verbs ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{quotas}, Verbs: verbs}}
}

func clusterRole(ctx context.Context, name string, rules []rbacv1.PolicyRule) string {
	GinkgoHelper()
	Expect(admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: builders.Meta("", name), Rules: rules})).To(Succeed())
	return name
}

// granted gives a user a ClusterRole in a namespace, and returns the user's client.
// It takes effect a moment later.
func granted(ctx context.Context, namespace, role, user string) client.WithWatch {
	GinkgoHelper()
	Expect(admin.Create(ctx, bindingOf(namespace, role, user))).To(Succeed())
	return as(user)
}

func bindingOf(namespace, role, user string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: builders.Meta(namespace, role+"-"+user),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

// grantedEverywhere gives a user a ClusterRole in all namespaces.
func grantedEverywhere(ctx context.Context, role, user string) client.WithWatch {
	GinkgoHelper()
	binding := bindingOf("", role, user)
	everywhere := &rbacv1.ClusterRoleBinding{ObjectMeta: binding.ObjectMeta, RoleRef: binding.RoleRef, Subjects: binding.Subjects}
	Expect(admin.Create(ctx, everywhere)).To(Succeed())
	return as(user)
}

// eventuallyCreates succeeds once the user's rights have taken effect.
func eventuallyCreates(ctx context.Context, by client.Client, namespace, name string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error { return by.Create(ctx, native(namespace, name)) }).Should(Succeed())
}

// eventuallyMisnames succeeds once the user's rights have taken effect and are found
// not to suffice.
func eventuallyMisnames(ctx context.Context, by client.Client, namespace, name string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error { return by.Create(ctx, native(namespace, name)) }).Should(beMisnamed(name))
}

var _ = Describe("The right to write ResourceQuotas", Label("owners"), func() {
	var in string

	BeforeEach(func(ctx SpecContext) {
		run(ctx)
		in = "right-" + rand.String(5)
		mustCreate(ctx, builders.Namespace(in).Obj())
	})

	It("is not a plain admin's, nor passed on by one", func(ctx SpecContext) {
		plain := granted(ctx, in, "admin", "admin-of-"+in)
		Eventually(ctx, func(ctx context.Context) error { return plain.Create(ctx, builders.ConfigMap(in, "settings")) }).Should(Succeed())
		Expect(admin.Create(ctx, native(in, "default"))).To(Succeed())
		Expect(plain.Create(ctx, native(in, "terminating"))).To(suite.BeForbidden("create", quotas))
		Expect(apply(ctx, plain, native(in, "default"))).To(suite.BeForbidden("patch", quotas))
		Expect(plain.Update(ctx, native(in, "default"))).To(suite.BeForbidden("update", quotas))
		Expect(plain.Delete(ctx, native(in, "default"))).To(suite.BeForbidden("delete", quotas))
		Expect(plain.Create(ctx, bindingOf(in, projectOwner, "admin-of-"+in))).To(beBeyondTheirs())
	})

	It("is passed on by a project owner as it is, and not extended", func(ctx SpecContext) {
		owner := owning(ctx, in)
		Expect(owner.Create(ctx, bindingOf(in, projectOwner, "colleague"))).To(Succeed())
		eventuallyCreates(ctx, as("colleague"), in, "best-effort")
		Expect(owner.Create(ctx, bindingOf(in, "cluster-admin", "owner-of-"+in))).To(beBeyondTheirs())
		Expect(owner.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: builders.Meta("", "everywhere"), RoleRef: bindingOf("", projectOwner, "").RoleRef,
		})).To(suite.BeForbidden("create", "clusterrolebindings"))
		for _, verb := range []string{"update", "patch", "delete", "deletecollection", "*"} {
			more := builders.Role(in, "more")
			more.Rules = allowing(verb)
			Expect(owner.Create(ctx, more)).To(beBeyondTheirs(), verb)
		}
	})

	It("is not extended by passing on a part of it to a ServiceAccount", func(ctx SpecContext) {
		owner := owning(ctx, in)
		part := builders.Role(in, "part")
		part.Rules = allowing("create")
		Expect(owner.Create(ctx, part)).To(Succeed())
		binding := bindingOf(in, "part", "robot")
		binding.RoleRef.Kind = "Role"
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: in, Name: "robot"}}
		Expect(owner.Create(ctx, binding)).To(Succeed())
		robot := as("system:serviceaccount:"+in+":robot", "system:serviceaccounts", "system:serviceaccounts:"+in)
		eventuallyMisnames(ctx, robot, in, "other")
	})

	It("is not extended by being granted in all namespaces", func(ctx SpecContext) {
		everywhere := grantedEverywhere(ctx, projectOwner, "owner-of-all")
		eventuallyCreates(ctx, everywhere, in, "default")
		Expect(everywhere.Create(ctx, native(in, "other"))).To(beMisnamed("other"))
	})

	It("is not interrupted when all is installed once more", func(ctx SpecContext) {
		again := suite.Kubectl(ctx, cluster, "apply", "-k", "config/default")
		Expect(again).To(ContainSubstring("clusterrole.rbac.authorization.k8s.io/project-owner unchanged"))
	})

	It("is left to who may create quotas in all namespaces, and do nothing else with them", func(ctx SpecContext) {
		provisioner := grantedEverywhere(ctx, clusterRole(ctx, "provisioner", allowing("create")), "provisioner")
		for _, name := range []string{"other", "default"} {
			eventuallyCreates(ctx, provisioner, in, name)
		}
		limiting := native(in, "limiting")
		limiting.Spec.Hard[quotas] = native(in, "").Spec.Hard["pods"]
		Expect(provisioner.Create(ctx, limiting)).To(Succeed())
	})

	It("is left to cluster administrators, as far as RBAC knows them or not", func(ctx SpecContext) {
		for name, by := range map[string]client.Client{
			"by-rbac": grantedEverywhere(ctx, "cluster-admin", "chief"), "by-certificate": admin,
		} {
			eventuallyCreates(ctx, by, in, name)
			quota := native(in, name)
			Expect(by.Patch(ctx, quota, suite.Merge(`{"spec":{"hard":{"resourcequotas":"10"}}}`))).To(Succeed())
			Expect(by.Delete(ctx, quota)).To(Succeed())
		}
	})

	It("is left to who may create and update all in one namespace, and is a project owner's without the latter", func(ctx SpecContext) {
		steward := granted(ctx, in, clusterRole(ctx, "steward", allowing("create", "update")), "steward")
		eventuallyCreates(ctx, steward, in, "other")
		creator := granted(ctx, in, clusterRole(ctx, "creator", allowing("create")), "creator")
		eventuallyMisnames(ctx, creator, in, "another")
	})
})
