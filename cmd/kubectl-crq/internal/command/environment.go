// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
)

// defaultTimeout bounds each call where --request-timeout doesn't. kubectl's own
// default is to wait forever.
const defaultTimeout = 30 * time.Second

// environment is what every command is given: where it reads and writes, and
// kubectl's usual flags.
type environment struct {
	streams genericiooptions.IOStreams
	config  *genericclioptions.ConfigFlags
	clock   clock.WithTicker
}

func newEnvironment(streams genericiooptions.IOStreams) *environment {
	config := genericclioptions.NewConfigFlags(true)
	config.Timeout = ptr.To(defaultTimeout.String())
	return &environment{streams: streams, config: config, clock: clock.RealClock{}}
}

// client makes the client that the flags describe, for Kubernetes' own types
// and ours. --request-timeout bounds each of its calls.
func (e *environment) client() (client.WithWatch, error) {
	config, err := e.restConfig()
	if err != nil {
		return nil, err
	}
	return newClient(config)
}

// knownClient is client for the kinds of reading.Mapper alone. It makes no call but those of the command.
func (e *environment) knownClient() (client.Client, error) {
	config, err := e.restConfig()
	if err != nil {
		return nil, err
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	made, err := client.New(config, client.Options{Scheme: scheme, Mapper: reading.Mapper()})
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	return made, nil
}

// watcher makes a client whose calls nothing bounds but their contexts, for
// watches; and returns the bound of --request-timeout for the others, 0 for none.
func (e *environment) watcher() (client.WithWatch, time.Duration, error) {
	config, err := e.restConfig()
	if err != nil {
		return nil, 0, err
	}
	timeout := config.Timeout
	config.Timeout = 0
	made, err := newClient(config)
	return made, timeout, err
}

func (e *environment) restConfig() (*rest.Config, error) {
	config, err := e.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	// What the API server warns of is for whoever runs the command.
	config.WarningHandler = rest.NewWarningWriter(e.streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	return config, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), quotav1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	return scheme, nil
}

func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	made, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	return made, nil
}

// namespace returns the namespace that the flags, or the kubeconfig's context, name.
func (e *environment) namespace() (string, error) {
	namespace, _, err := e.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("finding the namespace: %w", err)
	}
	return namespace, nil
}

// print writes what was asked for.
func (e *environment) print(text string) error {
	if _, err := fmt.Fprint(e.streams.Out, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// bounded returns a context for one call; a timeout of 0 is none.
func bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}
