// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// replica is one that runs.
type replica struct {
	*harness.Operator
	// metricsPort is where it serves its metrics.
	metricsPort int
}

// startReplica runs one more replica, by the Deployment's arguments and with its rights.
func (w *scaleWorld) startReplica(ctx context.Context) (*replica, error) {
	port, err := harness.FreePort()
	if err != nil {
		return nil, err
	}
	profiled, err := w.profiler.flags()
	if err != nil {
		return nil, err
	}
	operator, err := w.operator.Start(ctx, harness.ReplicaOptions{
		Binary: w.options.manager, Address: harness.Address(len(w.replicas)), Env: w.options.operatorEnv(),
		Args: append(profiled,
			"--metrics-secure=false", "--metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", port),
			"--shutdown-delay-duration", "0s", // nobody waits for a replica that stops
		),
	})
	if err != nil {
		return nil, err
	}
	started := &replica{operator, port}
	w.replicas = append(w.replicas, started)
	return started, nil
}

// stop stops all replicas, and takes their webhooks away.
func (w *scaleWorld) stop(ctx context.Context) error {
	if len(w.replicas) == 0 {
		return nil
	}
	var errs []error
	for _, r := range w.replicas {
		w.checkPeak(r)
		errs = append(errs, w.operator.Stop(r.Operator))
	}
	w.replicas, w.profiler.replicas = nil, nil
	return errors.Join(append(errs, disarm(ctx, w.quotas))...)
}

// checkPeak notes an excess if a replica took more memory than it may.
func (w *scaleWorld) checkPeak(r *replica) {
	peak, err := peakOf(r.PID())
	if most, _ := w.options.mostMemory(); err == nil && peak > most {
		err = fmt.Errorf("%s: %s had %.0f MB resident, which is more than -memory-limit %s",
			w.title, r.Name(), peak/1e6, w.options.memoryLimit)
	}
	w.excess = errors.Join(w.excess, err)
}

const (
	// mostIdleCPU is the target for two replicas at rest, in percent of a core.
	mostIdleCPU target = "≤ 1"
	// mostIdleRequests is that for their requests a second.
	mostIdleRequests target = "≤ 5"

	// operatorLease is the Lease of the leader.
	operatorLease = "shared-quota-operator"

	restPatience = 3 * time.Minute
	restWindow   = 10 * time.Second
	// steadyWindow has one collection of garbage of each replica: Go's runtime makes one every two minutes if nothing else asks
	// for it. Within a minute there are none, one or two.
	steadyWindow = 2 * time.Minute
)

// pair makes sure that two replicas run, and returns once they are at rest or restPatience has passed.
func (w *scaleWorld) pair(ctx context.Context) error {
	if len(w.replicas) == 2 {
		return nil
	}
	if err := errors.Join(w.fill(ctx), w.stop(ctx)); err != nil {
		return err
	}
	statuses, err := w.followStatuses(ctx)
	if err != nil {
		return err
	}
	defer statuses.stop()
	for range 2 {
		if _, err := w.startReplica(ctx); err != nil {
			return err
		}
	}
	if err := statuses.await(ctx, w.shownAs(w.expected())); err != nil {
		return err
	}
	for start := time.Now(); time.Since(start) < restPatience; {
		used, err := w.use(ctx, restWindow)
		if err != nil {
			return err
		}
		sayf("two replicas: %.1f %% of a core, %.1f requests/s", used.cpu, used.requests)
		cpu, _ := mostIdleCPU.kept(used.cpu)
		if requests, _ := mostIdleRequests.kept(used.requests); cpu && requests {
			return nil
		}
	}
	return nil
}

// burden is what replicas use while nothing happens.
type burden struct {
	// cpu is in percent of a core, requests are those to the API server a second.
	cpu, requests float64
}

// use measures what all replicas use together. They aren't probed meanwhile: the harness probes 50 times as often as a
// kubelet.
func (w *scaleWorld) use(ctx context.Context, window time.Duration) (burden, error) {
	w.operator.Hold(true)
	defer w.operator.Hold(false)
	// Metrics are read outside of what is measured.
	requestsBefore, err1 := w.requests(ctx)
	cpuBefore, err2 := w.consumed()
	start := time.Now()
	err3 := pause(ctx, window)
	took := time.Since(start).Seconds()
	cpuAfter, err4 := w.consumed()
	requestsAfter, err5 := w.requests(ctx)
	return burden{
		cpu: 100 * (cpuAfter - cpuBefore).Seconds() / took, requests: (requestsAfter - requestsBefore) / took,
	}, errors.Join(err1, err2, err3, err4, err5)
}

// requests is how many requests all replicas have made to the API server.
func (w *scaleWorld) requests(ctx context.Context) (sum float64, err error) {
	for _, r := range w.replicas {
		exported, scrapeErr := scrape(ctx, r.metricsPort)
		sum, err = sum+exported.sum("rest_client_requests_total"), errors.Join(err, scrapeErr)
	}
	return sum, err
}

