// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The exit codes of runJudge. They tell what was violated from what failed.
const (
	exitViolated  = 1
	exitNotJudged = 2
)

type judgeOptions struct {
	etcd       string
	kubeconfig string
}

// runJudge follows a control plane's etcd until Ctrl-C, tells of every
// violation of a ClusterResourceQuota when it happens, and at the end the most
// that ever lived under each quota. With -kubeconfig it also checks at the end
// that the operator's figures are what lives.
//
// It returns 1 if there was a violation or a difference, and 2 if it
// could not judge.
func runJudge(args []string) int {
	var o judgeOptions
	flags := flagsOf("judge")
	flags.StringVar(&o.etcd, "etcd", "", "where etcd serves clients, as in http://127.0.0.1:2379")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file with which to read the operator's figures at the end; empty: don't")
	_ = flags.Parse(args)
	if err := o.validate(flags.Args()); err != nil {
		return judgeCode(broken, err)
	}
	return judgeCode(judgeUntil(signalled(), o))
}

func (o judgeOptions) validate(left []string) error {
	switch {
	case len(left) > 0:
		return fmt.Errorf("unexpected argument %q", left[0])
	case o.etcd == "":
		return errors.New("-etcd is missing: want the URL of etcd, as in http://127.0.0.1:2379")
	}
	return nil
}

func judgeCode(verdict verdict, err error) int {
	if err == nil && verdict == broken {
		return exitViolated
	}
	return ended("judge", err, exitNotJudged)
}

// readerOf returns a client by a kubeconfig file.
func readerOf(kubeconfig string) (client.Reader, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading -kubeconfig: %w", err)
	}
	config.Timeout = lookTimeout
	api, err := connect(config)
	if err != nil {
		return nil, fmt.Errorf("connecting with -kubeconfig: %w", err)
	}
	return api, nil
}
