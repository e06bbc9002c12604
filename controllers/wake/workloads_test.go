// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	numbers(object.Object)
	return object
}

// numbers turns numbers into the types that a client gives them.
func numbers(object map[string]any) {
	for name, value := range object {
		switch value := value.(type) {
		case float64:
			object[name] = int64(value)
		case map[string]any:
			numbers(value)
		}
	}
}

func TestHowManyObjectsAWorkloadLacks(t *testing.T) {
	for name, test := range map[string]struct {
		kind waiting.Kind
		text string
		want int64
	}{
		"a ReplicaSet: all it wants and has not":            {waiting.ReplicaSet, `{"spec":{"replicas":5},"status":{"replicas":2}}`, 3},
		"one of which nothing is said wants one":            {waiting.ReplicationController, `{"spec":{},"status":{}}`, 1},
		"one that is scaled down":                           {waiting.ReplicaSet, `{"spec":{"replicas":0},"status":{"replicas":0}}`, 0},
		"one that is being deleted":                         {waiting.ReplicaSet, `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"replicas":5}}`, 0},
		"a StatefulSet: one after the other":                {waiting.StatefulSet, `{"spec":{"replicas":5,"podManagementPolicy":"OrderedReady"},"status":{"replicas":2}}`, 1},
		"one that has all":                                  {waiting.StatefulSet, `{"spec":{"replicas":2},"status":{"replicas":2}}`, 0},
		"a StatefulSet with parallel pods: all at once":     {waiting.StatefulSet, `{"spec":{"replicas":5,"podManagementPolicy":"Parallel"},"status":{"replicas":2}}`, 3},
		"a DaemonSet: one for each node":                    {waiting.DaemonSet, `{"status":{"desiredNumberScheduled":7,"currentNumberScheduled":3}}`, 4},
		"a Job: as many at once as it may":                  {waiting.Job, `{"spec":{"parallelism":4,"completions":10},"status":{"active":1,"succeeded":2}}`, 3},
		"at the end as many as are left":                    {waiting.Job, `{"spec":{"parallelism":4,"completions":10},"status":{"active":1,"succeeded":8}}`, 1},
		"a work queue of unknown length":                    {waiting.Job, `{"spec":{"parallelism":4},"status":{"active":1}}`, 3},
		"a Job that has failed":                             {waiting.Job, `{"spec":{"parallelism":4,"completions":10},"status":{"failed":1,"conditions":[{"type":"Failed","status":"True"}]}}`, 0},
		"a work queue that is complete":                     {waiting.Job, `{"spec":{"parallelism":4},"status":{"succeeded":1,"conditions":[{"type":"Complete","status":"True"}]}}`, 0},
		"a Job that hasn't failed":                          {waiting.Job, `{"spec":{"parallelism":4},"status":{"conditions":[{"type":"Failed","status":"False"},{"type":"Suspended","status":"False"}]}}`, 4},
		"a work queue of which a pod succeeded":             {waiting.Job, `{"spec":{"parallelism":3},"status":{"active":1,"succeeded":1}}`, 0},
		"a Job of which indexes failed for good":            {waiting.Job, `{"spec":{"parallelism":9,"completions":9},"status":{"active":2,"succeeded":1,"failedIndexes":"1,3-5"}}`, 2},
		"a Job that is suspended":                           {waiting.Job, `{"spec":{"suspend":true,"parallelism":4},"status":{}}`, 0},
		"a pod: the claims of its volumes":                  {waiting.Pod, `{"spec":{"volumes":[{"name":"a","ephemeral":{}},{"name":"b","emptyDir":{}}]},"status":{"phase":"Pending"}}`, 1},
		"a pod: the claims of devices that it doesn't know": {waiting.Pod, `{"spec":{"resourceClaims":[{"name":"a","resourceClaimTemplateName":"t"},{"name":"b","resourceClaimTemplateName":"t"},{"name":"c","resourceClaimName":"c"}]},"status":{"resourceClaimStatuses":[{"name":"a"}]}}`, 1},
		"a pod that has ended":                              {waiting.Pod, `{"spec":{"volumes":[{"name":"a","ephemeral":{}}]},"status":{"phase":"Failed"}}`, 0},
		"a Deployment, which doesn't say":                   {waiting.Deployment, `{}`, 1},
		"a Deployment that is paused":                       {waiting.Deployment, `{"spec":{"paused":true}}`, 0},
		"a CronJob that is suspended":                       {waiting.CronJob, `{"spec":{"suspend":true}}`, 0},
		"a CronJob, which doesn't say":                      {waiting.CronJob, `{}`, 1},
		"a kind that is never woken":                        {waiting.Kind("Secret"), `{}`, 0},
		"numbers that aren't":                               {waiting.ReplicaSet, `{"spec":{"replicas":"5"},"status":{"replicas":{}}}`, 1},
		"a Job that has done more than it had to, by far":   {waiting.Job, `{"spec":{"parallelism":1,"completions":1},"status":{"succeeded":3}}`, -2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lacks(test.kind, parse(t, test.text)); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// api has workloads, and notes its patches.
type api struct {
	*Workloads
	mu      sync.Mutex // guards the fields below
	patches []string
	answer  func(name string) (runtime.Object, error)
}

func newAPI(t *testing.T, answer func(name string) (runtime.Object, error), objects ...runtime.Object) *api {
	t.Helper()
	a := &api{answer: answer}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		waiting.ReplicaSet.Resource(): "ReplicaSetList", waiting.CronJob.Resource(): "CronJobList",
	})
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch, ok := action.(clienttesting.PatchAction)
		if !ok || patch.GetSubresource() != "status" {
			return true, nil, errors.New("this isn't a patch of the status")
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.patches = append(a.patches, patch.GetResource().Resource+" "+patch.GetNamespace()+"/"+patch.GetName()+" "+string(patch.GetPatch()))
		answered, err := a.answer(patch.GetName())
		return true, answered, err
	})
	client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		list, ok := action.(clienttesting.ListAction)
		if !ok {
			return true, nil, errors.New("this isn't a list")
		}
		name, _ := list.GetListRestrictions().Fields.RequiresExactMatch("metadata.name")
		object, err := a.answer(name)
		if err != nil {
			return true, nil, err
		}
		found := &unstructured.UnstructuredList{Object: map[string]any{"kind": "ReplicaSetList", "apiVersion": "apps/v1"}}
		if workload, ok := object.(*unstructured.Unstructured); ok {
			found.Items = append(found.Items, *workload)
		}
		return true, found, err
	})
	known := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(known); err != nil {
		t.Fatal(err)
	}
	a.Workloads = NewWorkloads(client, metadatafake.NewSimpleMetadataClient(known, objects...))
	return a
}

