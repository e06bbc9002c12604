// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-crq is a plugin of kubectl: kubectl crq shows administrators the
// use of a ClusterResourceQuota, and project owners how much room they have.
//
// This package has the commands: their flags, their reads from the cluster, and
// how they end. Their computations and their output are in packages of their own.
//
// Commands only read. They work with the user's rights: objects that an owner
// can't read are left out or named, never requested again with other rights.
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
	// Libraries would write between the lines of the output; their important messages come back as errors.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := Run(ctx, Arguments(os.Args), genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(status)
}
