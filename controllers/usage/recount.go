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
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

const (
	// newestTimeout bounds the lists of all objects that the quotas limit.
	newestTimeout = 2 * time.Minute
	// recountTimeout bounds the write of one ledger.
	recountTimeout = 10 * time.Second
)

// NewestIn tells how far a count of a resource must have come, as a resourceVersion, to
// include all objects that are stored now.
type NewestIn func(ctx context.Context, resource schema.GroupResource) (uint64, error)

// NewNewestIn makes a NewestIn. A resource that nothing serves has no objects.
func NewNewestIn(discovery Discovery, objects *Lookup) NewestIn {
	return func(ctx context.Context, resource schema.GroupResource) (uint64, error) {
		if resource == ledger.Namespaces {
			return objects.Newest(ctx, namespaces())
		}
		served, err := discovery.Find(ctx, resource)
		if err != nil || len(served.Versions) == 0 {
			return 0, err
		}
		return objects.Newest(ctx, resource.WithVersion(served.Versions[0]))
	}
}

// Recounts have quotas counted anew before anything is granted under them: what a
// ledger says is used may be from before the API server stopped to ask.
type Recounts struct {
	client     client.Reader
	group      *driver.Group
	evaluators *evaluation.Evaluators
	newest     NewestIn
}

// NewRecounts makes Recounts.
func NewRecounts(client client.Reader, group *driver.Group, evaluators *evaluation.Evaluators, newest NewestIn) *Recounts {
	return &Recounts{client: client, group: group, evaluators: evaluators, newest: newest}
}

// Recount has the quotas counted anew that are concerned. Each then grants nothing until
// a count is settled that includes all objects that are stored now: a leader that has
// seen less, such as one that was deposed, can't settle. Its error tells of each ledger
// that couldn't be written.
func (r *Recounts) Recount(ctx context.Context, concerned func(types.UID) bool) error {
	quotas := &quotav1.ClusterResourceQuotaList{}
	if err := r.client.List(ctx, quotas); err != nil {
		return fmt.Errorf("listing quotas: %w", err)
	}
	stored := newestOf{newest: r.newest, known: map[schema.GroupResource]uint64{}}
	var mu sync.Mutex // guards failures
	var failures []error
	var recounts errgroup.Group
	recounts.SetLimit(reconcilesAtOnce)
	for i := range quotas.Items {
		quota := &quotas.Items[i]
		if !concerned(quota.UID) {
			continue
		}
		tracked, _ := r.evaluators.Resources(quota.Spec.Quota.Hard)
		newest, err := stored.of(ctx, maps.Keys(tracked))
		if err != nil {
			failures = append(failures, fmt.Errorf("having quota %s counted anew: %w", quota.Name, err))
			continue
		}
		recounts.Go(func() error {
			if err := r.recount(ctx, quota, newest); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, err)
			}
			return nil
		})
	}
	_ = recounts.Wait() // each failure is kept
	return errors.Join(failures...)
}

func (r *Recounts) recount(ctx context.Context, quota *quotav1.ClusterResourceQuota, newest map[schema.GroupResource]uint64) error {
	ctx, cancel := context.WithTimeout(ctx, recountTimeout)
	defer cancel()
	err := r.group.Edit(ctx, quota.Name, func(draft *ledger.Draft) {
		if draft.Quota() == quota.UID {
			draft.Recount(newest)
		}
	})
	if err != nil {
		return fmt.Errorf("having quota %s counted anew: %w", quota.Name, err)
	}
	return nil
}

// newestOf looks for the newest object of each resource once.
type newestOf struct {
	newest NewestIn
	known  map[schema.GroupResource]uint64
}

// of returns the newest version of each resource, and of namespaces.
func (n *newestOf) of(ctx context.Context, resources func(func(schema.GroupResource) bool)) (map[schema.GroupResource]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, newestTimeout)
	defer cancel()
	newest := map[schema.GroupResource]uint64{}
	look := func(resource schema.GroupResource) (err error) {
		if _, known := n.known[resource]; !known {
			if n.known[resource], err = n.newest(ctx, resource); err != nil {
				delete(n.known, resource)
				return err
			}
		}
		newest[resource] = n.known[resource]
		return nil
	}
	for resource := range resources {
		if err := look(resource); err != nil {
			return nil, err
		}
	}
	return newest, look(ledger.Namespaces)
}
