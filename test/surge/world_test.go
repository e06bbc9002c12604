// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package surge

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// rolled is how long rollouts may take that have to wait for each other's surge.
const rolled = time.Minute

// place is a team with a namespace, which has the name of its quota.
type place struct{ name string }

// placeOf makes a place under a quota for it.
func placeOf(ctx context.Context, quota *builders.QuotaBuilder) place {
	GinkgoHelper()
	name := quota.Obj().Name
	Expect(admin.Create(ctx, builders.Namespace(name).Label("team", name).Obj())).To(Succeed())
	Expect(admin.Create(ctx, quota.Label("team", name).Obj())).To(Succeed())
	suite.WaitUntilEnforced(ctx, admin, name)
	return place{name: name}
}

// deployment returns one that has a pod more while it rolls, and never one less.
func (p place) deployment(name string, replicas int32) *appsv1.Deployment {
	made := builders.Deployment(p.name, name, replicas)
	labels := map[string]string{"app": name}
	made.Spec.Selector, made.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	made.Spec.Strategy = appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
		},
	}
	return made
}

// runs makes Deployments, and waits for their pods.
func (p place) runs(ctx context.Context, deployments ...*appsv1.Deployment) {
	GinkgoHelper()
	for _, one := range deployments {
		Expect(admin.Create(ctx, one.DeepCopy())).To(Succeed())
	}
	for _, one := range deployments {
		Eventually(ctx, func() int32 { return p.read(ctx, one.Name).Status.AvailableReplicas }).Should(Equal(*one.Spec.Replicas))
	}
}

func (p place) read(ctx context.Context, name string) *appsv1.Deployment {
	GinkgoHelper()
	current := &appsv1.Deployment{}
	Expect(admin.Get(ctx, types.NamespacedName{Namespace: p.name, Name: name}, current)).To(Succeed())
	return current
}

// rolls has a Deployment replace its pods.
func (p place) rolls(ctx context.Context, name string) {
	GinkgoHelper()
	change := `{"spec":{"template":{"metadata":{"annotations":{"restarted":"` + time.Now().String() + `"}}}}}`
	Expect(admin.Patch(ctx, builders.Deployment(p.name, name, 0), client.RawPatch(types.MergePatchType, []byte(change)))).To(Succeed())
}

// isRolled reports whether all pods of a Deployment are as it is now.
func (p place) isRolled(ctx context.Context, name string) bool {
	GinkgoHelper()
	one := p.read(ctx, name)
	return one.Status.ObservedGeneration == one.Generation && one.Status.UpdatedReplicas == *one.Spec.Replicas &&
		one.Status.Replicas == *one.Spec.Replicas && one.Status.AvailableReplicas == *one.Spec.Replicas
}

// quota returns the quota as it is now.
func (p place) quota(ctx context.Context) *quotav1.ClusterResourceQuota {
	GinkgoHelper()
	quota := &quotav1.ClusterResourceQuota{}
	Expect(admin.Get(ctx, types.NamespacedName{Name: p.name}, quota)).To(Succeed())
	return quota
}

// exceeded returns the condition's reason and message.
func (p place) exceeded(ctx context.Context) string {
	GinkgoHelper()
	condition := meta.FindStatusCondition(p.quota(ctx).Status.Conditions, quotav1.ConditionExceeded)
	if condition == nil {
		return ""
	}
	return condition.Reason + ": " + condition.Message
}

// most notes how many pods of a place there are at once at most, in the order in which they come and go.
type most struct {
	mu   sync.Mutex // guards the fields below
	pods map[types.UID]bool
	most int
}

// watches counts the pods until the spec ends.
func (p place) watches(ctx context.Context) *most {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	pods := &corev1.PodList{}
	Expect(admin.List(ctx, pods, client.InNamespace(p.name))).To(Succeed())
	noted := &most{pods: map[types.UID]bool{}}
	for i := range pods.Items {
		noted.see(watch.Added, &pods.Items[i])
	}
	since := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: pods.ResourceVersion}}
	events, err := admin.Watch(ctx, &corev1.PodList{}, client.InNamespace(p.name), since)
	Expect(err).NotTo(HaveOccurred())
	done := make(chan struct{})
	DeferCleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		defer events.Stop()
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				noted.see(event.Type, pod)
			}
		}
	}()
	return noted
}

func (m *most) see(kind watch.EventType, pod *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kind == watch.Deleted {
		delete(m.pods, pod.UID)
	} else {
		m.pods[pod.UID] = true
	}
	m.most = max(m.most, len(m.pods))
}

func (m *most) ever() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most
}

// names returns so many names.
func names(number int) (all []string) {
	for i := range number {
		all = append(all, fmt.Sprintf("web-%d", i))
	}
	return all
}

// pods returns how many pods there are.
func (p place) pods(ctx context.Context) (int, error) {
	list := &corev1.PodList{}
	err := admin.List(ctx, list, client.InNamespace(p.name))
	return len(list.Items), err
}

// runsUnready makes a Deployment whose pods never become ready.
func (p place) runsUnready(ctx context.Context, one *appsv1.Deployment) {
	GinkgoHelper()
	Expect(admin.Create(ctx, one)).To(Succeed())
	Eventually(ctx, func() int32 { return p.read(ctx, one.Name).Status.Replicas }).Should(Equal(*one.Spec.Replicas))
}

// daemon makes a DaemonSet with a pod on the node, has that run, and has it replaced.
func (p place) daemon(ctx context.Context) {
	GinkgoHelper()
	labels := map[string]string{"app": "agent"}
	set := &appsv1.DaemonSet{ObjectMeta: builders.Meta(p.name, "agent"), Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: builders.Pod("", "").Obj().Spec},
		UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
			Type: appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{
				MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
			},
		},
	}}
	Expect(admin.Create(ctx, set)).To(Succeed())
	Eventually(ctx, p.pods).Should(Equal(1))
	p.runsOnNode(ctx)
	Eventually(ctx, func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		set.Spec.Template.Annotations = map[string]string{"restarted": "yes"}
		return admin.Update(ctx, set)
	}).Should(Succeed())
}

// runsOnNode makes the only pod run on the node, and be ready.
func (p place) runsOnNode(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(admin.List(ctx, pods, client.InNamespace(p.name))).To(Succeed())
	Expect(pods.Items).To(HaveLen(1))
	pod := &pods.Items[0]
	Expect(admin.SubResource("binding").Create(ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "node"}})).To(Succeed())
	Eventually(ctx, func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		return admin.Status().Update(ctx, pod)
	}).Should(Succeed())
	return pod
}
