// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/report"
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

// telling runs Refusals that are told of by a handler.
func telling(t *testing.T, served *served, reader client.Reader) *told {
	t.Helper()
	told := &told{}
	served.handler.Refusals = NewRefusals(clock.RealClock{}, reader, reader, told)
	go func() {
		if err := served.handler.Refusals.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	return told
}

func TestARefusalIsToldOnTheQuotaAndInTheNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		hard    []string
		change  func(*served)
		unseen  bool
		request *admissionv1.AdmissionRequest
		want    []string
	}{
		"a request that doesn't fit": {
			hard: []string{"pods", "0"}, request: creation(),
			want: []string{"ClusterResourceQuota /team uid of team: QuotaExceeded", "LocalResourceQuota shop/team uid of view: QuotaExceeded"},
		},
		"a request that doesn't say enough": {
			hard: []string{"limits.cpu", "1"}, request: creation(),
			want: []string{"ClusterResourceQuota /team uid of team: RequestIncomplete", "LocalResourceQuota shop/team uid of view: RequestIncomplete"},
		},
		"a request whose quota isn't counted": {
			hard: []string{"pods", "1"}, request: creation(), change: func(s *served) { s.store.forget("team") },
			want: []string{"ClusterResourceQuota /team uid of team: UsageUnknown", "LocalResourceQuota shop/team uid of view: UsageUnknown"},
		},
		"a view that doesn't come is told of without its UID": {
			hard: []string{"pods", "0"}, request: creation(), unseen: true,
			want: []string{"ClusterResourceQuota /team uid of team: QuotaExceeded", "LocalResourceQuota shop/team : QuotaExceeded"},
		},
		"a dry run isn't told":                      {hard: []string{"pods", "0"}, request: dryRun(creation())},
		"a granted request isn't told":              {hard: []string{"pods", "1"}, request: creation()},
		"a request that can't be judged isn't told": {hard: []string{"pods", "1"}, request: in("nowhere", creation())},
	} {
		t.Run(name, func(t *testing.T) {
			quota := quotaOf("team", test.hard...)
			serve(t, quotas(quota), func(t *testing.T, served *served) {
				if test.change != nil {
					test.change(served)
				}
				cached := []client.Object{quota, viewIn("shop")}
				if test.unseen {
					cached = cached[:1]
				}
				told := telling(t, served, clientWith(t, cached...))
				served.handle(t.Context(), test.request)
				if diff := cmp.Diff(test.want, told.drain()); diff != "" {
					t.Errorf("told (-want,+got):\n%s", diff)
				}
			})
		})
	}
}

func TestABurstOfRefusalsIsToldOnce(t *testing.T) {
	quota := quotaOf("team", "pods", "0")
	serve(t, quotas(quota), func(t *testing.T, served *served) {
		told := telling(t, served, clientWith(t, quota, viewIn("shop")))
		for range 500 {
			served.handle(t.Context(), creation())
		}
		if got := told.drain(); len(got) != 2 {
			t.Errorf("after 500 refusals: told %q, want one event on the quota and one on the view", got)
		}
		<-clock.RealClock{}.After(tellEvery)
		served.handle(t.Context(), creation())
		if got := told.drain(); len(got) != 2 {
			t.Errorf("later: told %q, want both again", got)
		}
	})
}

// Nothing takes from the queue: a refusal goes on without it.
func TestARefusalWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota, recorded := quotaOf("team", "pods", "0"), &told{}
		reader := clientWith(t, quota)
		refusals := NewRefusals(clock.RealClock{}, reader, reader, recorded)
		refusal := func(i int) report.Refusal {
			return report.Refusal{Quota: "team", Namespace: fmt.Sprint(i), Reason: quotav1.ReasonQuotaExceeded}
		}
		for i := range queued + 10 {
			refusals.tell(refusal(i))
		}
		go func() { _ = refusals.Start(t.Context()) }()
		if got := recorded.drain(); len(got) != 2*queued {
			t.Errorf("told %d, want %d", len(got), 2*queued)
		}
		refusals.tell(refusal(0))
		refusals.tell(refusal(queued))
		if got := recorded.drain(); len(got) != 2 {
			t.Errorf("told %q, want what found no room before, and nothing twice", got)
		}
	})
}

// A storm of refusals by quotas whose views don't come, or that are gone, is no other's.
func TestARefusalIsToldWithinTwoSecondsWhateverOtherQuotasDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calm, busy, recorded := quotaOf("team", "pods", "0"), quotaOf("busy", "pods", "0"), &told{}
		reader := clientWith(t, calm, busy, viewIn("shop"))
		refusals := NewRefusals(clock.RealClock{}, reader, reader, recorded)
		go func() { _ = refusals.Start(t.Context()) }()
		for i := range 100 {
			for _, quota := range []string{"busy", "gone"} {
				refusals.tell(report.Refusal{Quota: quota, Namespace: fmt.Sprint(i), Reason: quotav1.ReasonQuotaExceeded})
			}
		}
		refusals.tell(report.Refusal{Quota: "team", Namespace: "shop", Reason: quotav1.ReasonQuotaExceeded})
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
	refusal := report.Refusal{Quota: "team", Namespace: "shop", Reason: quotav1.ReasonQuotaExceeded, Resource: "pods"}
	refusals.tell(refusal)
	b.ReportAllocs()
	for b.Loop() {
		refusals.tell(refusal)
	}
}
