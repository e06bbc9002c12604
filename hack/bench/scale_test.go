// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func TestAllPodsAreSharedOut(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		for _, pods := range []int{500, 5000, 5009, 50000} {
			s, sum := size{namespaces: 500, quotas: 50, pods: pods, crowded: crowded}, 0
			for namespace := range s.namespaces {
				sum += s.share(namespace)
			}
			if sum != pods {
				t.Errorf("crowded %t: want %d pods, got %d", crowded, pods, sum)
			}
		}
	}
	crowded := size{namespaces: 500, quotas: 50, pods: 50000, crowded: true}
	if many, few := crowded.share(0), crowded.share(499); many != 5000 || few != 90 {
		t.Errorf("want namespaces of 5000 and 90 pods, got %d and %d", many, few)
	}
	even := size{namespaces: 20000, quotas: 1000, pods: 20000}
	if first, last := even.share(0), even.share(19999); first != 1 || last != 1 {
		t.Errorf("want a pod in each namespace, got %d and %d", first, last)
	}
}

func TestTheExpectedLedgersAreThoseOfTheLoad(t *testing.T) {
	w := scaleWorld{size: size{namespaces: 20, quotas: 3, pods: 457, crowded: true}}
	for loaded, want := range map[int]int64{0: 0, 457: 457} {
		w.loaded = loaded
		sum := usage{}
		for _, used := range w.expected() {
			sum.pods, sum.milliCPU = sum.pods+used.pods, sum.milliCPU+used.milliCPU
		}
		if sum.pods != want || sum.milliCPU < want*milliCPU(0) {
			t.Errorf("got %+v of %d pods", sum, loaded)
		}
	}
	before := w.expected()
	w.extra++
	for quota, used := range w.expected() {
		if used != before[quota].plus(0, 1) {
			t.Errorf("%s: want one more than %+v, got %+v", quota, before[quota], used)
		}
	}
}

func TestAllCustomResourcesButTheBrokenOneAreExpected(t *testing.T) {
	expected := map[string]usage{}
	size{quotas: 3, custom: 8}.customExpected(expected)
	want := map[string]usage{"team-0000": {custom: 2}, "team-0001": {custom: 3}, "team-0002": {custom: 2}}
	if !maps.Equal(expected, want) {
		t.Errorf("got %v", expected)
	}
}

func TestOnlyTheQuotaOfTheBrokenCustomResourceIsNotReady(t *testing.T) {
	used := map[string]usage{"team-0000": {pods: 1}, "team-0001": {pods: 2}}
	want := map[string]shown{"team-0000": {1, false, true}, "team-0001": {2, true, true}}
	if got := (size{quotas: 2, custom: 8}).shownAs(used); !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	want["team-0000"] = shown{1, true, true}
	if got := (size{quotas: 2}).shownAs(used); !maps.Equal(got, want) {
		t.Errorf("without custom resources: got %v", got)
	}
}

func TestASmallerWorldHasTwoNamespacesForEachQuota(t *testing.T) {
	for by, want := range map[int]size{
		1:       {namespaces: 20000, quotas: 1000, pods: 20000, custom: 500},
		20:      {namespaces: 1000, quotas: 50, pods: 1000, custom: 25},
		1000000: {namespaces: 2, quotas: 1, pods: 2, custom: 2},
	} {
		if got := (size{namespaces: 20000, quotas: 1000, pods: 20000, custom: 500}).divided(by); got != want {
			t.Errorf("divided by %d: want %+v, got %+v", by, want, got)
		}
	}
	for _, plan := range plans() {
		if plan.size.divided(1) != plan.size {
			t.Errorf("%+v can't be measured in full", plan.size)
		}
	}
}

func TestOptionsThatCannotBeMeasuredAreRefused(t *testing.T) {
	for args, want := range map[string]bool{
		"":                     true,
		"-memory-limit 512MiB": true,
		"-memory-limit much":   false,
		"-memory-limit 0":      false,
		"-divide 0":            false,
		"-tries 3":             false,
	} {
		o := parseScale(strings.Fields(args))
		if err := o.validate(); (err == nil) != want {
			t.Errorf("%q: got %v", args, err)
		}
	}
	o := parseScale(nil)
	if most, err := o.mostMemory(); most != 1<<30 || err != nil {
		t.Errorf("want 1 GiB, got %v, %v", most, err)
	}
}

func TestScenariosAreSelected(t *testing.T) {
	want := []string{"pods", "custom", "namespaces", "quotas", "steady", "leader", "churn"}
	if diff := cmp.Diff(want, scenarioNames()); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	var selected []string
	for _, plan := range plans() {
		for _, part := range plan.only(regexp.MustCompile("^(steady|qu)")).parts {
			selected = append(selected, part.scenario)
		}
	}
	if want := []string{"quotas", "steady", "quotas"}; !slices.Equal(selected, want) {
		t.Errorf("want %v, got %v", want, selected)
	}
}

