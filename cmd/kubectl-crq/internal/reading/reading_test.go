// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// cluster holds these objects. Lists of the kinds of refused are refused as they are told.
func cluster(t *testing.T, refused map[string]error, objects ...client.Object) *Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), quotav1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	inner := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	kind := func(object runtime.Object) string {
		found, err := inner.GroupVersionKindFor(object)
		if err != nil {
			t.Fatal(err)
		}
		return found.Kind
	}
	return NewReader(interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := refused[kind(object)]; err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := refused[kind(list)]; err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
	}), fitting.NewTypes())
}

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", nil)

func objectOf(t *testing.T, text string) Object {
	t.Helper()
	raw := &unstructured.Unstructured{}
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = raw.UnmarshalJSON(asJSON)
	}
	if err != nil {
		t.Fatal(err)
	}
	raw.SetNamespace("shop")
	return Object{Unstructured: raw, Resource: appsv1.SchemeGroupVersion.WithResource("deployments"), Served: true}
}

const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: web:2}]}}
`

// live is a Deployment that was applied with two containers and 3 replicas, and
// that others have changed since.
func live() *appsv1.Deployment {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{
		corev1.LastAppliedConfigAnnotation: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{` +
			`"template":{"spec":{"containers":[{"name":"main","image":"web:1"},{"name":"gone","image":"gone"}]}}}}`,
	}}}
	deployment.Spec.Replicas = ptr.To[int32](7)
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	deployment.Spec.Template.Labels = map[string]string{"a": "b"}
	deployment.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "then"}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "main", Image: "web:1"}, {Name: "gone", Image: "gone"}, {Name: "injected", Image: "proxy"},
	}
	return deployment
}

func TestApplyingKeepsWhatOthersSet(t *testing.T) {
	got, note, err := cluster(t, nil, live()).Manifest(t.Context(), objectOf(t, manifest))
	if err != nil || note != "" {
		t.Fatal(note, err)
	}
	if got.Live == nil || got.Kind != "Deployment" {
		t.Fatalf("got %+v", got)
	}
	deployment, ok := got.Object.(*appsv1.Deployment)
	if !ok {
		t.Fatalf("got a %T", got.Object)
	}
	if *deployment.Spec.Replicas != 7 || deployment.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] != "then" {
		t.Errorf("what others set is lost: %+v", deployment.Spec)
	}
	var images []string
	for _, container := range deployment.Spec.Template.Spec.Containers {
		images = append(images, container.Image)
	}
	if diff := cmp.Diff([]string{"web:2", "proxy"}, images); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	if deployment.Spec.Strategy.RollingUpdate == nil {
		t.Error("it has no defaults")
	}
}

func TestFieldsAndValuesThatTheAPIServerRefuses(t *testing.T) {
	for change, want := range map[string]string{
		"replica: 5":            `unknown field "spec.replica"`,
		`replicas: "5"`:         "spec.replicas can't be a string",
		"replicas: 1.5":         "spec.replicas can't be a number 1.5",
		"replicas: 99999999999": "spec.replicas can't be a number 99999999999",
		"replicas: -1":          "spec.replicas can't be below 0",
	} {
		_, _, err := cluster(t, nil).Manifest(t.Context(), objectOf(t, strings.Replace(manifest, "spec:\n", "spec:\n  "+change+"\n", 1)))
		if got := errorText(err); got != "reading Deployment shop/web: "+want+": correct it, because kubectl apply refuses it, too" {
			t.Errorf("of %s: %s", change, got)
		}
	}
}

