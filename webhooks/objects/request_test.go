// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

func TestRequestsThatCanBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		request   *admissionv1.AdmissionRequest
		old       string
		dryRun    bool
		wantTyped runtime.Object
	}{
		"a pod is read whole":               {request: creation(), wantTyped: &corev1.Pod{}},
		"its old form too, when it changes": {request: resize(), old: "4711", wantTyped: &corev1.Pod{}},
		"a widget by its metadata alone":    {request: widget(), wantTyped: &metav1.PartialObjectMetadata{}},
		"a dry run is known as one":         {request: dryRun(creation()), dryRun: true, wantTyped: &corev1.Pod{}},
		"an old object is of no interest where nothing changes": {
			request:   but(creation(), func(r *admissionv1.AdmissionRequest) { r.OldObject = raw("garbage") }),
			wantTyped: &corev1.Pod{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			attributes, err := newDecoder().attributes(test.request)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := cmpType(attributes.GetObject()), cmpType(test.wantTyped); got != want {
				t.Errorf("object: got %s, want %s", got, want)
			}
			if got := versionOf(t, attributes.GetOldObject()); got != test.old {
				t.Errorf("version before: got %q, want %q", got, test.old)
			}
			if attributes.IsDryRun() != test.dryRun {
				t.Errorf("dry run: got %v, want %v", attributes.IsDryRun(), test.dryRun)
			}
			if got := attributes.GetName() + attributes.GetNamespace() + attributes.GetSubresource(); got != "webshop"+test.request.SubResource {
				t.Errorf("name, namespace and subresource: got %s", got)
			}
		})
	}
}

func cmpType(object runtime.Object) string {
	switch object.(type) {
	case *corev1.Pod:
		return "a pod"
	case *metav1.PartialObjectMetadata:
		return "metadata"
	default:
		return "something else"
	}
}

func versionOf(t *testing.T, object runtime.Object) string {
	t.Helper()
	if object == nil {
		return ""
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		t.Fatal(err)
	}
	return accessor.GetResourceVersion()
}

func TestRequestsThatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		request *admissionv1.AdmissionRequest
		want    string
	}{
		"there is no request": {
			request: &admissionv1.AdmissionRequest{}, want: "the AdmissionReview holds no request",
		},
		"it has no UID": {
			request: but(creation(), func(r *admissionv1.AdmissionRequest) { r.UID = "" }), want: "the AdmissionReview holds no request",
		},
		"it is about no resource": {
			request: but(creation(), func(r *admissionv1.AdmissionRequest) { r.Resource = metav1.GroupVersionResource{} }),
			want:    "the AdmissionReview holds no request",
		},
		"it has no object": {
			request: but(creation(), func(r *admissionv1.AdmissionRequest) { r.Object = raw("") }), want: "reading the object: it is missing",
		},
		"its object is garbage": {
			request: but(creation(), func(r *admissionv1.AdmissionRequest) { r.Object = raw("{garbage") }), want: "reading the object: ",
		},
		"its object is a list": {
			request: but(creation(), func(r *admissionv1.AdmissionRequest) { r.Object = raw("[]") }), want: "reading the object: ",
		},
		"its pod is of a version that doesn't exist": {
			request: but(creation(), func(r *admissionv1.AdmissionRequest) {
				r.Kind.Version, r.Resource.Version = "v1beta1", "v1beta1"
				r.Object = raw(strings.Replace(string(r.Object.Raw), `"v1"`, `"v1beta1"`, 1))
			}),
			want: `reading the object: as pods: no kind "Pod" is registered for version "v1beta1"`,
		},
		"its pod has a number where words belong": {
			request: but(creation(), func(r *admissionv1.AdmissionRequest) {
				r.Object = raw(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":7}}`)
			}),
			want: "reading the object: ",
		},
		"its widget is garbage": {
			request: but(widget(), func(r *admissionv1.AdmissionRequest) { r.Object = raw("{garbage") }), want: "reading the object: ",
		},
		"its widget is a list": {
			request: but(widget(), func(r *admissionv1.AdmissionRequest) { r.Object = raw("[]") }), want: "reading the object: ",
		},
		"it changes something of which there is no old form": {
			request: but(resize(), func(r *admissionv1.AdmissionRequest) { r.OldObject = raw("") }),
			want:    "reading the object before the update: it is missing",
		},
		"it changes something whose old form is garbage": {
			request: but(resize(), func(r *admissionv1.AdmissionRequest) { r.OldObject = raw("{garbage") }),
			want:    "reading the object before the update: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			attributes, err := newDecoder().attributes(test.request)
			if err == nil {
				t.Fatalf("want an error, got %+v", attributes)
			}
			if !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error: got %q, want %q first", err, test.want)
			}
		})
	}
}

