// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// Replicas run the operator's Deployment, however it was installed. One goroutine uses them.
type Replicas struct {
	*harness.Production
	// Running are those that weren't ended.
	Running []*harness.Operator

	// binary is an image of the operator -> the program in it.
	binary func(image string) string
	// args are further arguments, in place of what a kubelet mounts.
	args []string
	// address is that of the next replica.
	address int
}

// RunReplicas runs as many replicas as the Deployment of a namespace says, and returns once the
// API server knows them. The cluster was started with Production.
func RunReplicas(
	ctx context.Context, cluster *harness.Cluster, namespace string, binary func(image string) string, args ...string,
) *Replicas {
	GinkgoHelper()
	production, err := cluster.StartProduction(ctx, namespace, Deployment, WebhookService)
	Expect(err).NotTo(HaveOccurred())
	r := &Replicas{Production: production, binary: binary, args: args}
	live := &appsv1.Deployment{}
	Expect(Client(cluster.Config(), Deadline).Get(ctx, client.ObjectKey{Namespace: namespace, Name: Deployment}, live)).To(Succeed())
	for range ptr.Deref(live.Spec.Replicas, 0) {
		r.add(ctx)
	}
	return r
}

// add starts a replica of the Deployment's image, and returns once the API server knows it.
func (r *Replicas) add(ctx context.Context) {
	GinkgoHelper()
	replica, err := r.Start(ctx, harness.ReplicaOptions{
		Binary: r.binary(r.Image()), Address: harness.Address(r.address),
		Args: append(slices.Clone(r.args), "--shutdown-delay-duration=1s"),
	})
	Expect(err).NotTo(HaveOccurred())
	r.address = (r.address + 1) % harness.Addresses
	r.Running = append(r.Running, replica)
	Eventually(r.Ready).Should(ConsistOf(r.Running))
}

// Roll replaces the replicas one by one by those of the Deployment as it is now, and calls between after
// each.
func (r *Replicas) Roll(ctx context.Context, between func()) {
	GinkgoHelper()
	Expect(r.Reload(ctx)).To(Succeed())
	for range len(r.Running) {
		r.add(ctx)
		Expect(r.Stop(r.Running[0])).To(Succeed())
		r.Running = r.Running[1:]
		between()
	}
}

// End ends all replicas, as the deletion of their pods does.
func (r *Replicas) End() {
	GinkgoHelper()
	for _, replica := range r.Running {
		Expect(r.Stop(replica)).To(Succeed())
	}
	r.Running = nil
	r.Close()
}

// EndWithoutRights is End after their rights were taken from them. A leader that can't renew its lease
// may have ended by itself.
func (r *Replicas) EndWithoutRights() {
	GinkgoHelper()
	for _, replica := range r.Running {
		if err := r.Stop(replica); err != nil {
			Expect(err).To(MatchError(harness.ErrExited))
		}
	}
	r.Running = nil
	r.Close()
}
