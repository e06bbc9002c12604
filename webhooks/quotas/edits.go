// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/history"
)

// Recorder remembers who asked to change a quota.
type Recorder interface {
	Edited(edit history.Edit)
}

// Edits notes who asked to change a quota. Whether an edit is stored isn't known yet: another webhook may refuse it.
type Edits struct {
	clock    clock.PassiveClock
	recorder Recorder
}

// NewEdits makes Edits.
func NewEdits(clock clock.PassiveClock, recorder Recorder) *Edits {
	return &Edits{clock: clock, recorder: recorder}
}

func (e *Edits) note(ctx context.Context, previous, current *quotav1.ClusterResourceQuota) {
	request, err := admission.RequestFromContext(ctx)
	if e == nil || err != nil || isDryRun(ctx) {
		return
	}
	if edit, changed := history.NewEdit(e.clock.Now(), request.UserInfo.Username, previous, current); changed {
		e.recorder.Edited(edit)
	}
}
