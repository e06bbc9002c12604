// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/serving"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// What config/default installs.
const (
	operatorNamespace  = "shared-quota-system"
	operatorDeployment = "shared-quota-manager"
	operatorService    = "shared-quota-webhook"
)

// The Service of the webhooks that are the floor, and the ports of each of their replicas.
const (
	floorService    = "bench-floor"
	floorPort       = 9443
	floorHealthPort = 8081
)

// install installs what the variants that are reached through a Service need: the operator by
// config/default, without a replica, and the Service of the floor.
func (w *podsWorld) install(ctx context.Context, config string) error {
	var err error
	if w.operator, err = installOperator(ctx, w.cluster, config); err != nil {
		return err
	}
	front := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: floorService},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromInt32(floorPort)}}},
	}
	if err := w.api.Create(ctx, front); err != nil {
		return err
	}
	port := discoveryv1.EndpointPort{Name: ptr.To("https"), Port: ptr.To(int32(floorPort))}
	w.floor = harness.NewEndpoints(w.api, client.ObjectKeyFromObject(front), port, false)
	w.asOperator, err = connect(w.operator.Identity())
	return err
}

// close ends what install has started.
func (w *podsWorld) close() {
	if w.floor != nil {
		w.floor.Close()
	}
	if w.operator != nil {
		w.operator.Close()
	}
}

// makeCertificate makes a certificate of the floor as the operator makes its own, and returns its directory.
func (w *podsWorld) makeCertificate() (dir string, err error) {
	made, err := serving.NewIssuer(floorService+"."+operatorNamespace+".svc").Renew(nil, time.Now())
	if err != nil {
		return "", err
	}
	dir = filepath.Join(w.cluster.Dir(), "floor")
	err = os.Mkdir(dir, 0o700)
	for name, content := range made.Data {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return dir, err
}

// askFloor has the API server ask two replicas of a webhook that always answers the same.
func (w *podsWorld) askFloor(ctx context.Context, path string) (*running, error) {
	r := &running{}
	var started []*harness.Operator
	for i := range 2 {
		replica, err := w.startAllow(ctx, harness.Address(i))
		if err != nil {
			return r, err
		}
		started = append(started, replica)
		r.process(replica.Process)
		w.floor.Add(replica)
		r.onStop(func(context.Context) error { w.floor.Terminate(replica); return nil })
	}
	if err := untilReady(ctx, w.floor, started); err != nil {
		return r, err
	}
	return r, w.register(ctx, r, path, started)
}

// register has the API server call the floor about what clients create and update, until r stops.
func (w *podsWorld) register(ctx context.Context, r *running, path string, replicas []*harness.Operator) error {
	authority, err := os.ReadFile(filepath.Join(w.certDir, serving.AuthorityKey))
	if err != nil {
		return err
	}
	called := &admissionregistrationv1.ServiceReference{Namespace: operatorNamespace, Name: floorService, Path: &path}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "bench-floor"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "floor.bench.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: authority, Service: called},
			Rules: []admissionregistrationv1.RuleWithOperations{
				rule("", "pods", admissionregistrationv1.Create),
				rule("apps", "deployments", admissionregistrationv1.Create, admissionregistrationv1.Update),
			},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](10),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	if err := w.api.Create(ctx, configuration); err != nil {
		return err
	}
	r.onStop(func(ctx context.Context) error { return w.api.Delete(ctx, configuration) })
	return w.untilAsked(ctx, replicas)
}

func rule(group, resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource},
	}}
}

// untilAsked returns once the API server asks a webhook: nothing answers while
// its replicas are paused.
func (w *podsWorld) untilAsked(ctx context.Context, replicas []*harness.Operator) error {
	for _, replica := range replicas {
		replica.Pause()
	}
	defer func() {
		for _, replica := range replicas {
			replica.Resume()
		}
	}()
	return until(ctx, "the API server to ask the webhook", func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, settleTimeout/100)
		defer cancel()
		err := w.api.Create(ctx, pod(w.namespaces[0], "probe"), client.DryRunAll)
		return err != nil, nil
	})
}

// untilReady returns once the API server was told of exactly these replicas.
func untilReady(ctx context.Context, endpoints *harness.Endpoints, replicas []*harness.Operator) error {
	return until(ctx, "the Service to have its replicas", func(context.Context) (bool, error) {
		ready := endpoints.Ready()
		return len(ready) == len(replicas) && !slices.ContainsFunc(replicas, func(replica *harness.Operator) bool {
			return !slices.Contains(ready, replica)
		}), nil
	})
}

// startOperator runs so many replicas of the operator behind its Service, with metrics that can be read here.
func (w *podsWorld) startOperator(ctx context.Context, r *running, replicas int) error {
	r.onStop(w.removeConfiguration)
	r.onStop(func(context.Context) error { w.profiler.replicas = nil; return nil })
	var started []*harness.Operator
	for i := range replicas {
		port, err := harness.FreePort()
		if err != nil {
			return err
		}
		profiled, err := w.profiler.flags()
		if err != nil {
			return err
		}
		replica, err := w.operator.Start(ctx, harness.ReplicaOptions{Binary: w.manager, Address: harness.Address(i), Args: append(profiled,
			"--metrics-secure=false", "--metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", port),
			"--shutdown-delay-duration", "0s", // nobody calls a variant that stops
		)})
		if err != nil {
			return err
		}
		started = append(started, replica)
		r.metrics = append(r.metrics, port)
		r.process(replica.Process)
		r.onStop(func(context.Context) error { w.operator.Terminate(replica); return nil })
	}
	return untilReady(ctx, w.operator.Endpoints, started)
}
