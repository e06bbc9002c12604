// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// stand is a replica that is nothing but its health endpoint.
type stand struct {
	*Operator
	ready atomic.Bool
	// hold keeps probes waiting until it is closed, where there is one.
	hold atomic.Pointer[chan struct{}]
}

func newStand(t *testing.T, name, address string) *stand {
	t.Helper()
	s := &stand{}
	s.ready.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hold := s.hold.Load(); hold != nil {
			select {
			case <-*hold:
			case <-r.Context().Done():
			}
		}
		if !s.ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	s.Operator = &Operator{
		Process: &Process{name: name, done: make(chan struct{})}, HealthURL: server.URL, Address: address,
	}
	return s
}

var service = types.NamespacedName{Namespace: "system", Name: "webhook"}

func newEndpoints(t *testing.T, api client.Client) *Endpoints {
	t.Helper()
	return startEndpoints(t, api, false)
}

func startEndpoints(t *testing.T, api client.Client, older bool) *Endpoints {
	t.Helper()
	e := NewEndpoints(api, service, discoveryv1.EndpointPort{Name: ptr.To("https"), Port: ptr.To(int32(9443))}, older)
	t.Cleanup(e.Close)
	return e
}

func waitForReady(t *testing.T, e *Endpoints, want ...string) {
	t.Helper()
	var got []string
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		got = nil
		for _, replica := range e.Ready() {
			got = append(got, replica.Name())
		}
		slices.Sort(got)
		return slices.Equal(got, want), nil
	})
	if err != nil {
		t.Fatalf("ready are %v, want %v", got, want)
	}
}

// conditions are what the EndpointSlice says of each address.
func conditions(t *testing.T, api client.Client) map[string]string {
	t.Helper()
	slices := &discoveryv1.EndpointSliceList{}
	ofService := client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}
	if err := api.List(t.Context(), slices, client.InNamespace(service.Namespace), ofService); err != nil {
		t.Fatal(err)
	}
	if len(slices.Items) != 1 {
		t.Fatalf("there are %d EndpointSlices, want 1", len(slices.Items))
	}
	slice := slices.Items[0]
	if len(slice.Ports) != 1 || *slice.Ports[0].Name != "https" || *slice.Ports[0].Port != 9443 {
		t.Errorf("the EndpointSlice is for %v, want port 9443 as https", slice.Ports)
	}
	said := map[string]string{}
	for _, endpoint := range slice.Endpoints {
		said[endpoint.Addresses[0]] = map[bool]string{true: "ready", false: "not ready"}[*endpoint.Conditions.Ready] +
			map[bool]string{true: ", terminating"}[*endpoint.Conditions.Terminating]
	}
	return said
}

func wantConditions(t *testing.T, api client.Client, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, conditions(t, api)); diff != "" {
		t.Errorf("conditions (-want,+got):\n%s", diff)
	}
}

func TestEndpointsAreTheReplicasThatRunAndTellWhichAreReady(t *testing.T) {
	api := fake.NewFakeClient()
	e := newEndpoints(t, api)
	one, two := newStand(t, "one", "10.0.0.1"), newStand(t, "two", "10.0.0.2")
	two.ready.Store(false)
	e.Add(one.Operator)
	e.Add(two.Operator)
	waitForReady(t, e, "one")
	wantConditions(t, api, map[string]string{"10.0.0.1": "ready", "10.0.0.2": "not ready"})

	two.ready.Store(true)
	waitForReady(t, e, "one", "two")
	close(one.done)
	waitForReady(t, e, "two")
	wantConditions(t, api, map[string]string{"10.0.0.2": "ready"})
}

func TestAnOlderAPIServerFindsTheReadyReplicasInEndpoints(t *testing.T) {
	api := fake.NewFakeClient()
	e := startEndpoints(t, api, true)
	one, two := newStand(t, "one", "10.0.0.1"), newStand(t, "two", "10.0.0.2")
	e.Add(one.Operator)
	e.Add(two.Operator)
	waitForReady(t, e, "one", "two")
	two.ready.Store(false)
	waitForReady(t, e, "one")
	found := &corev1.Endpoints{} //nolint:staticcheck // deprecated since 1.33, and all that an older one reads
	if err := api.Get(t.Context(), service, found); err != nil {
		t.Fatal(err)
	}
	want := []corev1.EndpointSubset{{ //nolint:staticcheck // the same
		Addresses: []corev1.EndpointAddress{{IP: "10.0.0.1"}}, Ports: []corev1.EndpointPort{{Name: "https", Port: 9443}},
	}}
	if diff := cmp.Diff(want, found.Subsets); diff != "" {
		t.Errorf("subsets (-want,+got):\n%s", diff)
	}
}

func TestEndpointsLoseAReplicaThatDoesNotAnswerAndTakeItBack(t *testing.T) {
	api := fake.NewFakeClient()
	e := newEndpoints(t, api)
	one := newStand(t, "one", "10.0.0.1")
	e.Add(one.Operator)
	waitForReady(t, e, "one")

	hold := make(chan struct{})
	one.hold.Store(&hold)
	waitForReady(t, e)
	wantConditions(t, api, map[string]string{"10.0.0.1": "not ready"})
	one.hold.Store(nil)
	close(hold)
	waitForReady(t, e, "one")
}

func TestAReplicaThatTerminatesIsNotReadyAgain(t *testing.T) {
	api := fake.NewFakeClient()
	e := newEndpoints(t, api)
	one := newStand(t, "one", "10.0.0.1")
	e.Add(one.Operator)
	waitForReady(t, e, "one")
	e.Terminate(one.Operator)
	waitForReady(t, e)
	<-time.After(2 * probeEvery) // It answers its probes all the while.
	wantConditions(t, api, map[string]string{"10.0.0.1": "not ready, terminating"})
}

func TestEndpointsAreWrittenOnceTheAPIServerIsBack(t *testing.T) {
	var away atomic.Bool
	api := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if away.Load() {
				return errors.New("connection refused")
			}
			return api.Get(ctx, key, into, options...)
		},
	})
	away.Store(true)
	e := newEndpoints(t, api)
	e.Add(newStand(t, "one", "10.0.0.1").Operator)
	<-time.After(2 * sliceRetry)
	if ready := e.Ready(); len(ready) > 0 {
		t.Errorf("ready are %v, though the API server can't know", ready)
	}
	away.Store(false)
	waitForReady(t, e, "one")
}
