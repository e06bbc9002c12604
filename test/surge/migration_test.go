// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package surge

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// kubeVirt is the user as which KubeVirt's controller creates pods.
const kubeVirt = "system:serviceaccount:kubevirt:kubevirt-controller"

var (
	machineKind   = schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"}
	migrationKind = schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstanceMigration"}
)

// launcher returns a pod of a virtual machine as KubeVirt makes it; that of a migration, if there is one.
func launcher(name string, machine, migration *unstructured.Unstructured) *corev1.Pod {
	pod := builders.Pod(machine.GetNamespace(), name).Obj()
	pod.Labels = map[string]string{"kubevirt.io/created-by": string(machine.GetUID())}
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "kubevirt.io/v1", Kind: machineKind.Kind, Name: machine.GetName(), UID: machine.GetUID(), Controller: ptr.To(true),
	}}
	if migration != nil {
		pod.Labels["kubevirt.io/migrationJobUID"] = string(migration.GetUID())
		pod.Annotations = map[string]string{"kubevirt.io/migrationJobName": migration.GetName()}
	}
	return pod
}

var _ = Describe("The migration of a virtual machine", func() {
	It("takes surge for its target, if KubeVirt creates that, and only while it is under way", func(ctx SpecContext) {
		suite.Create(ctx, admin,
			builders.CustomResource(machineKind, "virtualmachineinstances"),
			builders.CustomResource(migrationKind, "virtualmachineinstancemigrations"),
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "kubevirt"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: kubeVirt}},
			})
		p := placeOf(ctx, builders.Quota("migrated").Hard("pods", "1").Surge("pods", "2"))
		config := rest.CopyConfig(cluster.Config())
		config.Impersonate.UserName = kubeVirt
		controller := suite.Client(config, suite.Deadline)
		machine, migration := builders.Custom(machineKind, p.name, "vm"), builders.Custom(migrationKind, p.name, "move")
		Expect(unstructured.SetNestedField(migration.Object, "vm", "spec", "vmiName")).To(Succeed())
		for _, object := range []client.Object{machine, migration} {
			Eventually(ctx, func(ctx context.Context) error { return admin.Create(ctx, object) }).Should(Succeed())
		}
		Expect(controller.Create(ctx, launcher("source", machine, nil))).To(Succeed())

		refused := MatchError(ContainSubstring("exceeded quota: migrated"))
		Expect(admin.Create(ctx, launcher("forged", machine, migration))).To(refused)
		Expect(controller.Create(ctx, launcher("another", machine, nil))).To(refused)
		Expect(controller.Create(ctx, launcher("target", machine, migration))).To(Succeed())
		Expect(controller.Create(ctx, launcher("second", machine, migration))).To(refused)
		Eventually(ctx, func() string { return p.exceeded(ctx) }).Should(ContainSubstring("VirtualMachineInstance migrated/vm since "))

		over := builders.Custom(migrationKind, p.name, "over")
		Expect(unstructured.SetNestedField(over.Object, "vm", "spec", "vmiName")).To(Succeed())
		Expect(unstructured.SetNestedField(over.Object, "Succeeded", "status", "phase")).To(Succeed())
		Expect(admin.Create(ctx, over)).To(Succeed())
		Expect(controller.Create(ctx, launcher("late", machine, over))).To(refused)
	})
})
