// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A creation that fails because its name is taken holds room in vain. If there is little room, the
// name is looked up first.
func TestANameThatIsTakenHoldsNoneOfTheLastRoom(t *testing.T) {
	first := func(request *admissionv1.AdmissionRequest) {
		request.UID, request.Name = "first", "first"
		request.Object = raw(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"first","namespace":"shop","uid":"first"}}`)
	}
	controlled := func(request *admissionv1.AdmissionRequest) { owned(request, "apps/v1", "StatefulSet", "set") }
	for name, test := range map[string]struct {
		limit, there string
		change       func(*admissionv1.AdmissionRequest)
		failure      error
		// code is of the refusal; zero if the request is allowed.
		code  int32
		looks int
	}{
		"a taken one is refused":                  {limit: "2", there: "web", code: http.StatusConflict, looks: 1},
		"a free one isn't":                        {limit: "2", there: "another", looks: 1},
		"with room, no name is looked up":         {limit: "40", there: "web"},
		"without room, no name is looked up":      {limit: "1", there: "web", code: http.StatusForbidden},
		"a controller's name is looked up":        {limit: "1", there: "web", change: controlled, code: http.StatusConflict, looks: 1},
		"a controller waits if the name is free":  {limit: "1", there: "another", change: controlled, code: http.StatusForbidden, looks: 1},
		"a name that can't be read is met later":  {limit: "2", there: "web", failure: errors.New("timeout"), looks: 1},
		"a name that the API server made is free": {limit: "2", there: "web", change: func(r *admissionv1.AdmissionRequest) { r.Name = "" }},
		"an update needs no name":                 {limit: "2", there: "web", change: func(r *admissionv1.AdmissionRequest) { *r = *resize() }},
		"a dry run holds nothing":                 {limit: "2", there: "web", change: func(r *admissionv1.AdmissionRequest) { r.DryRun = new(true) }},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, quotas(quotaOf("team", "pods", test.limit)), func(t *testing.T, served *served) {
				objects := metadatafake.NewSimpleMetadataClient(runtime.NewScheme())
				looks := 0
				objects.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
					looks++
					if test.failure != nil {
						return true, nil, test.failure
					}
					list := &metav1.List{}
					if listed, ok := action.(clienttesting.ListActionImpl); ok && listed.ListRestrictions.Fields.Matches(fieldsOf(test.there)) {
						list.Items = []runtime.RawExtension{{Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: test.there}}}}
					}
					return true, list, nil
				})
				list := served.wait()
				served.handler.Names = NewNames(objects)
				before := creation()
				first(before)
				if got := served.handle(t.Context(), before); !got.Allowed {
					t.Fatal(got.Result)
				}
				request := creation()
				if test.change != nil {
					test.change(request)
				}
				got := served.handle(t.Context(), request)
				if got.Allowed != (test.code == 0) || test.code != 0 && got.Result.Code != test.code || looks != test.looks {
					t.Errorf("got %v %v after %d looks, want %d after %d", got.Allowed, got.Result, looks, test.code, test.looks)
				}
				if waits := len(list.All()) > 0; waits != (test.change != nil && test.code == http.StatusForbidden) {
					t.Errorf("its owner waits: %t", waits)
				}
				if test.code == http.StatusConflict && (got.Result.Message != `pods "web" already exists` || len(served.store.reserved("team")) != 1) {
					t.Errorf("got %q, and reserved %v", got.Result.Message, served.store.reserved("team"))
				}
			})
		})
	}
}

// fieldsOf are the fields of an object by which it is listed.
type fieldsOf string

func (f fieldsOf) Has(string) bool { return true }

func (f fieldsOf) Get(string) string { return string(f) }
