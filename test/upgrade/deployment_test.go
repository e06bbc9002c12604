// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// deployment is two replicas of the operator behind a Service. It is used by one
// goroutine.
type deployment struct {
	balancer *harness.Balancer
	options  harness.OperatorOptions
	running  []*harness.Operator
}

func newDeployment(kubeconfig string) *deployment {
	GinkgoHelper()
	balancer, err := harness.NewBalancer()
	Expect(err).NotTo(HaveOccurred())
	return &deployment{balancer: balancer, options: harness.OperatorOptions{
		Kubeconfig: kubeconfig, LeaderElect: true, CertSecret: suite.CertSecret, StartTimeout: suite.Deadline,
		// A certificate in a Secret is for a name.
		WebhookURL: strings.Replace(balancer.URL(), "127.0.0.1", "localhost", 1),
		Args: []string{
			// In a shorter time, clients that send little may not have used each of their connections once more.
			"--namespace", suite.Namespace, "--shutdown-delay-duration", "3s",
			"--status-interval", "100ms", "--reservation-ttl", reservationTTL.String(),
		},
	}}
}

// add starts a replica of a release, and hands it calls once it is ready.
func (d *deployment) add(ctx context.Context, release string) {
	GinkgoHelper()
	options := d.options
	options.Binary = release
	replica, err := cluster.StartOperator(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	d.running = append(d.running, replica)
	d.serve()
}

// drop ends the oldest replica, once it is handed no more connections.
func (d *deployment) drop() {
	GinkgoHelper()
	oldest := d.running[0]
	d.balancer.Drain(oldest.WebhookPort)
	Expect(oldest.Stop()).To(Succeed())
	d.running = d.running[1:]
	d.serve()
}

func (d *deployment) serve() {
	ports := make([]int, 0, len(d.running))
	for _, replica := range d.running {
		ports = append(ports, replica.WebhookPort)
	}
	d.balancer.SetBackends(ports...)
}

// start runs two replicas of a release.
func (d *deployment) start(ctx context.Context, release string) {
	GinkgoHelper()
	d.add(ctx, release)
	d.add(ctx, release)
}

// roll replaces the replicas one by one by those of a release, as a Deployment does:
// each is ended when the one that replaces it is ready. It calls between while
// replicas of both releases run.
func (d *deployment) roll(ctx context.Context, release string, between func()) {
	GinkgoHelper()
	for range len(d.running) {
		d.add(ctx, release)
		d.drop()
		between()
	}
}

// remove ends all replicas.
func (d *deployment) remove() {
	GinkgoHelper()
	for len(d.running) > 0 {
		d.drop()
	}
}
