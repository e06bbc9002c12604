// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// told are the events that were recorded, each as its object and its reason.
type told struct {
	mu     sync.Mutex // guards the fields below
	events []string
}

func (r *told) Eventf(regarding, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	about := regarding.(*corev1.ObjectReference)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("%s %s/%s %s: %s", about.Kind, about.Namespace, about.Name, about.UID, reason))
}

// drain returns the events since it was last called, after findWait at most.
func (r *told) drain() []string {
	<-clock.RealClock{}.After(2 * findWait)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}

func viewIn(namespace string) *quotav1.LocalResourceQuota {
	return &quotav1.LocalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "team", UID: "uid of view"}}
}

// clientWith returns a client of a cluster with these objects.
func clientWith(tb testing.TB, objects ...client.Object) client.Client {
	tb.Helper()
	scheme := runtime.NewScheme()
	if err := quotav1.AddToScheme(scheme); err != nil {
		tb.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func quotaOf(name string) *quotav1.ClusterResourceQuota {
	return &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name)}}
}

// refuses tells running Refusals of a refusal by a quota, which is in the cluster with the views.
func refuses(t *testing.T, test func(*Refusals, *told), views ...client.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		recorded := &told{}
		reader := clientWith(t, append(views, quotaOf("team"))...)
		refusals := NewRefusals(clock.RealClock{}, reader, reader, recorded)
		go func() {
			if err := refusals.Start(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		test(refusals, recorded)
	})
}

func TestARefusalIsToldOnTheQuotaAndInTheNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		views []client.Object
		want  []string
	}{
		"both have a UID": {
			views: []client.Object{viewIn("shop")},
			want:  []string{"ClusterResourceQuota /team uid of team: QuotaExceeded", "LocalResourceQuota shop/team uid of view: QuotaExceeded"},
		},
		"a view that doesn't come is told of without its UID": {
			want: []string{"ClusterResourceQuota /team uid of team: QuotaExceeded", "LocalResourceQuota shop/team : QuotaExceeded"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			refuses(t, func(refusals *Refusals, told *told) {
				refusals.Refused(refusal(quotav1.ReasonQuotaExceeded, exceeded))
				if diff := cmp.Diff(test.want, told.drain()); diff != "" {
					t.Errorf("told (-want,+got):\n%s", diff)
				}
			}, test.views...)
		})
	}
}

func TestABurstOfRefusalsIsToldOnce(t *testing.T) {
	refuses(t, func(refusals *Refusals, told *told) {
		for range 500 {
			refusals.Refused(refusal(quotav1.ReasonQuotaExceeded, exceeded))
		}
		if got := told.drain(); len(got) != 2 {
			t.Errorf("after 500 refusals: told %q, want one event on the quota and one on the view", got)
		}
		<-clock.RealClock{}.After(tellEvery)
		refusals.Refused(refusal(quotav1.ReasonQuotaExceeded, exceeded))
		if got := told.drain(); len(got) != 2 {
			t.Errorf("later: told %q, want both again", got)
		}
	}, viewIn("shop"))
}

// Nothing takes from the queue: a refusal goes on without it.
func TestARefusalWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota, recorded := quotaOf("team"), &told{}
		reader := clientWith(t, quota)
		refusals := NewRefusals(clock.RealClock{}, reader, reader, recorded)
		refusal := func(i int) outcomes.Refusal {
			return outcomes.Refusal{Quota: "team", Namespace: fmt.Sprint(i), Reason: quotav1.ReasonQuotaExceeded}
		}
		for i := range queued + 10 {
			refusals.Refused(refusal(i))
		}
		go func() { _ = refusals.Start(t.Context()) }()
		if got := recorded.drain(); len(got) != 2*queued {
			t.Errorf("told %d, want %d", len(got), 2*queued)
		}
		refusals.Refused(refusal(0))
		refusals.Refused(refusal(queued))
		if got := recorded.drain(); len(got) != 2 {
			t.Errorf("told %q, want what found no room before, and nothing twice", got)
		}
	})
}

// A storm of refusals by quotas whose views don't come, or that are gone, is no other's.
func TestARefusalIsToldWithinTwoSecondsWhateverOtherQuotasDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calm, busy, recorded := quotaOf("team"), quotaOf("busy"), &told{}
		reader := clientWith(t, calm, busy, viewIn("shop"))
		refusals := NewRefusals(clock.RealClock{}, reader, reader, recorded)
		go func() { _ = refusals.Start(t.Context()) }()
		for i := range 100 {
			for _, quota := range []string{"busy", "gone"} {
				refusals.Refused(outcomes.Refusal{Quota: quota, Namespace: fmt.Sprint(i), Reason: quotav1.ReasonQuotaExceeded})
			}
		}
		refusals.Refused(outcomes.Refusal{Quota: "team", Namespace: "shop", Reason: quotav1.ReasonQuotaExceeded})
		synctest.Wait()
		recorded.mu.Lock()
		atOnce := slices.Clone(recorded.events)
		recorded.mu.Unlock()
		for _, want := range []string{"ClusterResourceQuota /team uid of team: QuotaExceeded", "LocalResourceQuota shop/team uid of view: QuotaExceeded"} {
			if !slices.Contains(atOnce, want) {
				t.Errorf("want %q told at once, got %d events", want, len(atOnce))
			}
		}
		if slices.ContainsFunc(recorded.drain(), func(event string) bool { return strings.Contains(event, "/gone ") }) {
			t.Error("want nothing told of a quota that is gone")
		}
	})
}

// Exhausted quotas refuse thousands of requests a second.
func BenchmarkARefusalThatIsNotTold(b *testing.B) {
	reader := clientWith(b)
	refusals := NewRefusals(clock.RealClock{}, reader, reader, &told{})
	refusal := outcomes.Refusal{Quota: "team", Namespace: "shop", Reason: quotav1.ReasonQuotaExceeded, Resources: []corev1.ResourceName{"pods"}}
	refusals.Refused(refusal)
	b.ReportAllocs()
	for b.Loop() {
		refusals.Refused(refusal)
	}
}
