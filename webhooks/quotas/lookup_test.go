// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic/fake"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// served is a Discovery that knows pods, nodes and deployments.
type served struct{ err error }

func (s served) ServerGroupsAndResourcesWithContext(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return nil, []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Namespaced: true}, {Name: "pods/status", Namespaced: true}, {Name: "nodes"},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Namespaced: true}}},
	}, s.err
}

// storing has a fake of the API server's storage, with these objects in it.
func storing(objects ...runtime.Object) *fake.FakeDynamicClient {
	return fake.NewSimpleDynamicClient(runtime.NewScheme(), objects...)
}

func object(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func TestServed(t *testing.T) {
	var (
		pods        = schema.GroupResource{Resource: "pods"}
		deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}
	)
	broken := errors.New("broken")
	defined := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com", nil)
	all := map[schema.GroupResource]Served{
		pods: {Version: "v1", Namespaced: true}, nodes: {Version: "v1"},
		deployments: {Version: "v1", Namespaced: true}, gizmos: {}, widgets: {},
	}
	without := func(resources ...schema.GroupResource) map[schema.GroupResource]Served {
		rest := maps.Clone(all)
		for _, resource := range resources {
			delete(rest, resource)
		}
		return rest
	}
	for name, test := range map[string]struct {
		discovery error
		stored    []runtime.Object
		reading   error
		want      map[schema.GroupResource]Served
		wantErr   error
	}{
		"the API server knows": {want: all},
		"what has been defined and isn't served yet can't be told": {stored: []runtime.Object{defined}, want: without(widgets)},
		"an API that is down can't be told": {
			discovery: &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "example.com", Version: "v1"}: broken}},
			want:      without(widgets),
		},
		"another API that is down doesn't matter": {
			discovery: &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "other.example.com", Version: "v1"}: broken}},
			want:      all,
		},
		"definitions can't be read":  {reading: broken, want: without(gizmos, widgets)},
		"the API server doesn't say": {discovery: broken, wantErr: broken},
	} {
		t.Run(name, func(t *testing.T) {
			objects := storing(test.stored...)
			failing(objects, test.reading)
			got, err := NewLookup(served{err: test.discovery}, objects, nil, nil, nil).Served(
				t.Context(), []schema.GroupResource{pods, deployments, nodes, gizmos, widgets})
			if !errors.Is(err, test.wantErr) {
				t.Errorf("error: got %v, want %v", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("served (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestOpenShiftSelector(t *testing.T) {
	broken := errors.New("broken")
	openShift := func(selector any) runtime.Object {
		return object("quota.openshift.io/v1", "ClusterResourceQuota", "payments", map[string]any{"selector": selector})
	}
	for name, test := range map[string]struct {
		stored  runtime.Object
		reading error
		want    quotav1.ClusterResourceQuotaSelector
		found   bool
		fails   bool
	}{
		"labels and annotations": {
			stored: openShift(map[string]any{
				"labels":      map[string]any{"matchLabels": map[string]any{"team": "payments"}},
				"annotations": map[string]any{"openshift.io/requester": "alice"},
			}),
			want: quotav1.ClusterResourceQuotaSelector{
				LabelSelector:      &metav1.LabelSelector{MatchLabels: map[string]string{"team": "payments"}},
				AnnotationSelector: map[string]string{"openshift.io/requester": "alice"},
			},
			found: true,
		},
		"annotations alone": {
			stored: openShift(map[string]any{"labels": nil, "annotations": map[string]any{"a": "b"}}),
			want:   quotav1.ClusterResourceQuotaSelector{AnnotationSelector: map[string]string{"a": "b"}},
			found:  true,
		},
		"another name":             {stored: object("quota.openshift.io/v1", "ClusterResourceQuota", "search", nil)},
		"what isn't a selector":    {stored: openShift("everything"), fails: true},
		"a selector of odd labels": {stored: openShift(map[string]any{"labels": "all"}), fails: true},
		"what can't be read":       {stored: openShift(nil), reading: broken, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := storing(test.stored)
			failing(objects, test.reading)
			got, found, err := NewLookup(served{}, objects, nil, nil, nil).OpenShiftSelector(t.Context(), "payments")
			if found != test.found || (err != nil) != test.fails {
				t.Errorf("got found %v and the error %v, want found %v, an error %v", found, err, test.found, test.fails)
			}
			if diff := cmp.Diff(test.want, got); err == nil && diff != "" {
				t.Errorf("selector (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestVisit(t *testing.T) {
	const here = "shop"
	metadataScheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(metadataScheme); err != nil {
		t.Fatal(err)
	}
	widget := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "w"},
	}
	lookup := NewLookup(served{}, nil, kubernetesfake.NewClientset(
		builders.Pod(here, "p").Obj(), builders.Pod("other", "o").Obj(), builders.Service(here, "s").Obj(),
		builders.VolumeClaim(here, "c").Obj(), builders.DeviceClaim(here, "d").Obj(),
	), metadatafake.NewSimpleMetadataClient(metadataScheme, widget), nil)
	for resource, want := range map[schema.GroupVersionResource][]string{
		corev1.SchemeGroupVersion.WithResource("pods"):                   {"*v1.Pod shop/p"},
		corev1.SchemeGroupVersion.WithResource("services"):               {"*v1.Service shop/s"},
		corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"): {"*v1.PersistentVolumeClaim shop/c"},
		resourceapi.SchemeGroupVersion.WithResource("resourceclaims"):    {"*v1.ResourceClaim shop/d"},
		widgets.WithVersion("v1"):                                        {"*v1.PartialObjectMetadata shop/w"},
	} {
		var got []string
		err := lookup.Visit(t.Context(), resource, here, func(object client.Object) error {
			got = append(got, fmt.Sprintf("%T %s/%s", object, object.GetNamespace(), object.GetName()))
			return nil
		})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s (-want,+got), error %v:\n%s", resource, err, diff)
		}
	}
	broken := errors.New("broken")
	if err := lookup.Visit(t.Context(), corev1.SchemeGroupVersion.WithResource("pods"), "", func(client.Object) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got the error %v, want that of the visit", err)
	}
}

// failing lets every read fail with this, if anything.
func failing(objects *fake.FakeDynamicClient, err error) {
	if err != nil {
		objects.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	}
}
