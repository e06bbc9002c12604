// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubefake "k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// lookups counts looks by outcome.
type lookups struct {
	outcomes.Observer // nothing else is told

	replaces, others, unknown int
}

func (l *lookups) Looked(replaces bool, err error) {
	switch {
	case err != nil:
		l.unknown++
	case replaces:
		l.replaces++
	default:
		l.others++
	}
}

// replacing makes Replacements that look at these objects. The fake API servers select by labels, and not by fields.
func replacing(t *testing.T, objects ...runtime.Object) (*Replacements, *kubefake.Clientset, *lookups) {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var known []runtime.Object
	for _, object := range objects {
		meta := object.(client.Object)
		made := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: meta.GetNamespace(), Name: meta.GetName(), UID: meta.GetUID(), Labels: meta.GetLabels(),
			Annotations: meta.GetAnnotations(), OwnerReferences: meta.GetOwnerReferences(),
			DeletionTimestamp: meta.GetDeletionTimestamp(), DeletionGracePeriodSeconds: meta.GetDeletionGracePeriodSeconds(),
		}}
		switch object.(type) {
		case *corev1.Pod:
			made.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		case *appsv1.ReplicaSet:
			made.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}
		default:
			continue
		}
		known = append(known, made)
	}
	typed, told := kubefake.NewClientset(objects...), &lookups{}
	return NewReplacements(ReplacementParts{
		Clock: clock.RealClock{}, Typed: typed, Metadata: metadatafake.NewSimpleMetadataClient(scheme, known...), Outcomes: told,
	}), typed, told
}

// of makes an object another one's.
func of[T client.Object](object T, uid string, by client.Object, kind string) T {
	object.SetUID(types.UID(uid))
	if by != nil {
		version := "apps/v1"
		if kind == "Job" {
			version = "batch/v1"
		}
		object.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: version, Kind: kind, Name: by.GetName(), UID: by.GetUID(), Controller: ptr.To(true),
		}})
	}
	return object
}

// podOfApp is a pod that the selectors of workloads from package builders match.
func podOfApp(name, cpu string) *corev1.Pod {
	pod := builders.Pod("shop", name).Request("cpu", cpu).Obj()
	pod.Labels = map[string]string{"app": "app"}
	return pod
}

// rollout has a Deployment that asks for one pod, and has it, of the ReplicaSet before.
func rollout() (objects []runtime.Object, after *appsv1.ReplicaSet) {
	web := of(builders.Deployment("shop", "web", 1), "web", nil, "")
	web.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(1))}
	before := of(builders.ReplicaSet("shop", "web-1"), "web-1", web, "Deployment")
	after = of(builders.ReplicaSet("shop", "web-2"), "web-2", web, "Deployment")
	for _, set := range []*appsv1.ReplicaSet{before, after} {
		set.Labels = map[string]string{"app": "app"}
	}
	return []runtime.Object{web, before, after, of(podOfApp("web-1-a", "500m"), "old", before, "ReplicaSet")}, after
}

// creationOf asks for a new pod in the name of a controller.
func creationOf(t *testing.T, pod *corev1.Pod, controller string) *admissionv1.AdmissionRequest {
	t.Helper()
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	request := creation()
	request.Name, request.Object.Raw = pod.Name, text
	request.UserInfo.Username = "system:serviceaccount:kube-system:" + controller
	return request
}

// proves returns the proof by the replacements for the pod of the request.
func proves(ctx context.Context, t *testing.T, by *Replacements, request *admissionv1.AdmissionRequest) proof {
	t.Helper()
	attributes, err := newDecoder().attributes(request)
	if err != nil {
		t.Fatal(err)
	}
	return by.prove(ctx, request, attributes)
}

func TestAPodThatReplacesAnotherOne(t *testing.T) {
	for name, test := range map[string]struct {
		cpu    string
		change func(objects []runtime.Object) []runtime.Object
		want   string
	}{
		"as large":                  {cpu: "500m", want: "Deployment shop/web"},
		"smaller":                   {cpu: "100m", want: "Deployment shop/web"},
		"larger":                    {cpu: "600m", want: "grows"},
		"of a Deployment that went": {cpu: "500m", change: func(objects []runtime.Object) []runtime.Object { return objects[1:] }},
		"none is there":             {cpu: "500m", change: func(objects []runtime.Object) []runtime.Object { return objects[:3] }},
		"one that is over": {cpu: "500m", change: func(objects []runtime.Object) []runtime.Object {
			old := objects[3].(*corev1.Pod)
			old.DeletionTimestamp, old.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(time.Unix(1, 0))), ptr.To[int64](0)
			return objects
		}},
		"one that somebody made for the Deployment": {cpu: "500m", change: func(objects []runtime.Object) []runtime.Object {
			objects[3].(*corev1.Pod).OwnerReferences[0].UID = "another"
			return objects
		}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, after := rollout()
			if test.change != nil {
				objects = test.change(objects)
			}
			replacements, _, told := replacing(t, objects...)
			found := proves(t.Context(), t, replacements, creationOf(t, of(podOfApp("web-2-a", test.cpu), "new", after, "ReplicaSet"), "replicaset-controller"))
			got := ""
			switch {
			case found.err != nil:
				t.Fatal(found.err)
			case found.grows:
				got = "grows"
			case found.replaces():
				got = fmt.Sprintf("%s %s/%s", found.surger.Kind, found.surger.Namespace, found.surger.Name)
			}
			if got != test.want || told.replaces+told.others != 1 {
				t.Errorf("got %q of looks %+v, want %q", got, *told, test.want)
			}
		})
	}
}

