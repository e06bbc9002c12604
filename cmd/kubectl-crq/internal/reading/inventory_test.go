// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func TestAnInventoryIsOneRound(t *testing.T) {
	reader, calls := counted(t, map[string]error{"CronJobList": forbidden},
		append(story(), builders.Pod("other", "bare").Obj(), builders.ResourceQuota("other", "own"))...)
	got, err := reader.Inventory(t.Context(), "")
	if err != nil || calls.calls.Load() != 13 {
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

func TestAnInventoryOfOneNamespaceTellsAMissingOneFromOneWithoutQuotas(t *testing.T) {
	there := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	for name, test := range map[string]struct {
		refused map[string]error
		objects []client.Object
		missing bool
	}{
		"it doesn't exist":            {missing: true},
		"it has no quota":             {objects: []client.Object{there}},
		"it has one":                  {objects: []client.Object{builders.ResourceQuota("shop", "own")}},
		"nobody may read namespaces":  {refused: map[string]error{"Namespace": forbidden}},
		"other namespaces have quota": {objects: []client.Object{builders.ResourceQuota("other", "own")}, missing: true},
	} {
		t.Run(name, func(t *testing.T) {
			reader, _ := counted(t, test.refused, test.objects...)
			_, err := reader.Inventory(t.Context(), "shop")
			if missing := (*MissingNamespaceError)(nil); errors.As(err, &missing) != test.missing || !test.missing && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}
