// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"context"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	kinds, dropped, claims = "kinds", "dropped", "claims"
	replicaSets            = "count/replicasets.apps"
	jobs                   = "count/jobs.batch"
	volumeClaims           = "persistentvolumeclaims"
	deviceClaims           = "count/resourceclaims.resource.k8s.io"
)

// owners are workloads of the kinds that no crowd has, each of which wants one object.
func owners() []client.Object {
	controller := builders.ReplicationController(kinds, "controller")
	controller.Spec.Replicas = ptr.To[int32](1)
	template := *controller.Spec.Template.DeepCopy()
	template.Labels = map[string]string{"app": "daemon"}
	daemon := &appsv1.DaemonSet{
		ObjectMeta: builders.Meta(kinds, "daemon"),
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}
	cron := builders.CronJob(kinds, "cron")
	cron.Spec.Schedule = "* * * * *"
	cron.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent // or the job of the next minute would be refused, and wait
	return []client.Object{controller, daemon, cron}
}

// beginKinds lets these workloads be refused. A DaemonSet needs a node.
func beginKinds(ctx context.Context) {
	GinkgoHelper()
	suite.Node(ctx, admin, "node")
	Expect(admin.Create(ctx, builders.Namespace(kinds).Label("team", kinds).Obj())).To(Succeed())
	Expect(admin.Create(ctx, builders.Quota(kinds).Label("team", kinds).Hard("pods", "0").Hard(jobs, "0").Obj())).To(Succeed())
	suite.WaitUntilEnforced(ctx, admin, kinds)
	for _, owner := range owners() {
		Expect(admin.Create(ctx, owner)).To(Succeed())
	}
}

// beginDropped lets a Deployment be refused its ReplicaSet.
func beginDropped(ctx context.Context) {
	GinkgoHelper()
	Expect(admin.Create(ctx, builders.Namespace(dropped).Label("team", dropped).Obj())).To(Succeed())
	Expect(admin.Create(ctx, builders.Quota(dropped).Label("team", dropped).Hard(replicaSets, "0").Obj())).To(Succeed())
	suite.WaitUntilEnforced(ctx, admin, dropped)
	Expect(admin.Create(ctx, builders.Deployment(dropped, dropped, 1))).To(Succeed())
}

// beginClaims lets two pods be refused what is made for them: the claims of two volumes, and one of devices.
func beginClaims(ctx context.Context) {
	GinkgoHelper()
	Expect(admin.Create(ctx, builders.Namespace(claims).Label("team", claims).Obj())).To(Succeed())
	Expect(admin.Create(ctx, builders.Quota(claims).Label("team", claims).Hard(volumeClaims, "0").Hard(deviceClaims, "0").Obj())).To(Succeed())
	suite.WaitUntilEnforced(ctx, admin, claims)
	Expect(admin.Create(ctx, &resourceapi.ResourceClaimTemplate{
		ObjectMeta: builders.Meta(claims, "device"),
		Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: builders.DeviceClaim("", "").Exactly("fpga", 1).Obj().Spec},
	})).To(Succeed())
	for _, pod := range []*builders.PodBuilder{
		builders.Pod(claims, "volumes").EphemeralVolume("one", "1Gi").EphemeralVolume("two", "1Gi"),
		builders.Pod(claims, "devices").DevicesFrom("device"),
	} {
		Expect(admin.Create(ctx, pod.Obj())).To(Succeed())
	}
}

// raise makes room by a higher limit, and returns when.
func raise(ctx context.Context, name string, hard corev1.ResourceList) time.Time {
	GinkgoHelper()
	quota := &quotav1.ClusterResourceQuota{}
	Eventually(ctx, func(ctx context.Context) error {
		if err := admin.Get(ctx, types.NamespacedName{Name: name}, quota); err != nil {
			return err
		}
		quota.Spec.Quota.Hard = hard
		return admin.Update(ctx, quota)
	}).Should(Succeed())
	return time.Now()
}

// made returns how many objects of a kind a namespace has.
func made(list client.ObjectList, namespace string) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		err := admin.List(ctx, list, client.InNamespace(namespace))
		switch list := list.(type) {
		case *corev1.PodList:
			return len(list.Items), err
		case *corev1.PersistentVolumeClaimList:
			return len(list.Items), err
		case *resourceapi.ResourceClaimList:
			return len(list.Items), err
		case *batchv1.JobList:
			return len(list.Items), err
		case *appsv1.ReplicaSetList:
			return len(list.Items), err
		}
		return 0, err
	}
}

var _ = Describe("Every kind of workload", Ordered, func() {
	It("is woken when the limit is raised", func(ctx SpecContext) {
		// The CronJob is refused when its time has come.
		Eventually(ctx, waitingIn(kinds, kinds)).WithTimeout(90 * time.Second).Should(HaveLen(3))
		raise(ctx, kinds, builders.Quota("").Hard("pods", "2").Hard(jobs, "1").Obj().Spec.Quota.Hard)
		Eventually(ctx, made(&corev1.PodList{}, kinds)).WithTimeout(atOnce).Should(Equal(2))
		Eventually(ctx, made(&batchv1.JobList{}, kinds)).WithTimeout(atOnce).Should(Equal(1))
		Eventually(ctx, waitingIn(kinds, kinds)).Should(BeEmpty())
		for _, owner := range owners() {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(owner), owner)).To(Succeed())
			Expect(owner.GetAnnotations()).To(HaveKey(quotav1.RoomAnnotation), "%T", owner)
		}
	})

	// The controller of ephemeral volumes ignores changes of pods, and that of devices doesn't.
	It("is woken if it is a pod that waits for its claims", func(ctx SpecContext) {
		Eventually(ctx, waitingIn(claims, claims)).Should(ConsistOf(HavePrefix("Pod devices "), HavePrefix("Pod volumes ")))
		Eventually(ctx, func() time.Duration { return time.Since(began) }).WithTimeout(2 * refused).Should(BeNumerically(">", refused))
		raise(ctx, claims, builders.Quota("").Hard(volumeClaims, "2").Hard(deviceClaims, "1").Obj().Spec.Quota.Hard)
		Eventually(ctx, made(&corev1.PersistentVolumeClaimList{}, claims)).WithTimeout(atOnce).Should(Equal(2))
		Eventually(ctx, made(&resourceapi.ResourceClaimList{}, claims)).WithTimeout(atOnce).Should(Equal(1))
		Eventually(ctx, waitingIn(claims, claims)).Should(BeEmpty())
	})

	// The controller of Deployments tries 15 times, for three minutes, and then no more.
	It("is woken even if its controller has given it up", func(ctx SpecContext) {
		Eventually(ctx, func() (string, error) {
			log, err := os.ReadFile(controllers.Log())
			return string(log), err
		}).WithTimeout(4 * time.Minute).WithPolling(time.Second).Should(ContainSubstring("Dropping deployment out of the queue"))
		Expect(waiting(dropped)(ctx)).To(BeEquivalentTo(1))
		raise(ctx, dropped, builders.Quota("").Hard(replicaSets, "1").Obj().Spec.Quota.Hard)
		Eventually(ctx, made(&appsv1.ReplicaSetList{}, dropped)).WithTimeout(atOnce).Should(Equal(1))
		Eventually(ctx, made(&corev1.PodList{}, dropped)).WithTimeout(atOnce).Should(Equal(1))
	})
})
