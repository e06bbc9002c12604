// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Deadline is how long a client waits for an answer: longer than the API server
	// waits for a webhook, so that it is told what went wrong.
	Deadline = 45 * time.Second
)

// Plan says who does what where.
type Plan struct {
	// Pods, Services and ConfigMaps hold a namespace for each client.
	Pods, Services, ConfigMaps []string
	// Refusing are the namespaces in which suite.Refusing refuses every pod.
	Refusing []string
	// Orphans lets clients do what leaves reservations behind that nothing but
	// the end of their life removes: what is refused later, and duplicates.
	Orphans bool
	// Resizes: the API server resizes pods in place.
	Resizes bool
	// Forges gives half of the pods the owner and the labels of a pod in a rollout.
	Forges bool
	// Rest is how long a client rests at most between two calls.
	Rest time.Duration
	// Deletes reports whether a pod may be deleted now; nil: each may.
	Deletes func(ctx context.Context, pod client.ObjectKey) bool
	Seed    uint64
}

// Load is the clients at work.
type Load struct {
	Tally *Tally

	stop    chan struct{}
	once    sync.Once
	running sync.WaitGroup
}

// Start sets the clients of a plan to work, until Stop. When ctx ends, so do their
// calls.
func Start(ctx context.Context, api client.Client, plan Plan) *Load {
	l := &Load{Tally: newTally(), stop: make(chan struct{})}
	l.each(ctx, api, plan, "pods", plan.Pods, newPods)
	l.each(ctx, api, plan, "refused", plan.Refusing, newRefused)
	l.each(ctx, api, plan, "services", plan.Services, newServices)
	l.each(ctx, api, plan, "configmaps", plan.ConfigMaps, newConfigMaps)
	return l
}

// Stop lets each client finish its call, and returns when all have.
func (l *Load) Stop() {
	l.once.Do(func() { close(l.stop) })
	l.running.Wait()
}

// stepper is a kind of client.
type stepper interface {
	// step does one thing.
	step(ctx context.Context)
}

func (l *Load) each(
	ctx context.Context, api client.Client, plan Plan, kind string, namespaces []string, kindOf func(*worker) stepper,
) {
	for i, namespace := range namespaces {
		w := &worker{
			api: api, tally: l.Tally, namespace: namespace, name: fmt.Sprintf("%s-%d", kind, i),
			orphans: plan.Orphans, resizes: plan.Resizes, forges: plan.Forges, deletes: plan.Deletes,
			random: rand.New(rand.NewPCG(plan.Seed, uint64(len(kind)*1000+i))),
		}
		l.running.Go(func() { l.run(ctx, kindOf(w), w.random, plan.Rest) })
	}
}

func (l *Load) run(ctx context.Context, client stepper, random *rand.Rand, rest time.Duration) {
	for {
		client.step(ctx)
		select {
		case <-l.stop:
			return
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(random.Int64N(int64(rest) + 1))):
		}
	}
}

// worker is what all kinds of clients have in common.
type worker struct {
	api       client.Client
	tally     *Tally
	namespace string
	// name is the client's, and begins the names of its objects.
	name                     string
	orphans, resizes, forges bool
	deletes                  func(ctx context.Context, pod client.ObjectKey) bool
	random                   *rand.Rand
}

// call does one call and enters it. The client expects the errors that it says.
func (w *worker) call(ctx context.Context, action string, do func(context.Context) error, expected ...func(error) bool) Outcome {
	ctx, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	a := attempt{action: action, from: time.Now()}
	a.err = do(ctx)
	a.to = time.Now()
	a.outcome = outcomeOf(a.err)
	for _, isExpected := range expected {
		if (a.outcome == Failed || a.outcome == Disconnected) && isExpected(a.err) {
			a.outcome = Expected
		}
	}
	w.tally.add(a)
	return a.outcome
}

// chance is true with a probability in percent.
func (w *worker) chance(percent int) bool {
	return w.random.IntN(100) < percent
}

// done tells whether what is known of an object still holds after a call.
func done(outcome Outcome) bool {
	switch outcome {
	case CallLost, Unanswered, Undecided, Interrupted, Disconnected, Failed:
		return false
	default:
		return true
	}
}

// missing and existing are the errors that a client may meet about an object
// of which an earlier call didn't tell how it ended.
func missing(unsure bool) func(error) bool {
	return func(err error) bool { return unsure && apierrors.IsNotFound(err) }
}

func existing(unsure bool) func(error) bool {
	return func(err error) bool { return unsure && apierrors.IsAlreadyExists(err) }
}