func TestAMissingObjectIsNew(t *testing.T) {
	for name, test := range map[string]struct {
		refused map[string]error
		note    string
	}{
		"there is none":                {},
		"the kind isn't served":        {refused: map[string]error{"Deployment": &meta.NoKindMatchError{}}},
		"the user may not look for it": {refused: map[string]error{"Deployment": forbidden}, note: "You may not read Deployment shop/web: it is counted as if it were new."},
	} {
		t.Run(name, func(t *testing.T) {
			got, note, err := cluster(t, test.refused).Manifest(t.Context(), objectOf(t, manifest))
			if err != nil || note != test.note || got.Live != nil {
				t.Errorf("got live %v, note %q, error %v", got.Live, note, err)
			}
			if replicas := got.Object.(*appsv1.Deployment).Spec.Replicas; ptr.Deref(replicas, 0) != 1 {
				t.Errorf("it has no defaults: %v", replicas)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	view := &quotav1.LocalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}}
	native := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}}
	other := &quotav1.LocalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "team"}}
	covering := builders.Quota("new").Label("team", "a").Hard("pods", "3").Obj()
	covering.Spec.Enforcement.Mode = quotav1.EnforcementWarn
	labelled := builders.Namespace("shop").Label("team", "a").Obj()
	for name, test := range map[string]struct {
		refused       map[string]error
		objects       []client.Object
		views, quotas int
		notInstalled  bool
		unviewed      int
		err           string
	}{
		"a quota that has no view yet":            {objects: []client.Object{labelled, view, covering}, views: 2},
		"a quota that covers another namespace":   {objects: []client.Object{namespace, covering}},
		"a user that may not read quotas":         {refused: map[string]error{"ClusterResourceQuotaList": forbidden}, objects: []client.Object{labelled, native, covering}, quotas: 1, unviewed: 1},
		"a user that may read neither":            {refused: map[string]error{"ClusterResourceQuotaList": forbidden, "Namespace": forbidden}, unviewed: 1},
		"a user that may read a view alone":       {refused: map[string]error{"ClusterResourceQuotaList": forbidden, "Namespace": forbidden}, objects: []client.Object{view}, views: 1},
		"both kinds":                              {objects: []client.Object{namespace, view, native, other}, views: 1, quotas: 1},
		"a user that may not read the namespace":  {refused: map[string]error{"Namespace": forbidden}, objects: []client.Object{view}, views: 1},
		"shared quotas aren't there":              {refused: map[string]error{"LocalResourceQuotaList": &meta.NoKindMatchError{}}, objects: []client.Object{namespace, native}, quotas: 1, notInstalled: true},
		"the namespace isn't there":               {objects: []client.Object{view}, err: "namespace shop doesn't exist, and which quotas will cover it isn't known: create it first, and ask again"},
		"a user that may not read the views":      {refused: map[string]error{"LocalResourceQuotaList": forbidden}, objects: []client.Object{namespace}, err: "reading the local views in namespace shop: " + forbidden.Error()},
		"a user that may not read ResourceQuotas": {refused: map[string]error{"ResourceQuotaList": forbidden}, objects: []client.Object{namespace}, err: "reading the ResourceQuotas in namespace shop: " + forbidden.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := cluster(t, test.refused, test.objects...).Limits(t.Context(), []string{"shop"})
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != test.err || len(got.Views) != test.views || len(got.Quotas) != test.quotas || got.NotInstalled != test.notInstalled ||
				len(got.Unviewed) != test.unviewed {
				t.Errorf("got %+v, error %q", got, text)
			}
		})
	}
}

// TestALimitIsThatOfTheQuotaAndNotOfAnOlderView has a view that hasn't followed its quota yet.
func TestALimitIsThatOfTheQuotaAndNotOfAnOlderView(t *testing.T) {
	view := &quotav1.LocalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}}
	view.Status.Mode, view.Status.Total.Used = quotav1.EnforcementWarn, corev1.ResourceList{"pods": resource.MustParse("1")}
	got, err := cluster(t, nil, view, builders.Namespace("shop").Label("team", "a").Obj(),
		builders.Quota("team").Label("team", "a").Hard("pods", "3").Obj()).Limits(t.Context(), []string{"shop"})
	if err != nil || len(got.Views) != 1 {
		t.Fatal(got, err)
	}
	status := got.Views[0].Status
	if hard, used := status.Total.Hard["pods"], status.Total.Used["pods"]; hard.Value() != 3 || used.Value() != 1 || status.Mode != "" {
		t.Errorf("got %+v", status)
	}
}

