// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

var (
	pods       = schema.GroupResource{Resource: "pods"}
	configMaps = schema.GroupResource{Resource: "configmaps"}
	start      = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
)

// world is a cluster and a Count that follows it event by event. At each
// comparison, the Count must equal a Count that saw only the end.
type world struct {
	t     *rapid.T
	clock *clocktesting.FakeClock
	count *Count

	version    uint64
	namespaces map[string]map[string]string // name -> labels
	objects    map[schema.GroupResource]map[types.NamespacedName]runtime.Object
	quotas     map[string]Target
	// seen is when the Count first saw that a pod is being deleted and hasn't ended, or first saw it.
	seen map[types.NamespacedName]time.Time
	// wrong is by how much the API server's clock is ahead of the Count's.
	wrong time.Duration
}

func newWorld(t *rapid.T) *world {
	clock := clocktesting.NewFakeClock(start)
	w := &world{
		t: t, clock: clock,
		count:      New(evaluation.New(clock, evaluation.ClaimSources{}), func([]string) {}, func([]string) {}),
		version:    10,
		namespaces: map[string]map[string]string{},
		objects:    map[schema.GroupResource]map[types.NamespacedName]runtime.Object{pods: {}, configMaps: {}},
		quotas:     map[string]Target{},
		seen:       map[types.NamespacedName]time.Time{},
		wrong:      rapid.SampledFrom([]time.Duration{0, time.Hour, -time.Hour}).Draw(t, "wrong"),
	}
	w.count.ReplaceNamespaces(nil, w.version, w.now())
	w.relist()
	return w
}

func (w *world) now() time.Time { return w.clock.Now() }

func (w *world) next() uint64 {
	w.version++
	return w.version
}

func (w *world) anyNamespace() string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.t, "namespace")
}

func (w *world) anyResource() schema.GroupResource {
	return rapid.SampledFrom([]schema.GroupResource{pods, configMaps}).Draw(w.t, "resource")
}

// Steps of the property, drawn by name.

func (w *world) label() {
	name := w.anyNamespace()
	labels := map[string]string{"team": rapid.SampledFrom([]string{"red", "blue", ""}).Draw(w.t, "team")}
	w.namespaces[name] = labels
	w.count.SetNamespace(name, labels, nil, w.next(), w.now())
}

func (w *world) deleteNamespace() {
	name := w.anyNamespace()
	delete(w.namespaces, name)
	w.count.DeleteNamespace(name, w.next())
}

func (w *world) set() {
	resource := w.anyResource()
	key := types.NamespacedName{Namespace: w.anyNamespace(), Name: rapid.SampledFrom([]string{"x", "y"}).Draw(w.t, "name")}
	object := w.anyObject(resource, key)
	before := w.objects[resource][key]
	isSame := isAging(before) && before.(*corev1.Pod).UID == object.(*corev1.Pod).UID
	if resource == pods && !isSame {
		w.seen[key] = w.now()
	}
	w.objects[resource][key] = object
	w.must(w.count.Source(resource).Set(object, w.now()))
}

func (w *world) remove() {
	resource := w.anyResource()
	for key, object := range w.objects[resource] {
		delete(w.objects[resource], key)
		object = object.DeepCopyObject()
		object.(metav1.Object).SetResourceVersion(strconv.FormatUint(w.next(), 10))
		w.must(w.count.Source(resource).Delete(object, w.now()))
		return
	}
}

// relist is the effect of a gap in the watch.
func (w *world) relist() {
	for resource, objects := range w.objects {
		w.must(w.count.Source(resource).Replace(slices.Collect(maps.Values(objects)), w.next(), w.now()))
	}
}

// missDeletions lets objects go while no watch runs.
func (w *world) missDeletions() {
	resource := w.anyResource()
	clear(w.objects[resource])
	w.relist()
}

func (w *world) define() {
	target := w.anyTarget()
	w.quotas[target.Quota.Name] = target
	w.count.Define(target, w.now())
}

func (w *world) forget() {
	name := w.anyQuotaName()
	delete(w.quotas, name)
	w.count.Forget(name)
}

func (w *world) drop() {
	resource := w.anyResource()
	if resource == pods {
		for key := range w.seen {
			w.seen[key] = w.now()
		}
	}
	w.count.DropSource(resource)
	w.must(w.count.Source(resource).Replace(slices.Collect(maps.Values(w.objects[resource])), w.next(), w.now()))
}

