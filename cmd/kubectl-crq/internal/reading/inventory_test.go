// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"fmt"
	"testing"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func TestAnInventoryIsOneRound(t *testing.T) {
	reader, calls := counted(t, map[string]error{"CronJobList": forbidden},
		append(story(), builders.Pod("other", "bare").Obj(), builders.ResourceQuota("other", "own"))...)
	got, err := reader.Inventory(t.Context(), "")
	if err != nil || calls.calls.Load() != 11 {
		t.Fatalf("%d calls, error %v", calls.calls.Load(), err)
	}
	parts := got.ByNamespace()
	text := fmt.Sprint(len(parts), len(parts["shop"].Pods), len(parts["shop"].ReplicaSets), len(parts["shop"].Jobs), len(parts["other"].Pods),
		len(parts["other"].Limits.Quotas), parts["other"].Forbidden)
	if text != "2 1 2 2 1 1 [cronjobs]" {
		t.Errorf("got %s", text)
	}
	reader, _ = counted(t, map[string]error{"LocalResourceQuotaList": forbidden, "ResourceQuotaList": forbidden})
	if _, err := reader.Inventory(t.Context(), ""); err == nil {
		t.Error("without any quota there is no answer")
	}
}
