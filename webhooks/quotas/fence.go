// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// fenceTimeout bounds the write of a fence. The API server waits for the edit's answer
// for longer.
const fenceTimeout = 5 * time.Second

// Ledgers changes the ledgers of quotas.
type Ledgers interface {
	// Impose returns once the change of a quota's ledger is stored. If there is
	// no ledger, it makes a ledger that grants nothing yet.
	Impose(ctx context.Context, quota string, uid types.UID, change func(*ledger.Draft)) error
}

// Fences makes lowered limits bind from before the edit is answered. Other replicas see
// the edited spec a moment later, and would grant by the one before.
type Fences struct {
	clock   clock.PassiveClock
	ledgers Ledgers
	// life is how long an edit may take to be stored, for people.
	life time.Duration
}

// NewFences makes Fences. The life is that of a reservation: after it, the API server
// has certainly given up on the edit.
func NewFences(clock clock.PassiveClock, ledgers Ledgers, life time.Duration) *Fences {
	return &Fences{clock: clock, ledgers: ledgers, life: life}
}

// impose writes the lowered limits of an edit into the quota's ledger. If that fails, the
// edit must be refused.
func (f *Fences) impose(ctx context.Context, previous, current *quotav1.ClusterResourceQuota) error {
	lowered := loweredLimits(previous, current)
	if len(lowered.Hard) == 0 || isDryRun(ctx) {
		return nil
	}
	fence := ledger.Fence{
		Generation: max(current.Generation, previous.Generation+1),
		Hard:       lowered.Hard,
		Surge:      lowered.Surge,
		Until:      f.clock.Now().Add(f.life).Truncate(time.Second),
	}
	raise := func(draft *ledger.Draft) {
		draft.UpdateFence(previous.Generation, definition.EnforcedLimits(previous.Spec))
		draft.SetFence(fence)
	}
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	if err := f.ledgers.Impose(ctx, current.Name, current.UID, raise); err != nil {
		return apierrors.NewServiceUnavailable(outcomes.NotFenced.Text(current.Name, err))
	}
	return nil
}

// loweredLimits returns the limits that are enforced and are lower than they were, with surge or without, or weren't
// enforced. A replica may know a version of the spec before the previous one, by which more was allowed of a resource that
// is newly limited.
func loweredLimits(previous, current *quotav1.ClusterResourceQuota) (lowered ledger.Limits) {
	before, after := definition.EnforcedLimits(previous.Spec), definition.EnforcedLimits(current.Spec)
	most := before.Most()
	var names []corev1.ResourceName
	for name, withSurge := range after.Most() {
		limit := after.Hard[name]
		if earlier, enforced := before.Hard[name]; !enforced || limit.Cmp(earlier) < 0 || withSurge.Cmp(most[name]) < 0 {
			names = append(names, name)
		}
	}
	return after.Of(names)
}

func isDryRun(ctx context.Context) bool {
	request, err := admission.RequestFromContext(ctx)
	return err == nil && ptr.Deref(request.DryRun, false)
}
