// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// Replicas run the operator's Deployment, however it was installed. One goroutine uses them.
type Replicas struct {
	*harness.Production
	// Running are those that weren't ended.
	Running []*harness.Operator
	// Args are further arguments of replicas that start from now on, and Config is how they reach
	// the API server; nil: directly.
	Args   []string
	Config *rest.Config
	// Clock is by how much the clocks of those are wrong.
	Clock time.Duration

	// binary is an image of the operator -> the program in it.
	binary func(image string) string
	// address is that of the next replica.
	address int
}

// RunReplicas runs as many replicas as the Deployment of a namespace says, with further arguments, and returns
// once the API server knows them. The cluster was started with Production.
func RunReplicas(
	ctx context.Context, cluster *harness.Cluster, namespace string, binary func(image string) string, args ...string,
) *Replicas {
	GinkgoHelper()
	production, err := cluster.StartProduction(ctx, namespace, Deployment, WebhookService)
	Expect(err).NotTo(HaveOccurred())
	r := &Replicas{Production: production, binary: binary, Args: args}
	live := &appsv1.Deployment{}
	Expect(Client(cluster.Config(), Deadline).Get(ctx, client.ObjectKey{Namespace: namespace, Name: Deployment}, live)).To(Succeed())
	r.Scale(ctx, int(ptr.Deref(live.Spec.Replicas, 0)))
	return r
}

// Scale starts replicas of the Deployment's image until so many run, at once, and returns once the API server knows them.
func (r *Replicas) Scale(ctx context.Context, count int) {
	GinkgoHelper()
	var starting errgroup.Group
	replicas := make([]*harness.Operator, max(0, count-len(r.Running)))
	for i := range replicas {
		options := harness.ReplicaOptions{
			Binary: r.binary(r.Image()), Address: r.NextAddress(), Config: r.Config, Clock: r.Clock,
			Args: append([]string{"--shutdown-delay-duration=1s"}, r.Args...),
		}
		r.address++
		starting.Go(func() (err error) {
			replicas[i], err = r.Start(ctx, options)
			return err
		})
	}
	Expect(starting.Wait()).To(Succeed())
	r.Running = append(r.Running, replicas...)
	r.WaitUntilReady()
}

// NextAddress is that of the replica that starts next. Addresses take turns, because an API server may still
// remember the last one.
func (r *Replicas) NextAddress() string { return harness.Address(r.address % harness.Addresses) }

// Add starts one more replica of the Deployment's image, and returns once the API server knows it.
func (r *Replicas) Add(ctx context.Context) *harness.Operator {
	GinkgoHelper()
	r.Scale(ctx, len(r.Running)+1)
	return r.Running[len(r.Running)-1]
}

// WaitUntilReady returns once those that run, and no others, are ready by the EndpointSlice.
func (r *Replicas) WaitUntilReady() {
	GinkgoHelper()
	Eventually(r.Ready).Should(ConsistOf(r.Running))
}

// Stop ends a replica as the deletion of its pod does.
func (r *Replicas) Stop(replica *harness.Operator) {
	GinkgoHelper()
	r.forget(replica)
	Expect(r.Production.Stop(replica)).To(Succeed())
}

// Kill ends a replica as a crash does.
func (r *Replicas) Kill(replica *harness.Operator) {
	GinkgoHelper()
	r.forget(replica)
	Expect(replica.Kill()).To(Succeed())
}

// WaitUntilEnded returns once a replica has ended by itself.
func (r *Replicas) WaitUntilEnded(replica *harness.Operator) {
	GinkgoHelper()
	Eventually(replica.Done()).Should(BeClosed())
	r.forget(replica)
	Expect(replica.Kill()).To(MatchError(harness.ErrExited))
}

func (r *Replicas) forget(replica *harness.Operator) {
	r.Running = slices.DeleteFunc(r.Running, func(one *harness.Operator) bool { return one == replica })
}

// Roll replaces the replicas one by one by those of the Deployment as it is now, and calls between after
// each.
func (r *Replicas) Roll(ctx context.Context, between func()) {
	GinkgoHelper()
	Expect(r.Reload(ctx)).To(Succeed())
	for range len(r.Running) {
		r.Add(ctx)
		r.Stop(r.Running[0])
		between()
	}
}

// StopAll ends all replicas, as the deletion of their pods does.
func (r *Replicas) StopAll() {
	GinkgoHelper()
	for len(r.Running) > 0 {
		r.Stop(r.Running[0])
	}
}

// End is StopAll for good.
func (r *Replicas) End() {
	GinkgoHelper()
	r.StopAll()
	r.Close()
}

// EndWithoutRights is End after their rights were taken from them. A leader that can't renew its lease
// may have ended by itself.
func (r *Replicas) EndWithoutRights() {
	GinkgoHelper()
	for _, replica := range r.Running {
		if err := r.Production.Stop(replica); err != nil {
			Expect(err).To(MatchError(harness.ErrExited))
		}
	}
	r.Running = nil
	r.Close()
}
