// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// Ledgers is how stored ledgers are read.
type Ledgers struct {
	// Live must read from the API server, not from a cache.
	Live client.Reader
	// Intact reports whether a ledger is as the operator wrote it.
	Intact func(*quotav1.QuotaLedger) bool
	// Size returns the size of a ledger. It is asked at each scrape.
	Size func(*quotav1.QuotaLedger) int
}

// named returns the UID of the ledger that the quota's status must name: that of
// the open one, even if the status was edited; otherwise the name stays.
//
// The ledgers that were ever open form a chain: usage.Recovery opens a ledger
// only after it has made the quota's status name it, by a patch that fails if the
// status has changed since Recovery read it. The status names the end of that
// chain, and the next ledger takes over the charges in flight by it. A write of
// the status could break the chain only by naming a ledger that is not its end.
// That can't happen here:
//
//   - Only a ledger that is stored and open is named, and that is the end of the chain
//     at the moment at which it is read: a ledger that was open before is deleted.
//   - It is read live, and after the quota. From the moment at which the quota
//     was read until its status is written, the quota is unchanged, because the
//     patch carries its resourceVersion. To open another ledger in between,
//     Recovery would have had to name it, and would have changed the quota. It
//     would not have had to if the status named that ledger already; but the UID
//     of a ledger that was made later couldn't be known, and an earlier one is
//     gone.
//   - If this write comes first, Recovery's patch fails, and Recovery looks again.
//
// A ledger that isn't intact may look open because an edit removed its seal.
func (c *QuotaController) named(ctx context.Context, quota *quotav1.ClusterResourceQuota, known ledger.State) (types.UID, error) {
	current := quota.Status.Ledger
	if known.Quota != quota.UID || !known.Sealed.IsZero() {
		return current, nil
	}
	// Nearly always the cache has the ledger that the status names.
	ledger, err := c.read(ctx, c.Client, quota.Name)
	if err != nil || ledger == nil || ledger.UID == current {
		return current, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ledger, err = c.read(ctx, c.Ledgers.Live, quota.Name)
	if err != nil || ledger == nil || !c.open(ledger, quota) {
		return current, err
	}
	return ledger.UID, nil
}

// read returns the quota's ledger; nil if there is none.
func (*QuotaController) read(ctx context.Context, from client.Reader, quota string) (*quotav1.QuotaLedger, error) {
	ledger := &quotav1.QuotaLedger{}
	err := from.Get(ctx, client.ObjectKey{Name: quota}, ledger)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("reading ledger %s: %w", quota, err)
	}
	return ledger, nil
}

// open reports whether requests are admitted by a ledger of this quota.
func (c *QuotaController) open(ledger *quotav1.QuotaLedger, quota *quotav1.ClusterResourceQuota) bool {
	return metav1.IsControlledBy(ledger, quota) && ledger.Entries.Sealed == nil && c.Ledgers.Intact(ledger)
}
