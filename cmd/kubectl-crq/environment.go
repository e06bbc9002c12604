// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// defaultTimeout bounds each call where --request-timeout doesn't. kubectl's own default is to wait forever.
const defaultTimeout = 30 * time.Second

// environment is every command's environment: its streams, and kubectl's usual flags.
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

// client makes the client that the flags describe, for Kubernetes' own types and ours. --request-timeout bounds each of
// its calls. The cluster's resources are remembered between commands, as by kubectl.
func (e *environment) client() (client.Client, error) {
	config, err := e.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	// The API server's warnings are for the user.
	config.WarningHandler = rest.NewWarningWriter(e.streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	mapper, err := e.config.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("finding what the cluster serves: %w", err)
	}
	made, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	return made, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), quotav1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	return scheme, nil
}

// place returns the namespace that the flags, or the kubeconfig's context, name, and the client.
func (e *environment) place() (string, client.Client, error) {
	namespace, _, err := e.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", nil, fmt.Errorf("finding the namespace: %w", err)
	}
	cluster, err := e.client()
	return namespace, cluster, err
}

// print writes the answer.
func (e *environment) print(text string) error {
	if _, err := fmt.Fprint(e.streams.Out, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// fallbackWidth is that of a terminal which doesn't say how wide it is.
const fallbackWidth = 80

// style looks at the output: a terminal has a width and, unless NO_COLOR or
// TERM=dumb forbid it, colours; anything else has neither.
func (e *environment) style() render.Style {
	if !e.onTerminal() {
		return render.Style{}
	}
	width, _ := e.size()
	return render.Style{Width: width, Colour: printers.AllowsColorOutput(e.streams.Out)}
}

func (e *environment) onTerminal() bool {
	return os.Getenv("TERM") != "dumb" && printers.IsTerminal(e.streams.Out)
}

// size returns the terminal's columns and lines; no lines if it doesn't say.
func (e *environment) size() (columns, lines int) {
	file, ok := e.streams.Out.(*os.File)
	if !ok {
		return fallbackWidth, 0
	}
	columns, lines, err := term.GetSize(int(file.Fd()))
	if err != nil || columns == 0 {
		return fallbackWidth, 0
	}
	return columns, lines
}