func TestSurgeIsThatOfTheQuotaAndNotOfAnOlderView(t *testing.T) {
	pods := func(count string) corev1.ResourceList { return corev1.ResourceList{"pods": resource.MustParse(count)} }
	known := &quotav1.SurgeStatus{Hard: pods("1"), Used: pods("1"), Workloads: []quotav1.SurgingWorkload{{Kind: "Deployment", Name: "web"}}}
	for name, test := range map[string]struct {
		spec        quotav1.Surge
		known, want *quotav1.SurgeStatus
	}{
		"none any more":      {known: known},
		"more":               {quotav1.Surge{Hard: pods("3")}, known, &quotav1.SurgeStatus{Hard: pods("3"), Used: pods("1"), Workloads: known.Workloads}},
		"not written so far": {quotav1.Surge{Hard: pods("3")}, nil, &quotav1.SurgeStatus{Hard: pods("3")}},
	} {
		if diff := cmp.Diff(test.want, surgeOf(test.spec, test.known)); diff != "" {
			t.Errorf("%s (-want,+got):\n%s", name, diff)
		}
	}
	if amount := known.Hard["pods"]; amount.Value() != 1 {
		t.Error("the view was changed")
	}
}

func TestPresentIsWhatIsAlive(t *testing.T) {
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: corev1.PodStatus{Phase: phase}}
	}
	going := pod("going", corev1.PodRunning)
	going.Finalizers, going.DeletionTimestamp = []string{"example.com/wait"}, ptr.To(metav1.Now())
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-web-0"}}
	reader := cluster(t, map[string]error{"ReplicaSetList": forbidden, "ResourceClaimTemplateList": &meta.NoKindMatchError{}},
		pod("pending", corev1.PodPending), pod("running", corev1.PodRunning), pod("done", corev1.PodSucceeded), pod("failed", corev1.PodFailed), going, claim)
	present, notes, err := reader.Present(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pod := range present.Pods {
		names = append(names, pod.Name)
	}
	if diff := cmp.Diff([]string{"pending", "running"}, names); diff != "" || !present.Claims.Has("data-web-0") {
		t.Errorf("claims %v, pods (-want,+got):\n%s", present.Claims, diff)
	}
	want := []string{"You may not read replicasets in namespace shop: what is there is counted as if it were to be made."}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want,+got):\n%s", diff)
	}
}

func TestSurroundingsAreReadAsFarAsTheyCanBe(t *testing.T) {
	reader := cluster(t, map[string]error{"RuntimeClassList": forbidden, "LimitRangeList": forbidden},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}})
	found, unread, err := reader.Surroundings(t.Context(), []string{"shop"})
	if err != nil || len(found.PriorityClasses) != 1 {
		t.Fatal(found, err)
	}
	if diff := cmp.Diff(Unread{RuntimeClasses: true, LimitRanges: true}, unread); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	reader = cluster(t, map[string]error{"StorageClassList": errors.New("gone")})
	if _, _, err := reader.Surroundings(t.Context(), nil); err == nil {
		t.Error("a failure passes for being refused")
	}
}

func TestNodesOf(t *testing.T) {
	node := func(name, disk string, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": disk}}, Spec: corev1.NodeSpec{Taints: taints}}
	}
	nodes := []client.Object{
		node("a", "fast"), node("b", "fast", corev1.Taint{Key: "own", Effect: corev1.TaintEffectNoSchedule}), node("c", "slow"),
		node("d", "fast", corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}),
	}
	set := &appsv1.DaemonSet{}
	set.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "fast"}
	for name, test := range map[string]struct {
		refused map[string]error
		said    Nodes
		want    int64
		known   bool
	}{
		"the nodes that match, also where nothing else runs": {want: 2, known: true},
		"as many as was said":                                {said: Nodes{Said: true, Count: 9}, want: 9, known: true},
		"the user may not look":                              {refused: map[string]error{"NodeList": forbidden}},
	} {
		t.Run(name, func(t *testing.T) {
			count, err := cluster(t, test.refused, nodes...).NodesOf(t.Context(), test.said)
			if err != nil {
				t.Fatal(err)
			}
			if got, known := count(set); got != test.want || known != test.known {
				t.Errorf("got %d, %t", got, known)
			}
		})
	}
}