// consumed is the CPU time of all replicas.
func (w *scaleWorld) consumed() (sum time.Duration, err error) {
	for _, r := range w.replicas {
		used, readErr := r.Consumption()
		sum, err = sum+used.CPU, errors.Join(err, readErr)
	}
	return sum, err
}

// measureSteady measures what two replicas use while nothing happens.
func (w *scaleWorld) measureSteady(ctx context.Context) error {
	if err := w.pair(ctx); err != nil {
		return err
	}
	sayf("%s: at rest for %s", w.title, steadyWindow)
	used, err := w.use(ctx, steadyWindow)
	if err != nil {
		return err
	}
	w.report.add(w.title+", at rest: CPU of two replicas, % of a core", used.cpu, mostIdleCPU)
	w.report.add(w.title+", at rest: requests of two replicas to the API server a second", used.requests, mostIdleRequests)
	return nil
}

// measureLeader kills the leader of two replicas, and measures how long it takes until the other one has counted a pod that is
// created after that in each quota.
//
// That includes: until the API server calls the dead replica no more; until the Lease has expired, for which the other replica
// waits 10 s after it saw the last renewal; its count of all objects; the charge of each pod by the webhook; and a write of each
// ledger and status. The harness writes the EndpointSlice, at once. Conditions outlive a leader, so a status must show the new
// pod, too.
func (w *scaleWorld) measureLeader(ctx context.Context) error {
	if err := w.pair(ctx); err != nil {
		return err
	}
	leader, err := w.leader(ctx)
	if err != nil {
		return err
	}
	ledgers, statuses, stop, err := w.followBoth(ctx)
	if err != nil {
		return err
	}
	defer stop()
	sayf("%s: killing the leader", w.title)
	w.extra++
	previous, err := w.holder(ctx)
	if err != nil {
		return err
	}
	start, want := time.Now(), w.expected()
	if err := w.kill(leader); err != nil {
		return err
	}
	var created, elected, counted time.Duration
	err = together(ctx, func(ctx context.Context) (err error) {
		created, err = w.createExtra(ctx, start)
		return err
	}, func(ctx context.Context) error {
		err := w.untilLed(ctx, previous)
		elected = time.Since(start)
		return err
	}, func(ctx context.Context) error {
		err := ledgers.await(ctx, want)
		counted = time.Since(start)
		return err
	}, func(ctx context.Context) error {
		return statuses.await(ctx, w.shownAs(want))
	})
	if err != nil {
		return err
	}
	took := time.Since(start)
	sayf("%s: all pods created after %.1f s, a leader elected after %.1f s, pods counted after %.1f s, shown after %.1f s",
		w.title, created.Seconds(), elected.Seconds(), counted.Seconds(), took.Seconds())
	w.report.add(w.title+", leader killed: until the next one is elected, s", elected.Seconds(), "")
	w.report.add(w.title+", leader killed: until all ledgers have a new pod, s", counted.Seconds(), "")
	w.report.add(w.title+", leader killed: until all ledgers and statuses have a new pod, s", took.Seconds(), "≤ 20")
	return nil
}

// holder is who holds the Lease of the leader.
func (w *scaleWorld) holder(ctx context.Context) (string, error) {
	lease, err := w.objects.CoordinationV1().Leases(operatorNamespace).Get(ctx, operatorLease, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the Lease: %w", err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, ""), nil
}

// untilLed returns once another replica holds the Lease.
func (w *scaleWorld) untilLed(ctx context.Context, previous string) error {
	return poll(ctx, "another leader", func(ctx context.Context) (bool, error) {
		holder, err := w.holder(ctx)
		return holder != previous, err
	})
}

// leader finds the replica that leads by its own metrics, as an index.
func (w *scaleWorld) leader(ctx context.Context) (int, error) {
	for i, r := range w.replicas {
		exported, err := scrape(ctx, r.metricsPort)
		if err != nil {
			return 0, err
		}
		if exported.sum("leader_election_master_status") == 1 {
			return i, nil
		}
	}
	return 0, errors.New("no replica leads")
}

// kill kills a replica.
func (w *scaleWorld) kill(index int) error {
	killed := w.replicas[index]
	w.checkPeak(killed)
	w.replicas = append(w.replicas[:index:index], w.replicas[index+1:]...)
	return killed.Kill()
}

// createExtra creates a pod in the first namespace of each quota, and returns how long after start all were there. The API
// server refuses pods until it knows that a replica has died.
func (w *scaleWorld) createExtra(ctx context.Context, start time.Time) (time.Duration, error) {
	err := inParallel(ctx, w.size.quotas, func(ctx context.Context, i int) error {
		return poll(ctx, "a pod to be created", func(ctx context.Context) (bool, error) {
			err := w.createPod(ctx, namespaceName(i), fmt.Sprintf("extra-%d", w.extra), 0)
			return err == nil, err
		})
	})
	return time.Since(start), err
}