func (w *world) pass() {
	w.clock.Step(time.Duration(rapid.IntRange(1, 60).Draw(w.t, "seconds")) * time.Second)
	w.count.Advance(w.now(), time.Hour)
}

func (w *world) must(err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) anyQuotaName() string {
	return rapid.SampledFrom([]string{"q1", "q2", "q3"}).Draw(w.t, "quota")
}

func (w *world) anyObject(of schema.GroupResource, key types.NamespacedName) runtime.Object {
	version := w.next()
	meta := metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, ResourceVersion: strconv.FormatUint(version, 10),
		UID: types.UID(rapid.SampledFrom([]string{"1", "2"}).Draw(w.t, "uid") + key.String()),
	}
	if of == configMaps {
		return &metav1.PartialObjectMetadata{ObjectMeta: meta}
	}
	return w.anyPod(meta)
}

func (w *world) anyPod(meta metav1.ObjectMeta) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: meta}
	if cpu := rapid.IntRange(0, 3).Draw(w.t, "cpu"); cpu > 0 {
		pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cpu), resource.DecimalSI)},
		}}}
	}
	if rapid.Bool().Draw(w.t, "ended") {
		pod.Status.Phase = corev1.PodSucceeded
	}
	if rapid.Bool().Draw(w.t, "deadline") {
		pod.Spec.ActiveDeadlineSeconds = new(int64)
	}
	if rapid.Bool().Draw(w.t, "deleting") {
		at, grace := metav1.NewTime(w.now().Add(w.wrong)), int64(10)
		if strings.HasPrefix(string(meta.UID), "2") {
			grace = 25
		}
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &grace
	}
	return pod
}

func (w *world) anyTarget() Target {
	hard := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"pods", "count/pods", "requests.cpu", "configmaps"} {
		if rapid.Bool().Draw(w.t, string(name)) {
			hard[name] = resource.MustParse("10")
		}
	}
	scopes := rapid.SampledFrom([][]corev1.ResourceQuotaScope{nil, {"Terminating"}, {"NotBestEffort"}}).Draw(w.t, "scopes")
	selector, err := definition.CompileSelector(quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"team": rapid.SampledFrom([]string{"red", "blue"}).Draw(w.t, "selected")},
	}})
	w.must(err)
	return Target{
		UID: "u", Generation: int64(w.next()), Digest: "d",
		Quota:    evaluation.Quota{Name: w.anyQuotaName(), Spec: corev1.ResourceQuotaSpec{Hard: hard, Scopes: scopes}},
		Selector: selector,
	}
}

// isAging reports whether time alone changes the use of an object. It changes nothing of a pod that has ended. The API
// server lets a caller undo that end.
func isAging(object runtime.Object) bool {
	pod, isPod := object.(*corev1.Pod)
	return isPod && pod.DeletionTimestamp != nil && pod.Status.Phase != corev1.PodSucceeded
}

// fromScratch is the Count that sees only the present.
func (w *world) fromScratch() *Count {
	fresh := New(evaluation.New(w.clock, evaluation.ClaimSources{}), func([]string) {}, func([]string) {})
	for _, target := range w.quotas {
		fresh.Define(target, w.now())
	}
	for resource, objects := range w.objects {
		w.must(fresh.Source(resource).Replace(nil, w.version, w.now()))
		for key, object := range objects {
			w.must(fresh.Source(resource).Set(object, w.seen[key]))
		}
	}
	fresh.Advance(w.now(), time.Hour)
	for name, labels := range w.namespaces {
		fresh.SetNamespace(name, labels, nil, w.version, w.now())
	}
	return fresh
}

// check compares the Count with one from scratch, and totals with slices.
func (w *world) check() {
	w.count.Advance(w.now(), time.Hour)
	fresh := w.fromScratch()
	if got, want := w.count.Quotas(), fresh.Quotas(); !slices.Equal(got, want) {
		w.t.Fatalf("want quotas %v, got %v", want, got)
	}
	for name := range w.quotas {
		got, want := w.figures(w.count, name), w.figures(fresh, name)
		if !maps.EqualFunc(got, want, quota.Equals) {
			w.t.Fatalf("quota %s:\nwant %v\ngot  %v", name, want, got)
		}
	}
}