func TestSeriesAreAddedUp(t *testing.T) {
	const text = "# TYPE a gauge\na 1.5e+07\n# TYPE b counter\nb{c=\"d e\"} 2\nb{c=\"f\"} 3\n"
	got, err := parseMetrics([]byte(text))
	if err != nil || got.sum("a") != 1.5e7 || got.sum("b") != 5 || got.sum("c") != 0 {
		t.Errorf("want 1.5e7, 5 and 0, got %v, %v", got, err)
	}
	if one := got.sum("b", func(labels map[string]string) bool { return labels["c"] == "f" }); one != 3 {
		t.Errorf("want 3 of one series, got %v", one)
	}
	if _, err := parseMetrics([]byte("a b\n")); err == nil {
		t.Error("want an error for what is no number")
	}
}

// What isn't there is missing, even if nothing is wanted of it.
func TestAFollowerAwaitsWhatIsWantedOfEachObject(t *testing.T) {
	quota := func(name, pods string) *corev1.ResourceQuota {
		made := builders.ResourceQuota("a", name)
		made.Status.Used = corev1.ResourceList{"pods": resource.MustParse(pods)}
		return made
	}
	api := fake.NewClientBuilder().WithObjects(quota("first", "1")).Build()
	list := func() client.ObjectList { return &corev1.ResourceQuotaList{} }
	f, err := follow(t.Context(), api, list, func(object runtime.Object) (string, int64) {
		read, _ := object.(*corev1.ResourceQuota)
		pods := read.Status.Used[corev1.ResourcePods]
		return read.Name, pods.Value()
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.stop()
	want := map[string]int64{"first": 1, "second": 0}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := f.await(ctx, want); err == nil || !strings.Contains(err.Error(), "1 of 2, such as second") {
		t.Errorf("want the second to be missing, got %v", err)
	}
	if err := api.Create(t.Context(), quota("second", "0")); err != nil {
		t.Fatal(err)
	}
	if err := f.await(t.Context(), want); err != nil {
		t.Error(err)
	}
}

func TestTheReportShowsOnlyWhatWasMeasured(t *testing.T) {
	r := &report{}
	r.column("50,000 pods", size{500, 50, 50000, 0, true}).start = &start{
		ready: 4.26, counted: 13.14, cpu: 5.25, peak: 108e6, changes: []changes{{deletion: 40.5}, {deletion: 41}},
	}
	few := size{namespaces: 2, quotas: 1, pods: 1}
	r.column("native alone", few).native = &counted{seconds: 1.5, cpu: 0.5, peak: 80e6}
	if r.column("native alone", few).native == nil {
		t.Error("a column that is there is added again")
	}
	r.churn = []memory{{100e6, 20e6}, {104e6, 21e6}}
	r.add("a", 3, "≤ 2")
	shown := r.section()
	want := []sheet{{
		Columns: []string{"", "50,000 pods", "native alone"},
		Rows: [][]string{
			{"namespaces, quotas, pods", "500, 50, 50,000", "2, 1, 1"},
			{"from the start until all quotas are Ready and Enforced, s", "4.3", ""},
			{"from the start to a complete count, s", "13.1", ""},
			{"the operator's CPU until then, s", "5.2", ""},
			{"resident at the peak, MB", "108", ""},
			{"a deletion to the ledger, p50, ms", "40.5", ""},
			{"native ResourceQuota: from the start to a complete count, s", "", "1.5"},
			{"its CPU until then, s", "", "0.5"},
			{"its resident memory at the peak, MB", "", "80"},
		},
	}, {
		Title:   "Memory after namespaces and quotas have come and gone, each time under new names",
		Columns: []string{"times", "1", "2"},
		Rows:    [][]string{{"resident, MB", "100", "104"}, {"live heap, MB", "20", "21"}},
	}}
	if diff := cmp.Diff(want, shown.Tables); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	var out strings.Builder
	if err := shown.print(&out); err != nil || !strings.Contains(out.String(), "| a | **3.00** |  | ≤ 2 |\n\n| | 50,000 pods |") {
		t.Errorf("got %v:\n%s", err, out.String())
	}
}

func TestOnlyTheOperatorsWakesHaveATarget(t *testing.T) {
	o := wakeOptions{refused: 2 * time.Minute}
	shown := o.section([]wakeRow{{form: formAll, p50: 1.24, p99: 2.26}, {form: formNative, p50: 10.23, p99: 14.03}})
	goals := []goal{{What: "wait of 2 min, room for all: p99 until pods come, s", Value: 2.26, Target: "≤ 2"}}
	rows := [][]string{{"operator, room for all", "2 min", "1.24", "2.26", "0"}, {"native ResourceQuota", "2 min", "10.23", "14.03", ""}}
	if diff := cmp.Diff(goals, shown.Goals) + cmp.Diff(rows, shown.Tables[0].Rows); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

func TestTheFirstErrorEndsWhatIsDoneInParallel(t *testing.T) {
	failure := errors.New("failure")
	var done atomic.Int64
	err := inParallel(t.Context(), 1000, func(ctx context.Context, i int) error {
		if i == 3 {
			return failure
		}
		done.Add(1)
		if i > 500 {
			<-ctx.Done()
		}
		return nil
	})
	if !errors.Is(err, failure) || done.Load() == 999 {
		t.Errorf("want the failure and an early end, got %v after %d", err, done.Load())
	}
	if err := inParallel(t.Context(), 100, func(context.Context, int) error { return nil }); err != nil {
		t.Error(err)
	}
}