func TestAnInventoryIsOneRound(t *testing.T) {
	reader, calls := counted(t, map[string]error{"CronJobList": forbidden},
		append(story(), builders.Pod("other", "bare").Obj(), builders.ResourceQuota("other", "own"))...)
	got, err := reader.Inventory(t.Context(), "")
	if err != nil || calls.calls.Load() != 13 {
		t.Fatalf("%d calls, error %v", calls.calls.Load(), err)
	}
	parts := got.ByNamespace()
	text := fmt.Sprint(len(parts), len(parts["shop"].Pods), len(parts["shop"].ReplicaSets), len(parts["shop"].Jobs), len(parts["other"].Pods),
		len(parts["other"].Limits.Quotas), parts["other"].Forbidden)
	if text != "2 1 2 2 1 1 [cronjobs]" {
		t.Errorf("got %s", text)
	}
	reader, _ = counted(t, map[string]error{"LocalResourceQuotaList": forbidden, "ResourceQuotaList": forbidden})
	if _, err := reader.Inventory(t.Context(), ""); err == nil {
		t.Error("without any quota there is no answer")
	}
}

func TestAnInventoryOfOneNamespaceTellsAMissingOneFromOneWithoutQuotas(t *testing.T) {
	there := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	for name, test := range map[string]struct {
		refused map[string]error
		objects []client.Object
		missing bool
	}{
		"it doesn't exist":                 {missing: true},
		"it has no quota":                  {objects: []client.Object{there}},
		"it has one":                       {objects: []client.Object{there, builders.ResourceQuota("shop", "own")}},
		"the user may not read namespaces": {refused: map[string]error{"Namespace": forbidden}},
		"other namespaces have quota":      {objects: []client.Object{builders.ResourceQuota("other", "own")}, missing: true},
	} {
		t.Run(name, func(t *testing.T) {
			reader, _ := counted(t, test.refused, test.objects...)
			_, err := reader.Inventory(t.Context(), "shop")
			if missing := (*MissingNamespaceError)(nil); errors.As(err, &missing) != test.missing || !test.missing && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// paging gives out one object of a list at a time.
type paging struct{ client.Reader }

func (p paging) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	if err := p.Reader.List(ctx, list, client.InNamespace(asked.Namespace)); err != nil {
		return err
	}
	all, err := meta.ExtractList(list)
	if err != nil || len(all) == 0 || asked.Limit == 0 {
		return err
	}
	at, _ := strconv.Atoi(asked.Continue)
	if at+1 < len(all) {
		list.SetContinue(strconv.Itoa(at + 1))
	}
	return meta.SetList(list, all[at:at+1])
}

func TestAListIsReadInPages(t *testing.T) {
	reader := NewReader(paging{cluster(t, nil, builders.Namespace("shop").Obj(), builders.Pod("shop", "a").Obj(), builders.Pod("shop", "b").Obj(),
		builders.Pod("shop", "c").Obj(), builders.ResourceQuota("shop", "d"), builders.ResourceQuota("shop", "e")).client}, fitting.NewTypes())
	got, err := reader.Inventory(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for i := range got.Pods {
		names += got.Pods[i].Name
	}
	for i := range got.Limits.Quotas {
		names += got.Limits.Quotas[i].Name
	}
	if names != "abcde" {
		t.Errorf("got %s", names)
	}
}
