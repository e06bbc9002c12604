// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package protection

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// workload is one of a kind that the operator wakes, and a status that the API server accepts of it.
type workload struct {
	object client.Object
	status string
}

func workloads() map[string]workload {
	const generation = `{"observedGeneration":7}`
	in := corev1.NamespaceDefault
	controller := builders.ReplicationController(in, "work")
	daemon := &appsv1.DaemonSet{ObjectMeta: builders.Meta(in, "work"), Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: controller.Spec.Selector}, Template: *controller.Spec.Template,
	}}
	return map[string]workload{
		"ReplicationController": {controller, generation},
		"ReplicaSet":            {builders.ReplicaSet(in, "work"), generation},
		"Deployment":            {builders.Deployment(in, "work", 0), generation},
		"StatefulSet":           {builders.StatefulSet(in, "work"), generation},
		"DaemonSet":             {daemon, generation},
		"Job":                   {builders.Job(in, "work"), `{"terminating":1}`},
		"CronJob":               {builders.CronJob(in, "work"), `{"lastScheduleTime":"2026-01-01T00:00:00Z"}`},
	}
}

// beKeptFromMore matches the answer to an operator that would change more than it has to.
func beKeptFromMore(kind string) gomegatypes.GomegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(
		"the shared quota operator may change nothing of %s work but the annotation %s", kind, quotav1.RoomAnnotation)))
}

var _ = Describe("Workloads that the operator wakes", Ordered, func() {
	// operator has the operator's name and, unlike it, all rights by RBAC.
	var operator client.Client

	patch := func(ctx context.Context, by client.Client, object client.Object, patch string) error {
		return by.Status().Patch(ctx, object, merge(patch))
	}
	room := fmt.Sprintf(`{"metadata":{"annotations":{%q:"2026-01-01T00:00:00Z"}}}`, quotav1.RoomAnnotation)
	another := `{"metadata":{"annotations":{"another":"yes"}}}`
	// That of a Deployment takes no labels.
	label := `{"metadata":{"labels":{"mine":"yes"}}}`

	BeforeAll(func(ctx SpecContext) {
		suite.Install(ctx, cluster) // another spec removes it
		operator = as(suite.User)
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

	for kind, workload := range workloads() {
		It("can be woken, and nothing else: "+kind, func(ctx SpecContext) {
			object := workload.object
			object.SetAnnotations(map[string]string{"theirs": "yes"})
			Expect(admin.Create(ctx, object)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, object))).To(Succeed()) })
			// A policy takes effect a moment after it was stored.
			Eventually(ctx, func(ctx context.Context) error {
				return operator.Status().Patch(ctx, object, merge(another), client.DryRunAll)
			}).Should(beKeptFromMore(kind))

			Expect(patch(ctx, operator, object, room)).To(Succeed())
			Expect(object.GetAnnotations()).To(And(HaveKey(quotav1.RoomAnnotation), HaveKey("theirs")))
			harms := []string{
				another,
				`{"metadata":{"annotations":{"theirs":"no"}}}`,
				`{"metadata":{"annotations":{"theirs":null}}}`,
				`{"metadata":{"finalizers":["example.com/mine"]}}`,
				`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"u"}]}}`,
				`{"status":` + workload.status + `}`,
			}
			if kind != "Deployment" {
				harms = append(harms, label)
			}
			for _, more := range harms {
				Expect(patch(ctx, operator, object, more)).To(beKeptFromMore(kind), more)
			}
			Expect(operator.Status().Patch(ctx, object, merge(`{"metadata":{"annotations":null}}`))).To(beKeptFromMore(kind))

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