// figures returns a quota's slices by namespace, and the total under "".
func (w *world) figures(count *Count, name string) map[string]corev1.ResourceList {
	figures := map[string]corev1.ResourceList{}
	count.Read(name, func(view View) {
		sum := zeros(view.Target().Quota.Spec.Hard)
		for namespace, used := range view.Slices() {
			figures[namespace] = used
			sum = quota.Add(sum, used)
		}
		figures[""] = view.Total()
		if !quota.Equals(sum, view.Total()) {
			w.t.Fatalf("quota %s: the slices add up to %v, the total is %v", name, sum, view.Total())
		}
	})
	return figures
}

// After any events, a Count equals one from scratch. No figure moves in silence: nothing settles a ledger but being
// told of a change. And a namespace that comes or goes makes another selection.
func TestEachEventIsCountedAndTold(t *testing.T) {
	counted := 0
	rapid.Check(t, func(t *rapid.T) {
		w, heard := newWorld(t), &teller{}
		w.count.changed, w.count.freed = heard.tell, heard.tellFreed
		steps := map[string]func(*rapid.T){}
		for name, step := range map[string]func(){
			"label": w.label, "deleteNamespace": w.deleteNamespace, "set": w.set, "setMore": w.set, "remove": w.remove,
			"relist": w.relist, "missDeletions": w.missDeletions, "define": w.define, "defineMore": w.define, "forget": w.forget,
			"drop": w.drop, "pass": w.pass, "passUnnoticed": w.passUnnoticed, "audit": w.audit, "check": w.check,
		} {
			steps[name] = func(t *rapid.T) {
				selections := w.selections()
				heard.requireToldOf(t, w, name, step)
				w.requireSelections(name, selections)
			}
		}
		t.Repeat(steps)
		w.check()
		for name := range w.quotas {
			if drift := w.count.Audit(name, w.now()); len(drift) > 0 {
				t.Fatalf("quota %s: an audit found a drift of %v", name, drift)
			}
			if len(quota.RemoveZeros(totalOf(w.count, name))) > 0 {
				counted++
			}
		}
	})
	if counted == 0 {
		t.Error("want cases in which something is used, got none")
	}
}

func TestAWatchThatIsStillEndingMovesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.label()
		w.define()
		ending := w.count.Source(pods)
		w.count.DropSource(pods)
		w.must(ending.Set(w.anyPod(metav1.ObjectMeta{Namespace: "a", Name: "late", UID: "late", ResourceVersion: "99"}), w.now()))
		clear(w.objects[pods])
		w.check()
	})
}

// includedCases are told of a pod "x" of UID "1x" that was seen in version 20
// of namespace "a", which the quota selects.
func TestTheFiguresOfAView(t *testing.T) {
	cases := map[string]struct {
		event     func(source *Source, count *Count)
		uid       types.UID
		namespace string
		after     uint64
		want      bool
	}{
		"a created pod that was seen":            {uid: "1x", want: true},
		"one of the same name that was not":      {uid: "2x"},
		"an update that was seen":                {uid: "1x", after: 19, want: true},
		"an update from the version that is":     {uid: "1x", after: 20},
		"a pod in a namespace that isn't chosen": {uid: "1x", namespace: "b"},
		"a pod that came and went": {uid: "1x", want: true, event: func(source *Source, _ *Count) {
			_ = source.Delete(podAt("a", "x", "1x", 21), start)
		}},
		"a pod that was replaced by one of its name": {uid: "1x", want: true, event: func(source *Source, _ *Count) {
			_ = source.Set(podAt("a", "x", "2x", 21), start)
		}},
		"a pod that a new list lacks": {uid: "1x", want: true, event: func(source *Source, _ *Count) {
			_ = source.Replace(nil, 30, start)
		}},
		"a pod that went too long ago": {uid: "1x", event: func(source *Source, count *Count) {
			_ = source.Delete(podAt("a", "x", "1x", 21), start)
			count.Advance(start.Add(time.Minute+1), time.Minute)
		}},
		"a pod whose namespace has left: it is never going to be counted": {uid: "1x", want: true, event: func(_ *Source, count *Count) {
			count.SetNamespace("a", map[string]string{"team": "blue"}, nil, 22, start)
		}},
		"a pod that was stored as its namespace left, and isn't seen yet": {uid: "2x", event: func(_ *Source, count *Count) {
			count.SetNamespace("a", map[string]string{"team": "blue"}, nil, 22, start)
		}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			count := redQuota(t)
			source := count.Source(pods)
			if err := source.Replace([]runtime.Object{podAt("a", "x", "1x", 20)}, 20, start); err != nil {
				t.Fatal(err)
			}
			if test.event != nil {
				test.event(source, count)
			}
			namespace := "a"
			if test.namespace != "" {
				namespace = test.namespace
			}
			got := false
			count.Read("red", func(view View) { got = view.Includes(pods, namespace, "x", test.uid, test.after) })
			if got != test.want {
				t.Errorf("want included %t, got %t", test.want, got)
			}
		})
	}
}

