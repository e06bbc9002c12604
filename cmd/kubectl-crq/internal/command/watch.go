// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
)

// watchTop shows quotas until ctx ends. A quota that isn't there at the start is an
// error; one that goes later is told of, for it may come again.
func watchTop(ctx context.Context, env *environment, flags *topFlags, name string) error {
	reader, timeout, err := env.watcher()
	if err != nil {
		return err
	}
	first, cancel := bounded(ctx, timeout)
	defer cancel()
	if _, _, err := readQuotas(first, reader, name); err != nil {
		return err
	}
	shown := newScreen(env)
	if err := shown.open(); err != nil {
		return err
	}
	options := reading.FollowOptions{Name: name, Interval: flags.interval, Timeout: timeout}
	err = reading.Follow(ctx, env.clock, reader, options, func(state reading.Snapshot) error {
		return shown.show(flags.text(env, state.Quotas, name), state.Lost)
	})
	if closed := shown.close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("showing the quotas: %w", err)
	}
	return nil
}