func replicaSet(t *testing.T, name string, lacking int64) *unstructured.Unstructured {
	t.Helper()
	object := parse(t, `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"namespace":"shop"},"spec":{"replicas":9},"status":{}}`)
	object.SetName(name)
	object.SetUID(refusalOf(name).UID)
	if err := unstructured.SetNestedField(object.Object, 9-lacking, "status", "replicas"); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestHowAWorkloadIsWoken(t *testing.T) {
	moment := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	resource := schema.GroupResource{Group: "apps", Resource: "replicasets"}
	for name, test := range map[string]struct {
		err    error
		want   int64
		failed bool
	}{
		"it says what it lacks":                              {want: 4},
		"one that is gone lacks nothing":                     {err: apierrors.NewNotFound(resource, "web")},
		"a workload whose name another has lacks nothing":    {err: apierrors.NewConflict(resource, "web", errors.New("Precondition failed: UID in precondition"))},
		"a workload that can't be changed lacks nothing":     {err: apierrors.NewInvalid(schema.GroupKind{}, "web", nil)},
		"a workload that another client changes tries again": {err: apierrors.NewConflict(resource, "web", errors.New("modified")), failed: true},
		"a workload that may not be changed tries again":     {err: apierrors.NewForbidden(resource, "web", errors.New("rbac")), failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(t, func(name string) (runtime.Object, error) { return replicaSet(t, name, 4), test.err })
			got, err := api.Wake(t.Context(), refusalOf("web").Owner, moment)
			if got != test.want || (err != nil) != test.failed {
				t.Errorf("got %d, %v", got, err)
			}
			want := []string{`replicasets shop/web {"metadata":{"annotations":{"quota.sharedquota.dev/room":"2026-01-02T03:04:05.000000006Z"},"uid":"uid-web"}}`}
			if diff := cmp.Diff(want, api.patches); diff != "" {
				t.Errorf("patches (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestTheVolumesOfAPodAreClaimed(t *testing.T) {
	resource := schema.GroupResource{Resource: "persistentvolumeclaims"}
	refused := apierrors.NewForbidden(resource, "p-two", errors.New(`admission webhook "objects" denied the request: exceeded quota`))
	noRight := apierrors.NewForbidden(resource, "p-two", errors.New(`User "operator" cannot create resource "persistentvolumeclaims"`))
	for name, test := range map[string]struct {
		second error
		want   int64
		failed bool
	}{
		"all are":                            {},
		"one is there":                       {second: apierrors.NewAlreadyExists(resource, "p-two")},
		"one is refused":                     {second: refused, want: 1},
		"one may not be created":             {second: noRight, want: 1, failed: true},
		"it is unknown whether one is there": {second: errors.New("no answer"), want: 1, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := parse(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"p","uid":"u"},"spec":{"volumes":[
				{"name":"one","ephemeral":{"volumeClaimTemplate":{"metadata":{"labels":{"l":"1"}},"spec":{"storageClassName":"gold"}}}},
				{"name":"none","emptyDir":{}},{"name":"two","ephemeral":{"volumeClaimTemplate":{"spec":{}}}}]}}`)
			api := newAPI(t, func(string) (runtime.Object, error) { return pod, nil })
			var made []*unstructured.Unstructured
			api.client.(*fake.FakeDynamicClient).PrependReactor("create", "persistentvolumeclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
				claim := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
				if claim.GetName() == "p-two" && test.second != nil {
					return true, nil, test.second
				}
				made = append(made, claim)
				return true, claim, nil
			})
			got, err := api.Wake(t.Context(), waiting.Owner{Kind: waiting.Pod, Namespace: "shop", Name: "p", UID: "u"}, time.Unix(0, 0))
			if got != test.want || (err != nil) != test.failed {
				t.Errorf("got %d, %v", got, err)
			}
			class, _, _ := unstructured.NestedString(made[0].Object, "spec", "storageClassName")
			if made[0].GetName() != "p-one" || made[0].GetLabels()["l"] != "1" || class != "gold" || !metav1.IsControlledBy(made[0], pod) {
				t.Errorf("made %v", made[0])
			}
		})
	}
}

func TestWorkloadsThatLackNothingAreForgotten(t *testing.T) {
	list := waiting.NewList()
	start := time.Unix(1000, 0)
	for _, name := range []string{"web", "gone", "another", "full", "unknown", "new"} {
		list.Refused(start, refusalOf(name))
	}
	api := newAPI(t, func(name string) (runtime.Object, error) {
		switch name {
		case "web", "new":
			return replicaSet(t, name, 1), nil
		case "another":
			return replicaSet(t, "x", 1), nil // of another UID
		case "full":
			return replicaSet(t, name, 0), nil
		case "unknown":
			return nil, errors.New("no answer")
		default:
			return nil, nil //nolint:nilnil // no object has this name
		}
	})
	reviewer := NewReviewer(clocktesting.NewFakeClock(start.Add(time.Hour)), list, api.Workloads)
	reviewer.review(t.Context(), start.Add(reviewAfter-1))
	if owners(list) != 6 {
		t.Errorf("%d are left of six that were just refused", owners(list))
	}
	list.Refused(start.Add(time.Minute), refusalOf("new"))
	for i := range 4 {
		reviewer.review(t.Context(), start.Add(time.Minute+time.Duration(i)*time.Second))
	}
	var left []string
	for _, record := range list.Waiting("team") {
		left = append(left, record.Name)
	}
	if diff := cmp.Diff([]string{"new", "unknown", "web"}, left); diff != "" {
		t.Errorf("waiting (-want,+got):\n%s", diff)
	}
}

func TestACronJobLacksNothingOnceItHasANewerJob(t *testing.T) {
	refused := time.Unix(1000, 5e8)
	for name, test := range map[string]struct {
		created time.Time
		owner   types.UID
		want    int64
	}{
		"a job that came before the refusal": {created: refused.Add(-2 * time.Second), owner: "uid-cron", want: 1},
		"one that came after it":             {created: refused.Add(2 * time.Second), owner: "uid-cron"},
		"one of the same second":             {created: refused.Truncate(time.Second), owner: "uid-cron"},
		"a job of another owner after it":    {created: refused.Add(2 * time.Second), owner: "uid-other", want: 1},
		"a job without an owner after it":    {created: refused.Add(2 * time.Second), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			job := &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cron-1", CreationTimestamp: metav1.NewTime(test.created)},
			}
			if test.owner != "" {
				job.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "cron", UID: test.owner, Controller: ptr.To(true)}}
			}
			cron := parse(t, `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"namespace":"shop","name":"cron","uid":"uid-cron"},"spec":{}}`)
			api := newAPI(t, func(string) (runtime.Object, error) { return cron, nil }, job)
			record := waiting.Record{Refusal: refusalOf("cron"), Last: refused}
			record.Kind = waiting.CronJob
			got, err := api.look().lacks(t.Context(), record)
			if got != test.want || err != nil {
				t.Errorf("got %d, %v, want %d", got, err, test.want)
			}
		})
	}
}

func TestANamespaceWithManyKeepsNoReviewFromOthers(t *testing.T) {
	list, start := waiting.NewList(), time.Unix(1000, 0)
	refuse := func(at time.Time, namespace, name string) {
		refusal := refusalOf(name)
		refusal.Namespace = namespace
		list.Refused(at, refusal)
	}
	for i := range 3 {
		refuse(start, fmt.Sprint("victim-", i), "web")
	}
	reviewer := NewReviewer(clocktesting.NewFakeClock(start), list, nil)
	looked := map[string]int{}
	const seconds = 120
	for second := range seconds {
		now := start.Add(time.Duration(second) * time.Second)
		for i := range 2 * reviewed { // none of which has been looked at
			refuse(now, "evil", fmt.Sprintf("o%d-%d", second, i))
		}
		due := reviewer.due(now)
		if len(due) > reviewed {
			t.Fatalf("%d at once", len(due))
		}
		for _, record := range due {
			looked[record.Namespace]++
		}
	}
	for i := range 3 {
		if times := looked[fmt.Sprint("victim-", i)]; times < seconds/int(reviewAfter/time.Second)-2 {
			t.Errorf("victim %d was looked at %d times in %d s", i, times, seconds)
		}
	}
	if looked["evil"] < seconds {
		t.Errorf("the namespace with many was looked at %d times in %d s", looked["evil"], seconds)
	}
}

func TestARefusalDuringAReviewStands(t *testing.T) {
	list, start := waiting.NewList(), time.Unix(1000, 0)
	list.Refused(start, refusalOf("web"))
	clock := clocktesting.NewFakeClock(start.Add(time.Minute))
	api := newAPI(t, func(name string) (runtime.Object, error) {
		clock.Step(time.Millisecond)
		list.Refused(clock.Now(), refusalOf(name))
		return replicaSet(t, name, 0), nil // by a status that isn't written yet
	})
	NewReviewer(clock, list, api.Workloads).review(t.Context(), clock.Now())
	if owners(list) != 1 {
		t.Error("the refusal is forgotten")
	}
}