// A webhook may have made pods of one ReplicaSet of different size. Those who ask at once share a look, and each is compared.
func TestASharedLookProvesNoLargerPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects, after := rollout()
		replacements, typed, told := replacing(t, objects...)
		looks := 0
		asked := make(chan struct{})
		typed.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			looks++
			<-asked
			return false, nil, nil
		})
		var small, large proof
		go func() {
			small = proves(t.Context(), t, replacements, creationOf(t, of(podOfApp("a", "500m"), "a", after, "ReplicaSet"), "replicaset-controller"))
		}()
		synctest.Wait()
		go func() {
			large = proves(t.Context(), t, replacements, creationOf(t, of(podOfApp("b", "5"), "b", after, "ReplicaSet"), "replicaset-controller"))
		}()
		synctest.Wait()
		close(asked)
		synctest.Wait()
		if !small.replaces() || large.replaces() || !large.grows {
			t.Errorf("got %+v and %+v, want the first alone to replace another one", small, large)
		}
		if looks != 1 || told.replaces != 1 || told.others != 1 {
			t.Errorf("%d looks, told %+v", looks, *told)
		}
	})
}

func TestWhatIsntKnownIsNoReplacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects, after := rollout()
		for name, answer := range map[string]func() error{
			"an error":  func() error { return errors.New("broken") },
			"no answer": func() error { time.Sleep(time.Minute); return nil }, //nolint:forbidigo // a bubble's
		} {
			replacements, typed, told := replacing(t, objects...)
			typed.PrependReactor("get", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) {
				err := answer()
				return err != nil, nil, err
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			found := proves(ctx, t, replacements, creationOf(t, of(podOfApp("a", "500m"), "a", after, "ReplicaSet"), "replicaset-controller"))
			cancel()
			if found.replaces() || found.err == nil || told.unknown != 1 {
				t.Errorf("%s: got %+v, told %+v", name, found, *told)
			}
		}
		time.Sleep(time.Hour) //nolint:forbidigo // a bubble's: nothing is left to run
	})
}

// A workload surges as long as it has more pods than it asks for.
func TestSurges(t *testing.T) {
	daemon := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", UID: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}},
		Status:     appsv1.DaemonSetStatus{DesiredNumberScheduled: 1},
	}
	job := of(builders.Job("shop", "job"), "job", nil, "")
	job.Spec.Parallelism, job.Spec.Selector = ptr.To[int32](1), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}
	machine := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "vm", UID: "vm"}}
	deployment, after := rollout()
	launcher := func(name string) *corev1.Pod {
		pod := of(podOfApp(name, "1"), name, machine, machines.Kind)
		pod.Labels[createdBy] = "vm"
		return pod
	}
	surger := func(kind, name string) ledger.Surger {
		return ledger.Surger{UID: types.UID(name), Kind: kind, Namespace: "shop", Name: name}
	}
	for name, test := range map[string]struct {
		surger  ledger.Surger
		objects []runtime.Object
		want    bool
	}{
		"a Deployment with a pod more":  {surger("Deployment", "web"), append(deployment, of(podOfApp("b", "1"), "b", after, "ReplicaSet")), true},
		"a Deployment that has rolled":  {surger("Deployment", "web"), deployment, false},
		"another one of its name":       {ledger.Surger{UID: "before", Kind: "Deployment", Namespace: "shop", Name: "web"}, deployment, false},
		"one that is gone":              {surger("Deployment", "web"), nil, false},
		"a DaemonSet with a pod more":   {surger("DaemonSet", "agent"), []runtime.Object{daemon, of(podOfApp("a", "1"), "a", daemon, "DaemonSet"), of(podOfApp("b", "1"), "b", daemon, "DaemonSet")}, true},
		"a DaemonSet with a pod a node": {surger("DaemonSet", "agent"), []runtime.Object{daemon, of(podOfApp("a", "1"), "a", daemon, "DaemonSet")}, false},
		"a Job with a pod more":         {surger("Job", "job"), []runtime.Object{job, of(podOfApp("a", "1"), "a", job, "Job"), of(podOfApp("b", "1"), "b", job, "Job")}, true},
		"a Job with one":                {surger("Job", "job"), []runtime.Object{job, of(podOfApp("a", "1"), "a", job, "Job")}, false},
		"a machine in two pods":         {surger(machines.Kind, "vm"), []runtime.Object{launcher("a"), launcher("b")}, true},
		"a machine in one":              {surger(machines.Kind, "vm"), []runtime.Object{launcher("a")}, false},
		"a kind of workload to come":    {surger("Rollout", "web"), deployment, false},
		"a pod that somebody else owns": {surger("Job", "job"), []runtime.Object{job, of(podOfApp("a", "1"), "a", job, "Job"), of(podOfApp("b", "1"), "b", daemon, "DaemonSet")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			replacements, _, _ := replacing(t, test.objects...)
			if got, err := replacements.Surges(t.Context(), test.surger); got != test.want || err != nil {
				t.Errorf("got %v, %v, want %v", got, err, test.want)
			}
		})
	}
	replacements, typed, _ := replacing(t, deployment...)
	typed.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("broken") })
	if _, err := replacements.Surges(t.Context(), surger("Deployment", "web")); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v, want what is broken", err)
	}
	if got := atOnce(&batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](5), Completions: ptr.To[int32](3)}, Status: batchv1.JobStatus{Succeeded: 1}}); got != 2 {
		t.Errorf("a Job that lacks two completions asks for %d pods", got)
	}
}
