// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/judge"
)

const (
	// lookInterval between two looks for violations.
	lookInterval = 500 * time.Millisecond
	// lookTimeout of each look. An etcd that is away for longer is an error.
	lookTimeout = 30 * time.Second
)

// session is one run of the program, from the first look to the table.
type session struct {
	judge *judge.Judge
	// api is nil where the operator's figures are not to be checked.
	api    client.Reader
	out    printer
	teller teller
}

// verdict on everything that was seen.
type verdict int

const (
	// kept: no violation, and no difference where figures were checked.
	kept verdict = iota
	// broken is anything else.
	broken
)

// judgeUntil judges until ctx ends.
func judgeUntil(ctx context.Context, o judgeOptions) (given verdict, err error) {
	s := &session{out: printer{os.Stdout}, teller: teller{}}
	if o.kubeconfig != "" {
		if s.api, err = readerOf(o.kubeconfig); err != nil {
			return broken, err
		}
	}
	// The signal ends the looks, not the following: the last look comes after it.
	following := context.WithoutCancel(ctx)
	if s.judge, err = judge.Start(following, o.etcd); err != nil {
		return broken, err
	}
	defer func() { err = errors.Join(err, s.judge.Stop()) }()
	s.out.linef("Following until Ctrl-C.")
	if err := s.follow(ctx); err != nil {
		return broken, err
	}
	return s.conclude(following)
}

// follow looks until ctx ends.
func (s *session) follow(ctx context.Context) error {
	for {
		if _, err := s.look(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookInterval):
		}
	}
}

// look tells of the violations that are new. What can't be judged comes with
// the table of what can.
func (s *session) look(ctx context.Context) (judge.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	report, err := s.judge.Report(ctx)
	s.teller.tell(s.out, report)
	if err != nil && len(report.Quotas) > 0 {
		table(s.out, report)
	}
	return report, err
}

// conclude takes the last look.
func (s *session) conclude(ctx context.Context) (verdict, error) {
	report, err := s.look(ctx)
	if err != nil {
		return broken, err
	}
	table(s.out, report)
	given := kept
	if s.api != nil {
		given = s.check(ctx)
	}
	for _, quota := range report.Quotas {
		if len(quota.Violations) > 0 {
			given = broken
		}
	}
	return given, nil
}

// check prints where the operator's figures differ from what lives.
func (s *session) check(ctx context.Context) verdict {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	err := s.judge.Agrees(ctx, s.api)
	if err == nil {
		s.out.linef("The operator's figures are what lives.")
		return kept
	}
	s.out.linef("The operator's figures are not what lives:\n%v", err)
	return broken
}
