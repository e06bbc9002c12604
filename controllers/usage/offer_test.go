// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// offering is a discovery that fails, in part or altogether.
type offering struct {
	discovery.ServerResourcesInterfaceWithContext

	err error
	// silent: there is no answer.
	silent bool
}

func (o *offering) ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	if o.silent {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	return nil, []*metav1.APIResourceList{
		{GroupVersion: "batch/v1", APIResources: []metav1.APIResource{{Name: "jobs", Namespaced: true}, {Name: "jobs/status", Namespaced: true}}},
		{GroupVersion: "batch/v1beta1", APIResources: []metav1.APIResource{{Name: "jobs", Namespaced: true}}},
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "nodes"}, {Name: "pods", Namespaced: true}}},
	}, o.err
}

func TestTheOfferIsWhatWasLastKnown(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	asked := &offering{err: errors.New("no answer")}
	offer := NewOffer(clock, asked)
	expect := func(when string, want ...schema.GroupResource) {
		t.Helper()
		if diff := cmp.Diff(want, offer.Namespaced(t.Context())); diff != "" {
			t.Errorf("%s (-want,+got):\n%s", when, diff)
		}
	}
	jobs, pods := schema.GroupResource{Group: "batch", Resource: "jobs"}, schema.GroupResource{Resource: "pods"}
	expect("without an answer")
	asked.err = &discovery.ErrGroupDiscoveryFailed{}
	expect("a moment later")
	clock.Step(offerFor)
	expect("with a part", jobs, pods)
	clock.Step(offerFor)
	asked.err = errors.New("no answer")
	expect("without another answer", jobs, pods)
}

// An API server that doesn't answer keeps no caller longer than the caller's own
// deadline.
func TestNobodyWaitsForTheOfferBeyondItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bubble := clock.RealClock{}
		offer := NewOffer(bubble, &offering{silent: true})
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := bubble.Now()
				offer.Namespaced(ctx)
				if took := bubble.Since(began); took != time.Second {
					t.Errorf("waited for %s", took)
				}
			})
		}
		callers.Wait()
		bubble.Sleep(time.Minute) // the reads have ended
	})
}
