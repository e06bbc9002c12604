/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package command

import (
	"context"
	"fmt"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/live"
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
	options := live.Options{Name: name, Interval: flags.interval, Timeout: timeout}
	err = live.Follow(ctx, env.clock, reader, options, func(state live.State) error {
		return shown.show(topText(state.Quotas, name, flags.options(env.style())), state.Lost)
	})
	if closed := shown.close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("showing the quotas: %w", err)
	}
	return nil
}
