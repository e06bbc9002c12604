// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

var pods = schema.GroupResource{Resource: "pods"}

// podStore feeds a count of one quota, red, which limits the pods of one team.
func podStore(t *testing.T) (*counting.Count, *objectStore) {
	t.Helper()
	klog.SetLogger(logr.Discard())
	count := counting.New(evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), func([]string) {}, func([]string) {})
	count.ReplaceNamespaces([]counting.NamespaceLabels{{Name: "a", Labels: map[string]string{"team": "red"}}}, 1, time.Time{})
	count.Define(redTarget(t, "pods", pods), time.Time{})
	return count, &objectStore{clock: clock.RealClock{}, source: count.Source(pods)}
}

func podOf(i int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: fmt.Sprint("pod", i), UID: types.UID(fmt.Sprint("uid", i)), ResourceVersion: strconv.Itoa(10 + i),
		Annotations: map[string]string{"large": "text"},
	}}
}

// counted is the count of the pods: how many, up to which version.
func counted(count *counting.Count) string {
	var text string
	count.Read("red", func(view counting.View) {
		used := view.Total()["pods"]
		text = fmt.Sprintf("%s pods at %d", used.String(), view.Counted()[pods])
	})
	return text
}

func TestNothingIsKeptOfAnObjectButItsMeasure(t *testing.T) {
	_, store := podStore(t)
	transform := store.Transformer()
	if small, err := transform(podOf(1)); err != nil {
		t.Error(err)
	} else if _, ok := small.(*counting.Measured); !ok {
		t.Errorf("want a measured pod, got %T", small)
	}
	for _, odd := range []any{&corev1.Service{}, cache.ExplicitKey("x")} {
		if same, err := transform(odd); same != odd || err != nil {
			t.Errorf("want a %T back, for Replace to fail with it, got %v, %v", odd, same, err)
		}
		if err := store.Replace([]any{podOf(1), odd}, "20"); err == nil {
			t.Errorf("want a list with a %T to fail", odd)
		}
	}
}

// lists serves pods in pages, as an API server does that ignores the limit for
// clients that are content with an old version.
type lists struct {
	pods int
	// largest is the largest page that was served.
	largest atomic.Int64
}

func (l *lists) list(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	first, _ := strconv.Atoi(options.Continue)
	last := l.pods
	if options.Limit > 0 && options.ResourceVersion == "" {
		last = min(last, first+int(options.Limit))
	}
	page := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5000"}}
	for i := first; i < last; i++ {
		page.Items = append(page.Items, *podOf(i))
	}
	if last < l.pods {
		page.Continue = strconv.Itoa(last)
	}
	l.largest.Store(max(l.largest.Load(), int64(len(page.Items))))
	return page, nil
}

// If the API server doesn't stream a list, it is read page by page.
func TestAListComesInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count, store := podStore(t)
		served := &lists{pods: 1234}
		reflector := objectReflectorOf(schema.GroupVersionResource{}, &corev1.Pod{}, &cache.ListWatch{
			ListWithContextFunc: served.list,
			WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
				if options.SendInitialEvents != nil {
					return nil, errors.New("lists aren't streamed")
				}
				return watch.NewFake(), nil
			},
		}, store)
		ctx, stop := context.WithCancel(t.Context())
		go reflector.RunWithContext(ctx)
		synctest.Wait()
		if got := counted(count); got != "1234 pods at 5000" {
			t.Errorf("got %s", got)
		}
		if largest := served.largest.Load(); largest != pageSize {
			t.Errorf("want pages of %d at most, got %d", pageSize, largest)
		}
		stop()
		synctest.Wait()
	})
}

// If it does, the list and later events are one stream.
func TestAListIsStreamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count, store := podStore(t)
		events := watch.NewFakeWithChanSize(10, false)
		reflector := objectReflectorOf(schema.GroupVersionResource{}, &corev1.Pod{}, &cache.ListWatch{
			ListWithContextFunc: (&lists{}).list,
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return events, nil
			},
		}, store)
		ctx, stop := context.WithCancel(t.Context())
		go reflector.RunWithContext(ctx)
		bookmark := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "100", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}
		changed, gone := podOf(3), podOf(1)
		changed.ResourceVersion, gone.ResourceVersion = "101", "102"
		for _, step := range []struct {
			event func()
			want  string
		}{
			{func() { events.Add(podOf(1)); events.Add(podOf(2)) }, "0 pods at 0"},
			{func() { events.Action(watch.Bookmark, bookmark) }, "2 pods at 100"},
			{func() { events.Add(changed) }, "3 pods at 101"},
			{func() { events.Delete(gone) }, "2 pods at 102"},
		} {
			step.event()
			synctest.Wait()
			if got := counted(count); got != step.want {
				t.Errorf("want %s, got %s", step.want, got)
			}
		}
		stop()
		synctest.Wait()
	})
}
