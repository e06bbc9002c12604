// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// store is an API server with ConfigMaps, which gives each write a version.
type store struct {
	configMaps corev1client.ConfigMapInterface
	writes     atomic.Int64
	// failure of each write; nil for none.
	failure atomic.Pointer[error]
}

func newStore() *store {
	s := &store{}
	clients := fake.NewClientset()
	write := func(action clienttesting.Action) (bool, runtime.Object, error) {
		version := s.writes.Add(1)
		if failure := s.failure.Load(); failure != nil {
			return true, nil, *failure
		}
		if object, ok := action.(interface{ GetObject() runtime.Object }); ok {
			about, err := meta.Accessor(object.GetObject())
			if err != nil {
				return true, nil, err
			}
			about.SetResourceVersion(strconv.FormatInt(version, 10))
		}
		return false, nil, nil
	}
	for _, verb := range []string{"create", "update", "delete"} {
		clients.PrependReactor(verb, "configmaps", write)
	}
	s.configMaps = unstreamed{clients.CoreV1().ConfigMaps("operators")}
	return s
}

// unstreamed is a client that doesn't stream lists.
type unstreamed struct {
	corev1client.ConfigMapInterface
}

func (unstreamed) IsWatchListSemanticsUnSupported() bool { return true }

// replica runs an Exchange, and returns its list and the function that stops it.
func (s *store) replica(t *testing.T, name string, leads bool) (list *waiting.List, stop func()) {
	t.Helper()
	elected := make(chan struct{})
	if leads {
		close(elected)
	}
	list = waiting.NewList()
	exchange := NewExchange(ExchangeParts{
		Clock: clock.RealClock{}, ConfigMaps: s.configMaps, List: list, Process: name, Elected: elected,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := exchange.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	synctest.Wait()
	return list, func() { cancel(); <-done }
}

// names returns the ConfigMaps that there are.
func (s *store) names(t *testing.T) []string {
	t.Helper()
	all, err := s.configMaps.List(t.Context(), metav1.ListOptions{LabelSelector: partLabel})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

func pass(duration time.Duration) {
	<-clock.RealClock{}.After(duration)
	synctest.Wait()
}

func now() time.Time { return clock.RealClock{}.Now() }

func TestReplicasTellEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a, stopA := store.replica(t, "a", true)
		b, stopB := store.replica(t, "b", false)
		defer stopB()
		a.Refused(now(), refusalOf("web"))
		a.Refused(now(), refusalOf("api"))
		pass(1100 * time.Millisecond)
		if owners(b) != 2 {
			t.Errorf("b knows of %d", owners(b))
		}
		b.Granted(now(), waiting.Key{Namespace: "shop", UID: "uid-web"})
		pass(1100 * time.Millisecond)
		if owners(a) != 1 {
			t.Errorf("a knows of %d", owners(a))
		}
		if diff := cmp.Diff([]string{partPrefix + "a", partPrefix + "b"}, store.names(t)); diff != "" {
			t.Errorf("ConfigMaps (-want,+got):\n%s", diff)
		}
		a.Granted(now(), waiting.Key{Namespace: "shop", UID: "uid-api"})
		pass(3 * time.Minute)
		if names := store.names(t); names != nil {
			t.Errorf("nobody waits, and there are still %v", names)
		}

		a.Refused(now(), refusalOf("web"))
		stopA()
		pass(time.Millisecond)
		if owners(b) != 1 {
			t.Error("a replica that stops has not told")
		}
	})
}

func TestNothingIsWrittenWithoutNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a, stop := store.replica(t, "a", true)
		defer stop()
		pass(time.Hour)
		if writes := store.writes.Load(); writes != 0 {
			t.Errorf("%d writes while nobody waits", writes)
		}
		for range 50 {
			a.Refused(now(), refusalOf("web"))
			pass(100 * time.Millisecond)
		}
		if writes := store.writes.Load(); writes > 6 {
			t.Errorf("%d writes in five seconds", writes)
		}
		before := store.writes.Load()
		pass(16 * time.Minute)
		if writes := store.writes.Load() - before; writes < 3 || writes > 4 {
			t.Errorf("%d writes in 16 minutes, to show that it lives", writes)
		}
	})
}

