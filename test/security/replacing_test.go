// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// replace creates pods in the names of the controllers whose pods may replace others: the operator looks at their workloads.
func replace(ctx context.Context) {
	GinkgoHelper()
	const rolls, node = "rolls", "node"
	machine := schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"}
	migration := schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstanceMigration"}
	definitions := []client.Object{
		builders.CustomResource(machine, "virtualmachineinstances"), builders.CustomResource(migration, "virtualmachineinstancemigrations"),
	}
	mustCreate(ctx, builders.Namespace(rolls).Label("team", rolls).Obj())
	mustCreate(ctx, definitions...)
	enforced(ctx, builders.Quota(rolls).Label("team", rolls).Hard("pods", "0").Surge("pods", "1"))

	made := workloads(rolls)
	set, deployment := made["ReplicaSet"], made["Deployment"]
	mustCreate(ctx, deployment)
	set.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))})
	vm, move := builders.Custom(machine, rolls, "vm"), builders.Custom(migration, rolls, "move")
	for _, object := range []*unstructured.Unstructured{vm, move} {
		Eventually(ctx, func(ctx context.Context) error { return admin.Create(ctx, object) }).Should(Succeed())
	}
	mustCreate(ctx, set, made["DaemonSet"], made["Job"])
	for user, owner := range map[string]metav1.OwnerReference{
		"system:serviceaccount:kube-system:replicaset-controller": *metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
		"system:serviceaccount:kube-system:daemon-set-controller": *metav1.NewControllerRef(made["DaemonSet"], appsv1.SchemeGroupVersion.WithKind("DaemonSet")),
		"system:serviceaccount:kube-system:job-controller":        *metav1.NewControllerRef(made["Job"], batchv1.SchemeGroupVersion.WithKind("Job")),
		"system:serviceaccount:kubevirt:kubevirt-controller":      *metav1.NewControllerRef(vm, machine),
	} {
		pod := builders.Pod(rolls, "replaces").OnNode(node, 0).Obj()
		owner.BlockOwnerDeletion = ptr.To(false)
		pod.OwnerReferences = []metav1.OwnerReference{owner}
		pod.Labels = map[string]string{"kubevirt.io/migrationJobUID": string(move.GetUID())}
		pod.Annotations = map[string]string{"kubevirt.io/migrationJobName": move.GetName()}
		Expect(powerful(user).Create(ctx, pod)).To(suite.BeExceeded(rolls, "pods"), user)
	}
	for _, object := range []client.Object{set, deployment, made["DaemonSet"], made["Job"]} {
		Expect(admin.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	}
	Expect(admin.Delete(ctx, builders.Quota(rolls).Obj())).To(Succeed())
	for _, definition := range definitions { // other specs count all kinds that are served
		Expect(admin.Delete(ctx, definition)).To(Succeed())
		Eventually(ctx, suite.Gone(admin, definition)).Should(BeTrue())
	}
}
