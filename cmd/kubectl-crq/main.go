// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-crq is a plugin of kubectl: kubectl crq tells administrators
// who uses what of a ClusterResourceQuota, and project owners what still fits.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/command"
)

func main() {
	// Libraries would write between the lines of what people read; what matters
	// of it comes back as an error.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := command.Run(ctx, command.Arguments(os.Args), genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(status)
}
