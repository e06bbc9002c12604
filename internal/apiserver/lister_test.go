// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func TestListerGivesWhatEvaluatorsLookInto(t *testing.T) {
	typed, about := fake.NewClientset(), metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme())
	for _, limit := range builders.Limits() {
		object := limit.Object("shop", "object")
		kind, err := apiutil.GVKForObject(object, scheme.Scheme)
		if err != nil {
			t.Fatal(err)
		}
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		want := reflect.TypeFor[*metav1.PartialObjectMetadata]()
		if evaluation.NeedsObject(resource.GroupResource()) {
			want = reflect.TypeOf(object)
		}
		if got, _ := apiserver.Lister(typed, about, resource, "shop"); reflect.TypeOf(got) != want {
			t.Errorf("%s: lists %T, want %s", limit.Name, got, want)
		}
	}
}
