// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"math/rand"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// unmarshal decodes a text as Kubernetes' decoder does: any field of any type may decide the charge.
func TestUnmarshalIsKubernetesUnmarshal(t *testing.T) {
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), scheme.Codecs).NumElements(0, 3)
	for _, sample := range []any{
		corev1.Pod{}, corev1.Service{}, corev1.PersistentVolumeClaim{}, resourceapi.ResourceClaim{},
		metav1.PartialObjectMetadata{}, admissionv1.AdmissionReview{},
	} {
		kind := reflect.TypeOf(sample)
		t.Run(kind.Name(), func(t *testing.T) {
			for range 200 {
				object := reflect.New(kind).Interface()
				filler.Fill(object)
				text, err := json.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				requireAlike(t, kind, text)
			}
		})
	}
}

// requireAlike decodes the text as both do.
func requireAlike(t *testing.T, kind reflect.Type, text []byte) {
	t.Helper()
	want, got := reflect.New(kind).Interface(), reflect.New(kind).Interface()
	wantErr, gotErr := json.Unmarshal(text, want), unmarshal(text, got)
	if (wantErr == nil) != (gotErr == nil) {
		t.Fatalf("decoding %s: got error %v, want %v", text, gotErr, wantErr)
	}
	if wantErr == nil && !reflect.DeepEqual(want, got) {
		t.Fatalf("decoding %s (-want,+got):\n%s", text, cmp.Diff(want, got))
	}
}

func TestOddTextIsReadAsKubernetesReadsIt(t *testing.T) {
	for name, text := range map[string]string{
		"names in another case":        `{"Kind":"Pod","SPEC":{"containers":[{"name":"a"}]}}`,
		"a name twice":                 `{"spec":{"nodeName":"a"},"spec":{"nodeName":"b"}}`,
		"a name twice, once with null": `{"spec":{"nodeName":"a","tolerations":[{"key":"a"}]},"spec":null}`,
		"null everywhere":              `{"metadata":null,"spec":{"containers":null,"overhead":null},"status":null}`,
		"null among containers":        `{"spec":{"containers":[null,{"name":"a"}]}}`,
		"letters that are no UTF-8":    "{\"spec\":{\"nodeName\":\"\xff\"}}",
		"a number where words belong":  `{"spec":{"nodeName":7}}`,
		"a fraction for a whole":       `{"spec":{"priority":1.5}}`,
		"a number in words":            `{"spec":{"priority":"1"}}`,
		"a number too large":           `{"spec":{"priority":99999999999}}`,
		"an exponent":                  `{"spec":{"priority":1e3}}`,
		"quantities in all forms":      `{"spec":{"overhead":{"cpu":1,"memory":"1Gi","a":"1e3","b":1.5,"c":null}}}`,
		"a quantity that is none":      `{"spec":{"overhead":{"cpu":"much"}}}`,
		"a time that is none":          `{"metadata":{"deletionTimestamp":"tomorrow"}}`,
		"an empty time":                `{"metadata":{"deletionTimestamp":""}}`,
		"more after the end":           `{} {}`,
		"an end too soon":              `{"spec":{"nodeName":"a"`,
		"a comma too many":             `{"spec":{},}`,
		"nothing":                      ``,
		"null":                         `null`,
		"an array":                     `[]`,
		"fields that no type has":      `{"spec":{"unknown":{"deep":[1,2,{"er":null}]}},"more":1}`,
	} {
		t.Run(name, func(t *testing.T) { requireAlike(t, reflect.TypeFor[corev1.Pod](), []byte(text)) })
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(typicalPod))
	f.Add([]byte(`{"spec":{"overhead":{"cpu":"1"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) { requireAlike(t, reflect.TypeFor[corev1.Pod](), text) })
}