func TestTheReservationOfARequest(t *testing.T) {
	expiry := time.Unix(2000, 0)
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for name, test := range map[string]struct {
		request *admissionv1.AdmissionRequest
		want    ledger.Reservation
	}{
		"for a creation, the object": {
			request: creation(),
			want:    ledger.Reservation{Object: ledger.Object{Resource: pods, Namespace: "shop", Name: "web", UID: "pod"}, Attempt: "request", Expiry: expiry},
		},
		"whose name was made for it": {
			request: but(creation(), func(r *admissionv1.AdmissionRequest) {
				r.Name = "" // as the API server sends it with generateName
				r.Object = raw(strings.Replace(string(r.Object.Raw), `"name":"web"`, `"generateName":"web-","name":"web-x7k2p"`, 1))
			}),
			want: ledger.Reservation{Object: ledger.Object{Resource: pods, Namespace: "shop", Name: "web-x7k2p", UID: "pod"}, Attempt: "request", Expiry: expiry},
		},
		"for a change, the attempt and the version that it starts from": {
			request: resize(),
			want: ledger.Reservation{
				Object: ledger.Object{Resource: pods, Namespace: "shop", Name: "web", UID: "pod"},
				From:   "4711", Attempt: "request", Expiry: expiry,
			},
		},
		"for a widget, the version that it was asked for in": {
			request: widget(),
			want: ledger.Reservation{
				Object: ledger.Object{
					Resource:  schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "widgets"},
					Namespace: "shop", Name: "web", UID: "widget",
				},
				Attempt: "request", Expiry: expiry,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			attributes, err := newDecoder().attributes(test.request)
			if err != nil {
				t.Fatal(err)
			}
			got, err := reservation(test.request, attributes, expiry.Add(900*time.Millisecond))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("reservation (-want,+got):\n%s", diff)
			}
		})
	}
}

// Any client that reaches the webhook can claim anything.
func TestAFieldThatNoAPIServerSendsIsRefused(t *testing.T) {
	long := strings.Repeat("x", longestField+1)
	for name, change := range map[string]func(*ledger.Reservation){
		"the object's UID":    func(r *ledger.Reservation) { r.UID = types.UID(long) },
		"the request's UID":   func(r *ledger.Reservation) { r.Attempt = long },
		"the resourceVersion": func(r *ledger.Reservation) { r.From = long },
		"the namespace":       func(r *ledger.Reservation) { r.Namespace = long },
		"the API version":     func(r *ledger.Reservation) { r.Resource.Version = long },
	} {
		t.Run(name, func(t *testing.T) {
			held := ledger.Reservation{Object: ledger.Object{UID: "uid", Namespace: "shop", Name: long + long}, Attempt: "attempt", From: "7"}
			if err := validate(held); err != nil {
				t.Errorf("before: %v", err)
			}
			change(&held)
			err := validate(held)
			if !errors.Is(err, errTooLong) || !strings.HasPrefix(err.Error(), name+" has 129 bytes") || status(err) != http.StatusBadRequest {
				t.Errorf("got %v, status %d", err, status(err))
			}
		})
	}
}

// Without a UID, the operator couldn't tell whether the object came to be.
func TestAnObjectWithoutUIDIsNotReservedFor(t *testing.T) {
	request := but(creation(), func(r *admissionv1.AdmissionRequest) {
		r.Object = raw(strings.Replace(string(r.Object.Raw), `,"uid":"pod"`, "", 1))
	})
	attributes, err := newDecoder().attributes(request)
	if err != nil {
		t.Fatal(err)
	}
	const want = "the object has no UID: this API server doesn't set it before admission"
	if got, err := reservation(request, attributes, time.Unix(2000, 0)); err == nil || err.Error() != want {
		t.Errorf("got %+v, error %v, want the error %q", got, err, want)
	}
}

func TestTheStatusOfAFailure(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want int32
	}{
		"too many wait":                  {err: fmt.Errorf("charging: %w", machine.ErrBusy), want: 429},
		"the store fails":                {err: fmt.Errorf("waiting: %w", machine.ErrStore), want: 503},
		"time is up":                     {err: fmt.Errorf("waiting: %w", context.DeadlineExceeded), want: 504},
		"the API server's time was up":   {err: apierrors.NewTimeoutError("slow", 1), want: 504},
		"anything else is our own fault": {err: errors.New("broken"), want: 500},
	} {
		t.Run(name, func(t *testing.T) {
			if got := status(test.err); got != test.want {
				t.Errorf("status: got %d, want %d", got, test.want)
			}
		})
	}
}
