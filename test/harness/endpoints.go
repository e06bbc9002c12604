/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package harness

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// probeEvery is shorter than a kubelet's period, for tests to be short.
	probeEvery = 200 * time.Millisecond
	// probeTimeout and probeFailures in a row take a replica out. A replica on a
	// machine that is busy with builds may be slow for seconds.
	probeTimeout  = 2 * time.Second
	probeFailures = 3
)

// Endpoints keeps a Balancer's backends to the replicas that are ready, as the
// endpoints of a Service are kept: one that has ended or doesn't answer its
// probes, such as one that is paused, is taken out, and comes back by itself.
type Endpoints struct {
	balancer *Balancer
	probe    *http.Client
	stop     context.CancelFunc
	ctx      context.Context //nolint:containedctx // ends the probes, which outlive each call
	running  sync.WaitGroup

	// mu guards ready.
	mu    sync.Mutex
	ready []*Operator
}

// NewEndpoints makes Endpoints without a replica. The caller must call Close.
func NewEndpoints(balancer *Balancer) *Endpoints {
	ctx, stop := context.WithCancel(context.Background())
	return &Endpoints{
		balancer: balancer, ctx: ctx, stop: stop,
		probe: &http.Client{Timeout: probeTimeout, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// Add probes a replica until it ends, and makes it a backend while it is ready.
func (e *Endpoints) Add(replica *Operator) {
	e.running.Go(func() { e.follow(replica) })
}

// Ready returns the replicas that requests are handed to.
func (e *Endpoints) Ready() []*Operator {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.ready)
}

// Close takes all out, and returns when nothing is probed any more.
func (e *Endpoints) Close() {
	e.stop()
	e.running.Wait()
}

func (e *Endpoints) follow(replica *Operator) {
	defer e.set(replica, false)
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	failures := 0
	for {
		failures++
		if get(e.ctx, e.probe, replica.HealthURL+"/readyz") == nil {
			failures = 0
		}
		if failures == 0 || failures >= probeFailures {
			e.set(replica, failures == 0)
		}
		select {
		case <-replica.Done():
			return
		case <-e.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (e *Endpoints) set(replica *Operator, ready bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.Contains(e.ready, replica) == ready {
		return
	}
	if ready {
		e.ready = append(e.ready, replica)
	} else {
		e.ready = slices.DeleteFunc(slices.Clone(e.ready), func(o *Operator) bool { return o == replica })
	}
	ports := make([]int, 0, len(e.ready))
	for _, one := range e.ready {
		ports = append(ports, one.WebhookPort)
	}
	e.balancer.SetBackends(ports...)
}
