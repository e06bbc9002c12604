// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func strategicMerge(patch []byte) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType, patch)
}

// serviceNames is how many services a client has.
const serviceNames = 3

// services is a client whose services become load balancers and back.
type services struct {
	*worker
	// known is what the client holds of its services; nil where it must look.
	known map[string]*corev1.Service
}

func newServices(w *worker) stepper {
	return &services{worker: w, known: map[string]*corev1.Service{}}
}

func (s *services) step(ctx context.Context) {
	name := fmt.Sprintf("%s-%d", s.name, s.random.IntN(serviceNames))
	if s.known[name] == nil {
		s.look(ctx, name)
		return
	}
	s.turn(ctx, name)
}

// look gets a service, or creates it.
func (s *services) look(ctx context.Context, name string) {
	service := builders.Service(s.namespace, name).Type(corev1.ServiceTypeClusterIP, 80).Obj()
	outcome := s.call(ctx, "get service", func(ctx context.Context) error {
		return s.api.Get(ctx, client.ObjectKeyFromObject(service), service)
	}, missing(true))
	if outcome == Expected {
		outcome = s.call(ctx, "create service", func(ctx context.Context) error { return s.api.Create(ctx, service) },
			apierrors.IsAlreadyExists)
	}
	if outcome == Succeeded {
		s.known[name] = service
	}
}

// turn makes a load balancer of a service, or the reverse. Nobody else writes
// it, so that a conflict would be the operator's.
func (s *services) turn(ctx context.Context, name string) {
	service := s.known[name].DeepCopy()
	action := "service becomes load balancer"
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		action = "service is no longer load balancer"
		service.Spec.Type, service.Spec.AllocateLoadBalancerNodePorts = corev1.ServiceTypeClusterIP, nil
	} else {
		service.Spec.Type, service.Spec.AllocateLoadBalancerNodePorts = corev1.ServiceTypeLoadBalancer, new(bool)
	}
	switch outcome := s.call(ctx, action, func(ctx context.Context) error { return s.api.Update(ctx, service) }); {
	case outcome == Succeeded:
		s.known[name] = service
	case !done(outcome):
		s.known[name] = nil
	}
}

// configMapNames is how many names a client uses again and again.
const configMapNames = 6

// configMaps is a client that creates and deletes config maps.
type configMaps struct {
	*worker
	slots [configMapNames]slot
}

func newConfigMaps(w *worker) stepper {
	return &configMaps{worker: w}
}

func (c *configMaps) step(ctx context.Context) {
	i := c.random.IntN(configMapNames)
	slot, object := &c.slots[i], builders.ConfigMap(c.namespace, fmt.Sprintf("%s-%d", c.name, i))
	if slot.there {
		slot.learn(c.call(ctx, "delete config map", func(ctx context.Context) error {
			return c.api.Delete(ctx, object)
		}, missing(slot.unsure)), false)
		return
	}
	slot.learn(c.call(ctx, "create config map", func(ctx context.Context) error {
		return c.api.Create(ctx, object)
	}, existing(slot.unsure)), true)
}
