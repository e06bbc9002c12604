// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// nameIndex finds the views of one quota in all namespaces.
const nameIndex = "metadata.name"

// addIndex adds the controller's index to the manager's cache, which follows the
// views from then on. A replica that doesn't lead has no use for them.
func addIndex(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &quotav1.LocalResourceQuota{}, nameIndex, func(object client.Object) []string {
		return []string{object.GetName()}
	})
	if err != nil {
		return fmt.Errorf("indexing local views by name: %w", err)
	}
	return nil
}
