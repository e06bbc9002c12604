// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command judge follows a control plane's etcd until Ctrl-C, tells of every
// violation of a ClusterResourceQuota when it happens, and at the end the most
// that ever lived under each quota. With -kubeconfig it also checks at the end
// that the operator's figures are what lives.
//
// It exits with 1 if there was a violation or a difference, and with 2 if it
// could not judge.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	exitViolated = 1
	exitFailed   = 2
)

type options struct {
	etcd       string
	kubeconfig string
}

func main() {
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintf(os.Stderr, "judge: %v\n", err)
		os.Exit(exitFailed)
	}
	log.SetLogger(logr.Discard()) // What the client logs is of no use here.

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // A second signal ends the program at once.
	os.Exit(exitCode(run(ctx, o)))
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("judge", flag.ContinueOnError)
	flags.StringVar(&o.etcd, "etcd", "", "where etcd serves clients, as in http://127.0.0.1:2379")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file with which to read the operator's figures at the end; empty: don't")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.etcd == "":
		return o, errors.New("-etcd is missing: want the URL of etcd, as in http://127.0.0.1:2379")
	}
	return o, nil
}

func exitCode(verdict verdict, err error) int {
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "judge: %v\n", err)
		return exitFailed
	case verdict == broken:
		return exitViolated
	}
	return 0
}

func connect(kubeconfig string) (client.Reader, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading -kubeconfig: %w", err)
	}
	config.Timeout = timeout
	types := runtime.NewScheme()
	if err := quotav1.AddToScheme(types); err != nil {
		return nil, err
	}
	api, err := client.New(config, client.Options{Scheme: types})
	if err != nil {
		return nil, fmt.Errorf("connecting with -kubeconfig: %w", err)
	}
	return api, nil
}
