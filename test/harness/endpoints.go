// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	// probeEvery is shorter than a kubelet's period, for tests to be short.
	probeEvery = 200 * time.Millisecond
	// probeTimeout and probeFailures in a row take a replica out. A replica on a
	// machine that is busy with builds may be slow for seconds.
	probeTimeout  = 2 * time.Second
	probeFailures = 3
	// sliceTimeout is for one write of the EndpointSlice, sliceRetry for the rest
	// after one that failed.
	sliceTimeout = 5 * time.Second
	sliceRetry   = 100 * time.Millisecond
)

// Endpoints writes the EndpointSlice of a Service, in the place of a kubelet and of
// the EndpointSlice controller. An older API server resolves a Service by its object of kind
// Endpoints, so that is written there, too. Each replica that was added is in it until it ends.
// It is ready while it answers its probes: one that is paused loses that, and gets it
// back by itself. One that terminates is not ready any more.
type Endpoints struct {
	api     client.Client
	service types.NamespacedName
	port    discoveryv1.EndpointPort
	probe   *http.Client
	// older: the API server is older than slicesSince.
	older   bool
	stop    context.CancelFunc
	ctx     context.Context //nolint:containedctx // ends the probes, which outlive each call
	running sync.WaitGroup
	// changed has a value if members are other than what was written last.
	changed chan struct{}

	// mu guards what follows.
	mu      sync.Mutex
	members []*member
	// held: nothing is probed.
	held bool
	// written are the replicas that are ready by what was written last.
	written []*Operator
}

// member is a replica and its conditions.
type member struct {
	replica            *Operator
	ready, terminating bool
}

// NewEndpoints starts to write the EndpointSlice of a Service. The port has the name of
// the Service's and the number of the replicas'; older says that the API server needs
// the object of kind Endpoints. The caller must call Close.
func NewEndpoints(api client.Client, service types.NamespacedName, port discoveryv1.EndpointPort, older bool) *Endpoints {
	ctx, stop := context.WithCancel(context.Background())
	e := &Endpoints{
		api: api, service: service, port: port, older: older, ctx: ctx, stop: stop, changed: make(chan struct{}, 1),
		probe: &http.Client{Timeout: probeTimeout, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	e.running.Go(e.write)
	return e
}

// Add probes a replica, which serves at its Address, until it ends.
func (e *Endpoints) Add(replica *Operator) {
	added := &member{replica: replica}
	e.change(func() { e.members = append(e.members, added) })
	e.running.Go(func() { e.follow(added) })
}

// Terminate makes a replica not ready for good, as the deletion of its pod does.
func (e *Endpoints) Terminate(replica *Operator) {
	e.change(func() {
		for _, m := range e.members {
			if m.replica == replica {
				m.ready, m.terminating = false, true
			}
		}
	})
}

// Hold stops all probes, or lets them go on: they are so frequent that they cost the replicas CPU time.
func (e *Endpoints) Hold(held bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held = held
}

// Ready returns the replicas that are ready by what the API server was told.
func (e *Endpoints) Ready() []*Operator {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.written)
}

// Close returns when nothing is probed or written any more.
func (e *Endpoints) Close() {
	e.stop()
	e.running.Wait()
}

// change changes members, and has them written.
func (e *Endpoints) change(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	do()
	select {
	case e.changed <- struct{}{}:
	default: // What is there will do.
	}
}

// follow probes a replica until it ends.
func (e *Endpoints) follow(m *member) {
	defer e.change(func() {
		e.members = slices.DeleteFunc(e.members, func(one *member) bool { return one == m })
	})
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	failures := 0
	for {
		if !e.isHeld() {
			failures++
			if get(e.ctx, e.probe, m.replica.HealthURL+"/readyz") == nil {
				failures = 0
			}
			if failures == 0 || failures >= probeFailures {
				e.set(m, failures == 0)
			}
		}
		select {
		case <-m.replica.Done():
			return
		case <-e.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (e *Endpoints) isHeld() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held
}

func (e *Endpoints) set(m *member, ready bool) {
	e.mu.Lock()
	same := m.ready == ready || m.terminating
	e.mu.Unlock()
	if !same {
		e.change(func() { m.ready = ready && !m.terminating })
	}
}

// write keeps the EndpointSlice as members are. What fails is tried again, because
// API servers end and start in tests.
func (e *Endpoints) write() {
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-e.changed:
		}
		for e.writeOnce() != nil {
			select {
			case <-e.ctx.Done():
				return
			case <-time.After(sliceRetry):
			}
		}
	}
}

func (e *Endpoints) writeOnce() error {
	ctx, cancel := context.WithTimeout(e.ctx, sliceTimeout)
	defer cancel()
	endpoints, ready := e.endpoints()
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: e.service.Namespace, Name: e.service.Name + "-harness"}}
	_, err := controllerutil.CreateOrUpdate(ctx, e.api, slice, func() error {
		slice.Labels = map[string]string{
			discoveryv1.LabelServiceName: e.service.Name, discoveryv1.LabelManagedBy: "harness.sharedquota.dev",
		}
		slice.AddressType, slice.Ports, slice.Endpoints = discoveryv1.AddressTypeIPv4, []discoveryv1.EndpointPort{e.port}, endpoints
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing the EndpointSlice of %s: %w", e.service, err)
	}
	if e.older {
		if err := e.writeOlder(ctx, ready); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.written = ready
	return nil
}

// writeOlder writes the object of kind Endpoints.
func (e *Endpoints) writeOlder(ctx context.Context, ready []*Operator) error {
	//nolint:staticcheck // deprecated since 1.33, and all that an older one reads
	written := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: e.service.Namespace, Name: e.service.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, e.api, written, func() error {
		written.Subsets = nil
		for _, replica := range ready {
			written.Subsets = append(written.Subsets, corev1.EndpointSubset{ //nolint:staticcheck // the same
				Addresses: []corev1.EndpointAddress{{IP: replica.Address}},
				Ports:     []corev1.EndpointPort{{Name: *e.port.Name, Port: *e.port.Port}},
			})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing the Endpoints of %s: %w", e.service, err)
	}
	return nil
}

// endpoints are the members as an EndpointSlice has them, and those that are ready.
func (e *Endpoints) endpoints() (endpoints []discoveryv1.Endpoint, ready []*Operator) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.members {
		endpoints = append(endpoints, discoveryv1.Endpoint{
			Addresses: []string{m.replica.Address},
			Conditions: discoveryv1.EndpointConditions{
				Ready: ptr.To(m.ready), Serving: ptr.To(m.ready || m.terminating), Terminating: ptr.To(m.terminating),
			},
		})
		if m.ready {
			ready = append(ready, m.replica)
		}
	}
	return endpoints, ready
}
