// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-crq is a plugin of kubectl: kubectl crq tells administrators
// who uses what of a ClusterResourceQuota, and project owners what still fits.
//
// This package has the commands: their flags, what they read from the cluster, and how they
// end. What they compute and how it looks is in packages of their own.
//
// Commands only read. They work with the rights of whoever runs them: what an
// owner can't read is left out or said, never asked for again as somebody else.
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
)

func main() {
	// Libraries would write between the lines of what people read; what matters
	// of it comes back as an error.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := Run(ctx, Arguments(os.Args), genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(status)
}
