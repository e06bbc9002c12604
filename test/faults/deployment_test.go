// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/sharedquota/shared-quota-operator/test/faults/load"
	"github.com/sharedquota/shared-quota-operator/test/faults/proxy"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// settled is how long after the end of a process calls to it may break: the API server
// learns from the EndpointSlice that it has ended, which takes a moment on a busy machine.
const settled = 3 * time.Second

// shutdownDelay is how long a replica that terminates still answers new calls. The API
// server hears of it in milliseconds here.
const shutdownDelay = 2 * time.Second

// deployment is the operator's replicas and what stands around them. It is used
// by one goroutine.
type deployment struct {
	production *harness.Production
	places     []*place
}

// place is where a replica runs, or another in its place.
type place struct {
	name    string
	options harness.ReplicaOptions
	// proxy is how the replica reaches the API server.
	proxy *proxy.Proxy
	// running is nil while there is none.
	running *harness.Operator
	paused  bool
	// deposed: it led when it was paused, and ends by itself once it has found out.
	deposed bool
}

func newDeployment(ctx context.Context, binary string) *deployment {
	GinkgoHelper()
	suite.Install(ctx, cluster)
	production, err := cluster.StartProduction(ctx, suite.Namespace, suite.Deployment, suite.WebhookService)
	Expect(err).NotTo(HaveOccurred())
	d := &deployment{production: production}
	clocks := []time.Duration{0, time.Hour, -time.Hour}
	for i, name := range []string{"A", "B, whose clock is ahead", "C, whose clock is behind"} {
		between, err := proxy.Start(d.production.Identity(), seed()+uint64(i))
		Expect(err).NotTo(HaveOccurred())
		d.places = append(d.places, &place{name: name, proxy: between, options: harness.ReplicaOptions{
			Binary: binary, Address: harness.Address(i), Config: between.Config(), Clock: clocks[i],
			Args: []string{
				"--status-interval", "200ms", "--reservation-ttl", reservationTTL.String(),
				"--shutdown-delay-duration", shutdownDelay.String(),
			},
		}})
	}
	return d
}

// start runs a replica, once the API server lets it start.
func (d *deployment) start(ctx context.Context, place *place) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (err error) {
		place.running, err = d.production.Start(ctx, place.options)
		return err
	}).WithTimeout(2*suite.Deadline).Should(Succeed(), "replica %s", place.name)
	go noteTheEnd(place.running, place.name)
	d.waitUntilServing(ctx, place)
}

// noteTheEnd excuses calls that were under way to a replica when it ended.
func noteTheEnd(replica *harness.Operator, name string) {
	<-replica.Done()
	end := disruptions.BeginBefore(settled, "the end of replica "+name, load.CallLost, load.Interrupted)
	time.AfterFunc(settled, end)
}

func (d *deployment) waitUntilServing(ctx context.Context, place *place) {
	GinkgoHelper()
	Eventually(ctx, d.production.Ready).Should(ContainElement(place.running), "replica %s", place.name)
}

// startAll puts a replica into every place that has none, or is about to have none.
func (d *deployment) startAll(ctx context.Context) {
	GinkgoHelper()
	for _, place := range d.places {
		if place.deposed {
			Eventually(ctx, func() bool { return ended(place.running) }).Should(BeTrue(), "replica %s still takes itself for the leader", place.name)
		}
		d.revive(ctx, place)
	}
}

// recover starts again what has ended by itself.
func (d *deployment) recover(ctx context.Context) {
	GinkgoHelper()
	for _, place := range d.places {
		if place.running != nil {
			d.revive(ctx, place)
		}
	}
}

// revive starts a replica again that has ended by itself, as one that is no
// longer the leader does.
func (d *deployment) revive(ctx context.Context, place *place) {
	GinkgoHelper()
	if place.running != nil && ended(place.running) {
		Expect(place.running.Stop()).To(MatchError(harness.ErrExited))
		Expect(place.says("leader election lost")).To(BeTrue(), "replica %s ended:\n%s", place.name, cluster.LogTails(20))
		place.running, place.deposed = nil, false
	}
	if place.running == nil {
		d.start(ctx, place)
	}
}

func ended(replica *harness.Operator) bool {
	select {
	case <-replica.Done():
		return true
	default:
		return false
	}
}

// kill ends a replica with SIGKILL.
func (d *deployment) kill(place *place) {
	GinkgoHelper()
	if err := place.running.Kill(); err != nil {
		Expect(err).To(MatchError(harness.ErrExited))
	}
	place.running, place.paused, place.deposed = nil, false, false
}

// terminate ends a replica as the deletion of its pod does.
func (d *deployment) terminate(place *place) {
	GinkgoHelper()
	end := disruptions.Begin("the stop of replica "+place.name, load.CallLost)
	defer time.AfterFunc(settled, end)
	Expect(d.production.Stop(place.running)).To(Succeed())
	place.running, place.deposed = nil, false
}

// pause stops a replica with SIGSTOP, and returns once no more is handed to it. What was
// handed to it before is answered by nobody.
func (d *deployment) pause(ctx context.Context, place *place) {
	GinkgoHelper()
	end := disruptions.Begin("the pause of replica "+place.name, load.CallLost, load.Unanswered)
	defer time.AfterFunc(settled, end)
	place.running.Pause()
	place.paused = true
	Eventually(ctx, d.production.Ready).ShouldNot(ContainElement(place.running))
}

// resume lets a replica go on that led when it was paused.
func (d *deployment) resume(place *place) {
	place.running.Resume()
	place.paused, place.deposed = false, true
}

// up are the places whose replica runs.
func (d *deployment) up() []*place {
	return slices.DeleteFunc(slices.Clone(d.places), func(p *place) bool {
		return p.running == nil || p.paused || ended(p.running)
	})
}

// leader is the place of the one that counts; nil where it isn't known. One that was
// deposed while it was paused has led, too, but not last.
func (d *deployment) leader() *place {
	var leader *place
	since := ""
	for _, place := range d.up() {
		if elected := place.elected(); elected > since {
			leader, since = place, elected
		}
	}
	return leader
}

// waitForLeader returns the leader, once there is one.
func (d *deployment) waitForLeader(ctx context.Context) *place {
	GinkgoHelper()
	var leader *place
	Eventually(ctx, func() *place {
		leader = d.leader()
		return leader
	}).ShouldNot(BeNil())
	return leader
}

// elected is when the replica was elected, as its log has it; empty if it was not.
func (p *place) elected() string {
	log, err := os.ReadFile(p.running.Log())
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte("Successfully acquired lease")) {
			var said struct {
				At string `json:"ts"`
			}
			Expect(json.Unmarshal(line, &said)).To(Succeed())
			return said.At
		}
	}
	return ""
}

// says tells whether the replica's log holds the text.
func (p *place) says(text string) bool {
	log, err := os.ReadFile(p.running.Log())
	return err == nil && bytes.Contains(log, []byte(text))
}

// stop ends all replicas, and what stands around them.
func (d *deployment) stop() {
	GinkgoHelper()
	for _, place := range d.up() {
		Expect(place.running.Stop()).To(Succeed(), "replica %s must stop when told to", place.name)
	}
	d.production.Close()
	for _, one := range d.proxies() {
		Expect(one.Close()).To(Succeed())
	}
}
