// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// queue is the name of a namespace, and of the quota for which workloads wait there.
const queue = "queue"

// workloads are one of each kind that is woken. Their controllers create nothing.
func workloads() map[string]client.Object {
	controller := builders.ReplicationController(queue, "rc")
	return map[string]client.Object{
		"v1 ReplicationController": controller,
		"apps/v1 ReplicaSet":       builders.ReplicaSet(queue, "rs"),
		"apps/v1 Deployment":       builders.Deployment(queue, "deployment", 0),
		"apps/v1 StatefulSet":      builders.StatefulSet(queue, "sts"),
		"apps/v1 DaemonSet": &appsv1.DaemonSet{
			ObjectMeta: builders.Meta(queue, "ds"),
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: controller.Spec.Selector}, Template: *controller.Spec.Template,
			},
		},
		"batch/v1 Job":     builders.Job(queue, "job"),
		"batch/v1 CronJob": builders.CronJob(queue, "cron"),
	}
}

// refuseWorkloads lets a pod of each kind of workload be refused, and then makes room. It returns the workloads.
func refuseWorkloads(ctx context.Context) []client.Object {
	GinkgoHelper()
	mustCreate(ctx, builders.Namespace(queue).Label("team", queue).Obj())
	quota := builders.Quota(queue).Label("team", queue).Hard("pods", "0").Obj()
	mustCreate(ctx, quota)
	suite.WaitUntilEnforced(ctx, admin, quota.Name)
	var waiting []client.Object
	for kind, workload := range workloads() {
		mustCreate(ctx, workload)
		waiting = append(waiting, workload)
		Expect(createPodOf(ctx, kind, waiting, workload.GetName())).To(MatchError(ContainSubstring("exceeded quota: "+queue)), kind)
	}
	Eventually(ctx, func(ctx context.Context) (*quotav1.WaitingOwners, error) {
		err := admin.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		return quota.Status.Waiting, err
	}).Should(HaveField("Owners", BeEquivalentTo(len(waiting))))
	Eventually(ctx, func(ctx context.Context) error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		quota.Spec.Quota.Hard[corev1.ResourcePods] = builders.Quota("").Hard("pods", "9").Obj().Spec.Quota.Hard[corev1.ResourcePods]
		return admin.Update(ctx, quota)
	}).Should(Succeed())
	return waiting
}

// createPodOf creates a pod that the workload of a name controls, which is one of them.
func createPodOf(ctx context.Context, kind string, workloads []client.Object, name string) error {
	at := slices.IndexFunc(workloads, func(workload client.Object) bool { return workload.GetName() == name })
	owner := metav1.OwnerReference{Name: name, UID: workloads[at].GetUID(), Controller: ptr.To(true)}
	owner.APIVersion, owner.Kind = split(kind)
	pod := builders.Pod(queue, "of-"+name).Obj()
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	return admin.Create(ctx, pod)
}

func split(kind string) (version, name string) {
	for i := range kind {
		if kind[i] == ' ' {
			return kind[:i], kind[i+1:]
		}
	}
	return "", kind
}

// room returns what each workload's annotation says, without those that have none.
func room(workloads []client.Object) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var times []string
		for _, workload := range workloads {
			if err := admin.Get(ctx, client.ObjectKeyFromObject(workload), workload); err != nil {
				return nil, err
			}
			if at, woken := workload.GetAnnotations()[quotav1.RoomAnnotation]; woken {
				times = append(times, at)
			}
		}
		return times, nil
	}
}

var _ = Describe("The operator that doesn't wake workloads", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		begin(ctx, "config/no-wake", "--wake-owners=false")
	})

	It("leaves those that wait alone", func(ctx SpecContext) {
		waiting := refuseWorkloads(ctx)
		Consistently(ctx, room(waiting)).WithTimeout(3 * time.Second).Should(BeEmpty())
	})

	It("may not change them", func(ctx SpecContext) {
		Expect(may(ctx, authorizationv1.ResourceAttributes{
			Verb: "patch", Group: "apps", Resource: "replicasets", Subresource: "status", Namespace: queue, Name: "rs",
		})).To(BeFalse())
	})

	It("is forbidden nothing that it asks for", func() { Expect(forbidden()).To(BeEmpty()) })
})