func TestASourceIsAsFarAsWhatItShows(t *testing.T) {
	count := redQuota(t)
	counted := func() string {
		var text string
		count.Read("red", func(view View) { text = fmt.Sprint(view.Counted(), view.Complete("pods")) })
		return text
	}
	source := count.Source(pods)
	steps := []struct {
		event func() error
		want  string
	}{
		{func() error { return source.Set(podAt("a", "x", "1", 15), start) }, "map[namespaces:5] false"},
		{func() error { return source.Replace(nil, 20, start) }, "map[namespaces:5 pods:20] true"},
		{func() error { return source.Set(podAt("a", "x", "1", 25), start) }, "map[namespaces:5 pods:25] true"},
		{func() error { return source.Delete(podAt("a", "x", "1", 30), start) }, "map[namespaces:5 pods:30] true"},
		{func() error { source.At(40); return nil }, "map[namespaces:5 pods:40] true"},
		{func() error { source.At(35); return nil }, "map[namespaces:5 pods:40] true"},
		{func() error { count.NamespacesAt(41); return nil }, "map[namespaces:41 pods:40] true"},
	}
	for i, step := range steps {
		if err := step.event(); err != nil {
			t.Fatal(err)
		}
		if got := counted(); got != step.want {
			t.Errorf("step %d: want %s, got %s", i, step.want, got)
		}
	}
}

func newCount() *Count {
	return New(evaluation.New(clocktesting.NewFakeClock(start), evaluation.ClaimSources{}), func([]string) {}, func([]string) {})
}

// targetFor is of a quota that limits pods in the namespaces of a team, whose name it has.
func targetFor(tb testing.TB, team string) Target {
	tb.Helper()
	selector, err := definition.CompileSelector(quotav1.ClusterResourceQuotaSelector{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return Target{
		Quota:    evaluation.Quota{Name: team, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("10")}}},
		Selector: selector, Sources: map[corev1.ResourceName][]schema.GroupResource{"pods": {pods}},
	}
}

// redQuota counts pods in namespaces of the team red, of which "a" is one.
func redQuota(t *testing.T) *Count {
	t.Helper()
	count := newCount()
	count.ReplaceNamespaces([]NamespaceLabels{
		{Name: "a", Labels: map[string]string{"team": "red"}}, {Name: "b"},
	}, 5, start)
	count.Define(targetFor(t, "red"), start)
	return count
}

func podAt(namespace, name string, uid types.UID, version int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: uid, ResourceVersion: strconv.Itoa(version),
	}}
}

// The product of a list equals the sum of its copies, also if the quantities are
// beyond 64 bits.
func TestTheUseOfManyIsTheSumOfEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := corev1.ResourceList{}
		for _, name := range []corev1.ResourceName{"cpu", "memory"} {
			text := rapid.StringMatching(`[1-9][0-9]{0,25}(m|k|Mi|E)?`).Draw(t, string(name))
			list[name] = resource.MustParse(text)
		}
		number := rapid.IntRange(1, 40).Draw(t, "number")
		want, before := corev1.ResourceList{}, list.DeepCopy()
		for range number {
			want = quota.Add(want, list)
		}
		if got := times(list, number); !quota.Equals(got, want) {
			t.Errorf("%d times %v: want %v, got %v", number, list, want, got)
		}
		if !quota.Equals(list, before) {
			t.Errorf("the list became %v", list)
		}
	})
}
