// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// ledgers has one ledger, of the quota with the UID "u".
type ledgers struct {
	state ledger.State
	err   error
}

func (l *ledgers) Impose(_ context.Context, _ string, uid types.UID, change func(*ledger.Draft)) error {
	if l.err != nil || l.state.Quota != uid {
		return l.err
	}
	draft := ledger.Edit(l.state)
	change(draft)
	l.state = draft.State()
	return nil
}

func edition(generation int64, hard ...string) *quotav1.ClusterResourceQuota {
	made := quota("payments", hard...)
	made.UID, made.Generation = "u", generation
	return made
}

func TestALoweredLimitIsFencedBeforeTheEditIsAllowed(t *testing.T) {
	fence := func(hard string) ledger.Fence {
		return ledger.Fence{
			Generation: 4, Until: time.Unix(60, 0),
			Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(hard)},
		}
	}
	pods := func(number string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourcePods: resource.MustParse(number)}
	}
	surging := func(edition *quotav1.ClusterResourceQuota, surge string) *quotav1.ClusterResourceQuota {
		edition.Spec.Surge.Hard = pods(surge)
		return edition
	}
	withSurge := func(fence ledger.Fence, surge string) ledger.Fence {
		fence.Surge = pods(surge)
		return fence
	}
	for name, test := range map[string]struct {
		previous, current *quotav1.ClusterResourceQuota
		dryRun            bool
		want              ledger.Fence
	}{
		"a lower surge binds":                   {previous: surging(edition(3, "pods", "6"), "3"), current: surging(edition(4, "pods", "6"), "1"), want: withSurge(fence("6"), "1")},
		"no surge binds":                        {previous: surging(edition(3, "pods", "6"), "3"), current: edition(4, "pods", "6"), want: fence("6")},
		"a higher surge does not":               {previous: surging(edition(3, "pods", "6"), "1"), current: surging(edition(4, "pods", "6"), "3")},
		"nor if all of it becomes the limit's":  {previous: surging(edition(3, "pods", "6"), "3"), current: surging(edition(4, "pods", "9"), "0")},
		"a lower limit with more surge binds":   {previous: surging(edition(3, "pods", "6"), "1"), current: surging(edition(4, "pods", "3"), "5"), want: withSurge(fence("3"), "5")},
		"a lower limit binds":                   {previous: edition(3, "pods", "6"), current: edition(4, "pods", "3"), want: fence("3")},
		"a higher one does not":                 {previous: edition(3, "pods", "3"), current: edition(4, "pods", "6")},
		"nor the same in other words":           {previous: edition(3, "pods", "3"), current: edition(4, "pods", "3000m")},
		"only what is lower binds":              {previous: edition(3, "pods", "6", "services", "1"), current: edition(4, "pods", "3", "services", "2"), want: fence("3")},
		"a limit that is new binds":             {previous: edition(3, "services", "1"), current: edition(4, "services", "1", "pods", "3"), want: fence("3")},
		"a generation that isn't raised yet is": {previous: edition(3, "pods", "6"), current: edition(3, "pods", "3"), want: fence("3")},
		"a dry run changes nothing":             {previous: edition(3, "pods", "6"), current: edition(4, "pods", "3"), dryRun: true},
	} {
		t.Run(name, func(t *testing.T) {
			store := &ledgers{state: ledger.State{Basis: ledger.Basis{Quota: "u"}}}
			ctx := admission.NewContextWithRequest(t.Context(), admission.Request{
				AdmissionRequest: admissionv1.AdmissionRequest{DryRun: ptr.To(test.dryRun)},
			})
			fences := NewFences(clocktesting.NewFakeClock(time.Unix(0, 0)), store, time.Minute)
			if err := fences.impose(ctx, test.previous, test.current); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, store.state.Fence); diff != "" {
				t.Errorf("fence (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestALimitIsNotLoweredIfItCannotBindAtOnce(t *testing.T) {
	fences := NewFences(clocktesting.NewFakeClock(time.Unix(0, 0)), &ledgers{err: errors.New("no answer")}, time.Minute)
	err := fences.impose(t.Context(), edition(3, "pods", "6"), edition(4, "pods", "3"))
	want := "quota payments is unchanged, because a lower limit must first be written into the quota's ledger, and that failed: no answer; " +
		"try again, and if it stays so, look at the quota's condition Ready"
	if !apierrors.IsServiceUnavailable(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A replica that knows the spec before both edits goes by the higher limit that it had.
func TestALimitThatIsRemovedAndComesBackLowerBindsAtOnce(t *testing.T) {
	store := &ledgers{state: ledger.State{Basis: ledger.Basis{Quota: "u"}}}
	fences := NewFences(clocktesting.NewFakeClock(time.Unix(0, 0)), store, time.Minute)
	ctx := admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{}})
	first, without, lower := edition(3, "pods", "10", "services", "5"), edition(4, "services", "5"), edition(5, "pods", "3", "services", "5")
	for _, edit := range [][2]*quotav1.ClusterResourceQuota{{first, without}, {without, lower}} {
		if err := fences.impose(ctx, edit[0], edit[1]); err != nil {
			t.Fatal(err)
		}
	}
	want := ledger.Fence{Generation: 5, Hard: corev1.ResourceList{"pods": resource.MustParse("3")}, Until: time.Unix(60, 0)}
	if diff := cmp.Diff(want, store.state.Fence); diff != "" {
		t.Errorf("fence (-want,+got):\n%s", diff)
	}
}
