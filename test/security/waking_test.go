// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// workloads are one of each kind that the operator wakes. Their controllers create nothing.
func workloads(namespace string) map[string]client.Object {
	controller := builders.ReplicationController(namespace, "replicationcontroller")
	return map[string]client.Object{
		"ReplicationController": controller,
		"ReplicaSet":            builders.ReplicaSet(namespace, "replicaset"),
		"Deployment":            builders.Deployment(namespace, "deployment", 0),
		"StatefulSet":           builders.StatefulSet(namespace, "statefulset"),
		"DaemonSet": &appsv1.DaemonSet{ObjectMeta: builders.Meta(namespace, "daemonset"), Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: controller.Spec.Selector}, Template: *controller.Spec.Template,
		}},
		"Job":     builders.Job(namespace, "job"),
		"Pod":     builders.Pod(namespace, "pod").EphemeralVolume("data", "1Gi").Obj(),
		"CronJob": builders.CronJob(namespace, "cronjob"),
	}
}

// statusOf returns a status that the API server accepts of a kind of workload.
func statusOf(kind string) string {
	switch kind {
	case "Job":
		return `{"terminating":1}`
	case "CronJob":
		return `{"lastScheduleTime":"2026-01-01T00:00:00Z"}`
	default:
		return `{"observedGeneration":7}`
	}
}

// beKeptFromMore matches the answer to an operator that would change more than it has to.
func beKeptFromMore(kind string) gomegatypes.GomegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(
		"the shared quota operator may change nothing of %s %s but the annotation %s", kind, strings.ToLower(kind), quotav1.RoomAnnotation)))
}

var _ = Describe("Workloads that the operator wakes", Label("protection"), Ordered, func() {
	// operator has the operator's name and, unlike it, all rights by RBAC.
	var operator client.Client

	patch := func(ctx context.Context, by client.Client, object client.Object, patch string) error {
		return by.Status().Patch(ctx, object, suite.Merge(patch))
	}
	room := fmt.Sprintf(`{"metadata":{"annotations":{%q:"2026-01-01T00:00:00Z"}}}`, quotav1.RoomAnnotation)
	another := `{"metadata":{"annotations":{"another":"yes"}}}`
	// That of a Deployment takes no labels.
	label := `{"metadata":{"labels":{"mine":"yes"}}}`

	BeforeAll(func(ctx SpecContext) {
		run(ctx)
		operator = powerful(suite.User)
	})

	It("get no claims from it but those of pods", func(ctx SpecContext) {
		claim := builders.VolumeClaim(corev1.NamespaceDefault, "pod-data").Obj()
		create := func(ctx context.Context) error { return operator.Create(ctx, claim.DeepCopy(), client.DryRunAll) }
		Eventually(ctx, create).Should(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("no PersistentVolumeClaim but those"))))
		claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "pod", UID: "u", Controller: ptr.To(true)}}
		Expect(create(ctx)).To(Succeed())
		claim.OwnerReferences[0].Name = "another"
		Expect(create(ctx)).To(Satisfy(apierrors.IsForbidden))
	})

	// To compare annotations takes the API server time that grows with the square of their number.
	It("aren't woken if they have more annotations than are compared", func(ctx SpecContext) {
		many := builders.ReplicaSet(corev1.NamespaceDefault, "many")
		many.Annotations = map[string]string{}
		for i := range 1000 {
			many.Annotations[fmt.Sprint("a", i)] = ""
		}
		Expect(admin.Create(ctx, many)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, many))).To(Succeed()) })
		Eventually(ctx, func(ctx context.Context) error { return patch(ctx, operator, many, room) }).Should(And(
			Satisfy(apierrors.IsInvalid), MatchError(ContainSubstring("wakes no workload of more than 1000 annotations, such as ReplicaSet many"))))
		Expect(patch(ctx, admin, many, `{"metadata":{"annotations":{"a0":null}}}`)).To(Succeed())
		Expect(patch(ctx, operator, many, room)).To(Succeed())
	})

	for kind, object := range workloads(corev1.NamespaceDefault) {
		It("can be woken, and nothing else: "+kind, func(ctx SpecContext) {
			object.SetAnnotations(map[string]string{"theirs": "yes"})
			Expect(admin.Create(ctx, object)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, object))).To(Succeed()) })
			// A policy takes effect a moment after it was stored.
			Eventually(ctx, func(ctx context.Context) error {
				return operator.Status().Patch(ctx, object, suite.Merge(another), client.DryRunAll)
			}).Should(beKeptFromMore(kind))

			Expect(patch(ctx, operator, object, room)).To(Succeed())
			Expect(object.GetAnnotations()).To(And(HaveKey(quotav1.RoomAnnotation), HaveKey("theirs")))
			harms := []string{
				another,
				`{"metadata":{"annotations":{"theirs":"no"}}}`,
				`{"metadata":{"annotations":{"theirs":null}}}`,
				`{"metadata":{"finalizers":["example.com/mine"]}}`,
				`{"status":` + statusOf(kind) + `}`,
			}
			if kind != "Deployment" {
				harms = append(harms, label)
			}
			if kind != "Pod" { // that of a Pod takes no owners
				harms = append(harms, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"u"}]}}`)
			}
			for _, more := range harms {
				Expect(patch(ctx, operator, object, more)).To(beKeptFromMore(kind), more)
			}
			Expect(operator.Status().Patch(ctx, object, suite.Merge(`{"metadata":{"annotations":null}}`))).To(beKeptFromMore(kind))

			// Others may do all that, so it is the policy that keeps the operator from it.
			for _, more := range harms {
				if !strings.Contains(more, "finalizers") && !strings.Contains(more, "ownerReferences") {
					Expect(patch(ctx, admin, object, more)).To(Succeed(), more)
				}
			}
			Expect(object.GetAnnotations()).To(HaveKey("another"))
			if kind == "Deployment" {
				Expect(object.GetLabels()).NotTo(HaveKeyWithValue("mine", "yes"))
			} else {
				Expect(object.GetLabels()).To(HaveKeyWithValue("mine", "yes"))
			}
		})
	}
})
