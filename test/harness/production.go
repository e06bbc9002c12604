// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tokenLife is longer than any test runs.
const tokenLife = 24 * time.Hour

// Names of the ports of the operator's container.
const (
	metricsPort = "metrics"
	healthPort  = "health"
)

// Production runs the operator as its Deployment would run in a cluster: each replica
// with the Deployment's arguments, the rights of its ServiceAccount and an address of
// its own, and reached through its Service. It stands for kubelets and for the
// controllers of Deployments and EndpointSlices.
type Production struct {
	*Endpoints

	cluster    *Cluster
	api        client.Client
	deployment types.NamespacedName
	identity   *rest.Config
	container  corev1.Container
}

// ReplicaOptions say how to run one replica.
type ReplicaOptions struct {
	// Binary is the path of the operator's binary. By default bin/manager below
	// the repository's root.
	Binary string

	// Address is one of those of the function Address. No other replica that runs
	// has it.
	Address string

	// Config leads to the API server. By default it is Identity. A proxy in between
	// is to call with that.
	Config *rest.Config

	// Args are further arguments. They come after those of the Deployment, and win.
	Args []string

	// Env are further variables of its environment, as in os.Environ. They win.
	Env []string

	// Clock is by how much the replica's clock is wrong.
	Clock time.Duration
}

// StartProduction begins to write the EndpointSlice of a Service in the place of the
// Deployment's pods. Both exist, in one namespace; Options.Production was set. The
// caller must call Close once every replica has ended.
func (c *Cluster) StartProduction(ctx context.Context, namespace, deployment, service string) (*Production, error) {
	if !c.options.Production {
		return nil, errors.New("the cluster was not started with Options.Production")
	}
	api, err := client.New(c.Config(), client.Options{})
	if err != nil {
		return nil, err
	}
	p := &Production{cluster: c, api: api, deployment: types.NamespacedName{Namespace: namespace, Name: deployment}}
	if err := p.Reload(ctx); err != nil {
		return nil, err
	}
	front := &corev1.Service{}
	if err := api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: service}, front); err != nil {
		return nil, fmt.Errorf("reading the Service: %w", err)
	}
	port := front.Spec.Ports[0]
	target, err := p.port(port.TargetPort)
	if err != nil {
		return nil, err
	}
	slices, err := atLeast(ctx, slicesSince)
	if err != nil {
		return nil, err
	}
	p.Endpoints = NewEndpoints(
		api, client.ObjectKeyFromObject(front), discoveryv1.EndpointPort{Name: &port.Name, Port: &target}, !slices)
	return p, nil
}

// Reload has replicas that start from now on run what the Deployment says now.
func (p *Production) Reload(ctx context.Context) error {
	deployment := &appsv1.Deployment{}
	if err := p.api.Get(ctx, p.deployment, deployment); err != nil {
		return fmt.Errorf("reading the Deployment: %w", err)
	}
	template := deployment.Spec.Template.Spec
	identity, err := p.cluster.serviceAccount(ctx, p.api, p.deployment.Namespace, template.ServiceAccountName)
	if err != nil {
		return err
	}
	p.identity, p.container = identity, template.Containers[0]
	return nil
}

// Image returns that of the Deployment's container.
func (p *Production) Image() string {
	return p.container.Image
}

// serviceAccount returns the configuration of a pod that runs as a ServiceAccount.
func (c *Cluster) serviceAccount(ctx context.Context, api client.Client, namespace, name string) (*rest.Config, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(tokenLife / time.Second)),
	}}
	if err := api.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("requesting a token of the ServiceAccount: %w", err)
	}
	config := rest.AnonymousClientConfig(c.Config())
	config.QPS, config.BearerToken = -1, request.Status.Token
	return config, nil
}

// Identity returns the configuration that a pod of the Deployment has.
func (p *Production) Identity() *rest.Config {
	return rest.CopyConfig(p.identity)
}

// Start runs a replica and returns once it is ready. The API server hears of it a
// moment later, as Endpoints.Ready tells.
func (p *Production) Start(ctx context.Context, options ReplicaOptions) (*Operator, error) {
	binary, err := operatorBinary(options.Binary)
	if err != nil {
		return nil, err
	}
	name := p.cluster.uniqueName("operator")
	kubeconfig, err := p.cluster.WriteKubeconfig(name, cmp.Or(options.Config, p.identity))
	if err != nil {
		return nil, err
	}
	args, health, err := p.arguments(options.Address)
	if err != nil {
		return nil, err
	}
	process, err := p.cluster.startProcess(ctx, processSpec{
		name: name, path: binary,
		args:     slices.Concat(args, []string{"--kubeconfig", kubeconfig}, options.Args),
		env:      slices.Concat(operatorEnv(), p.environment(), []string{clockOffset + "=" + options.Clock.String()}, options.Env),
		readyURL: health + "/readyz",
	})
	if err != nil {
		return nil, err
	}
	replica := &Operator{Process: process, Address: options.Address, WebhookPort: int(*p.Endpoints.port.Port), HealthURL: health}
	p.Add(replica)
	return replica, nil
}

// Stop ends a replica as the deletion of its pod does: the API server is told not to
// hand it new calls while it gets SIGTERM.
func (p *Production) Stop(replica *Operator) error {
	p.Terminate(replica)
	return replica.Stop()
}

// arguments are those of the Deployment, for a replica that has one address of several
// on this machine. health is the URL of its probes.
func (p *Production) arguments(address string) (args []string, health string, err error) {
	metrics, metricsErr := p.port(intstr.FromString(metricsPort))
	probes, probesErr := p.port(intstr.FromString(healthPort))
	if err := errors.Join(metricsErr, probesErr); err != nil {
		return nil, "", err
	}
	at := func(port int32) string { return net.JoinHostPort(address, strconv.Itoa(int(port))) }
	for _, argument := range p.container.Args {
		args = append(args, os.Expand(strings.NewReplacer("$(", "${", ")", "}").Replace(argument), p.variable))
	}
	return append(args,
		"--webhook-bind-address", address, "--metrics-bind-address", at(metrics), "--health-probe-bind-address", at(probes),
	), "http://" + at(probes), nil
}

// environment are the variables of the container.
func (p *Production) environment() []string {
	var environment []string
	for _, variable := range p.container.Env {
		environment = append(environment, variable.Name+"="+p.variable(variable.Name))
	}
	return environment
}

// variable returns the value of one of the container's variables. The only fields that are known are the namespace and the
// limit of memory.
func (p *Production) variable(name string) string {
	for _, variable := range p.container.Env {
		switch {
		case variable.Name != name:
		case variable.ValueFrom == nil:
			return variable.Value
		case variable.ValueFrom.ResourceFieldRef != nil:
			return strconv.FormatInt(p.container.Resources.Limits.Memory().Value(), 10)
		default:
			return p.deployment.Namespace
		}
	}
	return ""
}

// port finds a port of the container.
func (p *Production) port(target intstr.IntOrString) (int32, error) {
	for _, port := range p.container.Ports {
		if port.Name == target.StrVal || port.ContainerPort == target.IntVal {
			return port.ContainerPort, nil
		}
	}
	return 0, fmt.Errorf("the Deployment's container has no port %s", target.String())
}
