// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// nameTimeout bounds a look whether a name is taken.
const nameTimeout = time.Second

// Names tell whether a name is taken, by the objects that there are.
type Names struct {
	objects metadata.Interface
	// flights are of a namespace and a quota: a ledger may lack the grants of the last second.
	flights flights
}

// NewNames makes Names that ask the API server.
func NewNames(objects metadata.Interface) *Names { return &Names{objects: objects} }

// admit returns the API server's error for a name that is taken, if the charges leave little or their namespace
// holds much: the creation is going to fail, and its reservation would be held in vain. Otherwise the request
// is under way: fail must be called if nothing is reserved for it.
func (n *Names) admit(
	ctx context.Context, now time.Time, request *admissionv1.AdmissionRequest, charger Charger, charges []ledger.Charge,
) (fail func(), err error) {
	if n == nil || request.Operation != admissionv1.Create || request.Name == "" {
		return func() {}, nil
	}
	var begun []*flight
	tight := false
	for _, charge := range charges {
		one, recent := n.flights.begin(now, request.Namespace+"/"+charge.Limits.Name, charge.Reservation.Amounts)
		begun = append(begun, one)
		tight = tight || charger.Current(charge.Limits.Name).IsTight(charge, recent)
	}
	fail = func() { n.flights.end(begun) }
	if !tight {
		return fail, nil
	}
	if err = n.taken(ctx, request); err != nil {
		fail()
	}
	return fail, err
}

// taken returns the API server's error if a creation asks for a name that is taken. If that isn't known, it
// returns nil.
func (n *Names) taken(ctx context.Context, request *admissionv1.AdmissionRequest) error {
	if n == nil || request.Operation != admissionv1.Create || request.Name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	resource := request.Resource
	in := n.objects.Resource(schema.GroupVersionResource(resource)).Namespace(request.Namespace)
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, request.Name).String()
	named, err := in.List(ctx, metav1.ListOptions{FieldSelector: selector})
	isNamed := func(object metav1.PartialObjectMetadata) bool { return object.Name == request.Name }
	if err != nil || !slices.ContainsFunc(named.Items, isNamed) {
		return nil // the API server is going to tell
	}
	return apierrors.NewAlreadyExists(schema.GroupResource{Group: resource.Group, Resource: resource.Resource}, request.Name)
}

// isTaken reports whether a request failed because of its name.
func isTaken(err error) bool { return apierrors.IsAlreadyExists(err) }
