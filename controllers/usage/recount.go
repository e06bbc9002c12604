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

package usage

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// recountTimeout bounds what a recount may take for one quota.
const recountTimeout = 10 * time.Second

// Recount makes a function that has every quota counted anew before anything is
// granted under it: what a ledger says is used may be from before the API server
// stopped to ask. Its error tells of the first ledger that couldn't be written.
func Recount(reader client.Reader, group *driver.Group) func(context.Context) error {
	return func(ctx context.Context) error {
		quotas := &quotav1.ClusterResourceQuotaList{}
		if err := reader.List(ctx, quotas); err != nil {
			return fmt.Errorf("listing quotas: %w", err)
		}
		var recounts errgroup.Group
		recounts.SetLimit(reconcilesAtOnce)
		for i := range quotas.Items {
			recounts.Go(func() error { return recount(ctx, group, quotas.Items[i].Name) })
		}
		return recounts.Wait()
	}
}

func recount(ctx context.Context, group *driver.Group, quota string) error {
	ctx, cancel := context.WithTimeout(ctx, recountTimeout)
	defer cancel()
	if err := group.Edit(ctx, quota, func(draft *ledger.Draft) { draft.Recount(nil) }); err != nil {
		return fmt.Errorf("having quota %s counted anew: %w", quota, err)
	}
	return nil
}