func TestAPartThatSomebodyElseTouchedIsWrittenAgain(t *testing.T) {
	for name, test := range map[string]struct {
		touch  func(*testing.T, *store)
		writes int64
	}{
		"deleted": {writes: 3, touch: func(t *testing.T, s *store) { // one of them finds that it is deleted
			t.Helper()
			if err := s.configMaps.Delete(t.Context(), partPrefix+"b", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}},
		"emptied": {writes: 2, touch: func(t *testing.T, s *store) {
			t.Helper()
			part := NewExchange(ExchangeParts{Process: "b"}).part(nil)
			part.BinaryData = nil
			if _, err := s.configMaps.Update(t.Context(), part, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newStore()
				a, stopA := store.replica(t, "a", true)
				defer stopA()
				b, stopB := store.replica(t, "b", false)
				defer stopB()
				b.Refused(now(), refusalOf("web"))
				pass(1100 * time.Millisecond)
				before := store.writes.Load()
				test.touch(t, store)
				pass(2 * time.Second)
				if owners(a) != 1 {
					t.Error("the leader doesn't know of it any more")
				}
				if writes := store.writes.Load() - before; writes != test.writes {
					t.Errorf("%d writes", writes)
				}
			})
		})
	}
}

func TestAPartThatSaysWhatItShouldIsLeftAlone(t *testing.T) {
	for name, touch := range map[string]func(*testing.T, *store){
		"a client annotates every ConfigMap": func(t *testing.T, s *store) {
			t.Helper()
			part, err := s.configMaps.Get(t.Context(), partPrefix+"a", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			part.Annotations = map[string]string{"reviewed": "yes"}
			if _, err := s.configMaps.Update(t.Context(), part, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		"etcd is restored, with lower versions": func(_ *testing.T, s *store) { s.writes.Store(5000) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newStore()
				store.writes.Store(100000)
				a, stop := store.replica(t, "a", true)
				defer stop()
				a.Refused(now(), refusalOf("web"))
				pass(2 * time.Second)
				touch(t, store)
				a.Refused(now(), refusalOf("api"))
				pass(2 * time.Second)
				before := store.writes.Load()
				pass(4 * time.Minute)
				if writes := store.writes.Load() - before; writes > 1 { // to show that it lives
					t.Errorf("%d writes in four minutes in which nothing was heard", writes)
				}
			})
		})
	}
}

func TestAPartDeletedWhileTheWatchIsBrokenIsWrittenAgain(t *testing.T) {
	store, list := newStore(), waiting.NewList()
	e := NewExchange(ExchangeParts{Clock: clock.RealClock{}, ConfigMaps: store.configMaps, List: list, Process: "a"})
	list.Refused(now(), refusalOf("web"))
	e.publish(t.Context(), now())
	if e.isOutdated(now()) {
		t.Fatal("it is written again for nothing")
	}
	if err := (partStore{e, t.Context()}).Replace(nil, "9"); err != nil || !e.isOutdated(now()) {
		t.Errorf("it isn't written again: %v", err)
	}
}

// forgetful is an API server whose reply to a creation is lost.
type forgetful struct {
	corev1client.ConfigMapInterface
}

func (f forgetful) Create(ctx context.Context, part *corev1.ConfigMap, options metav1.CreateOptions) (*corev1.ConfigMap, error) {
	_, _ = f.ConfigMapInterface.Create(ctx, part, options)
	return nil, context.DeadlineExceeded
}

func TestAPartIsDeletedEvenIfTheReplyToItsCreationWasLost(t *testing.T) {
	store, list := newStore(), waiting.NewList()
	e := NewExchange(ExchangeParts{Clock: clock.RealClock{}, ConfigMaps: forgetful{store.configMaps}, List: list, Process: "a"})
	list.Refused(now(), refusalOf("web"))
	e.publish(t.Context(), now())
	list.Granted(now(), refusalOf("web").Key())
	list.Sweep(now().Add(time.Minute))
	e.publish(t.Context(), now().Add(time.Minute))
	if names := store.names(t); len(names) > 0 {
		t.Errorf("%v stay, and say that web waits", names)
	}
}

func TestManyOwnersAreWrittenLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a, stop := store.replica(t, "a", true)
		defer stop()
		random := rand.New(rand.NewPCG(1, 2))
		for range waiting.MaxOwners {
			flood := refusalOf(fmt.Sprintf("%x", random.Uint64()))
			for len(flood.Name) < 230 {
				flood.Name += fmt.Sprintf("%x", random.Uint64())
			}
			a.Refused(now(), flood)
		}
		pass(time.Second)
		part, err := store.configMaps.Get(t.Context(), partPrefix+"a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		size := len(part.BinaryData[partKey])
		before := store.writes.Load()
		for range 60 {
			a.Refused(now(), refusalOf("web"))
			pass(time.Second)
		}
		rate := int(store.writes.Load()-before) * size / 60
		if rate > publishRate*11/10 || rate < publishRate/2 {
			t.Errorf("%d bytes a second", rate)
		}
	})
}

func TestTheLeaderTakesOverFromAReplicaThatHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		part := waiting.Record{Refusal: refusalOf("web"), Since: now(), Last: now(), Refusals: 1}
		part.Kind = waiting.Deployment // it waits for longer
		encoded, err := waiting.Encode([]waiting.Record{part})
		if err != nil {
			t.Fatal(err)
		}
		gone := NewExchange(ExchangeParts{Process: "gone"}).part(encoded)
		if _, err := store.configMaps.Create(t.Context(), gone, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		leader, stopLeader := store.replica(t, "leader", true)
		defer stopLeader()
		other, stopOther := store.replica(t, "other", false)
		defer stopOther()
		other.Refused(now(), refusalOf("api"))
		pass(10 * time.Minute)
		if diff := cmp.Diff([]string{gone.Name, partPrefix + "other"}, store.names(t)); diff != "" {
			t.Errorf("ConfigMaps after ten minutes (-want,+got):\n%s", diff)
		}
		pass(2 * time.Minute)
		if diff := cmp.Diff([]string{partPrefix + "leader", partPrefix + "other"}, store.names(t)); diff != "" {
			t.Errorf("ConfigMaps after twelve minutes (-want,+got):\n%s", diff)
		}
		if owners(leader) != 2 || owners(other) != 2 {
			t.Errorf("the leader knows of %d, the other of %d", owners(leader), owners(other))
		}
	})
}

func TestAReplicaThatMayNotWriteGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		forbidden := errors.New("forbidden")
		store.failure.Store(&forbidden)
		a, stop := store.replica(t, "a", false)
		defer stop()
		a.Refused(now(), refusalOf("web"))
		pass(time.Minute)
		if tries := store.writes.Load(); tries < 10 || tries > 13 {
			t.Errorf("%d tries in a minute", tries)
		}
		store.failure.Store(nil)
		pass(retryEvery)
		if len(store.names(t)) != 1 {
			t.Error("it has not told once it may")
		}
	})
}

func TestWhatCanNotBeReadIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		other := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: partPrefix + "x", Labels: map[string]string{partLabel: "true"}},
			BinaryData: map[string][]byte{partKey: []byte("nonsense")},
		}
		if _, err := store.configMaps.Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		a, stop := store.replica(t, "a", false)
		defer stop()
		b, stopB := store.replica(t, "b", false)
		defer stopB()
		b.Refused(now(), refusalOf("web"))
		pass(2 * time.Second)
		if owners(a) != 1 {
			t.Error("what can be read isn't read either")
		}
	})
}

func TestWithoutANamespaceAReplicaKnowsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list, stop := (&store{}).replica(t, "a", true)
		list.Refused(now(), refusalOf("web"))
		pass(10 * time.Minute)
		if owners(list) != 1 {
			t.Error("it has forgotten")
		}
		pass(11 * time.Minute)
		if owners(list) != 0 {
			t.Error("it has not forgotten")
		}
		stop()
	})
}
