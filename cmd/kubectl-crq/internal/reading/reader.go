// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// Reader reads. It is made by NewReader.
type Reader struct {
	client client.Reader
	types  *fitting.Types
}

// NewReader makes a reader.
func NewReader(client client.Reader, types *fitting.Types) *Reader {
	return &Reader{client: client, types: types}
}

// MissingNamespaceError is returned for a namespace that doesn't exist: nobody
// knows yet which quotas will cover it.
type MissingNamespaceError struct{ Namespace string }

// Error implements error.
func (e *MissingNamespaceError) Error() string { return missingNamespace(e.Namespace) }

// Limits are the quotas of some namespaces.
type Limits struct {
	Views  []quotav1.LocalResourceQuota
	Quotas []corev1.ResourceQuota
	// NotInstalled: the cluster doesn't serve local views.
	NotInstalled bool
}

// Limits reads the quotas of the namespaces. The error is a
// *MissingNamespaceError where one doesn't exist.
func (r *Reader) Limits(ctx context.Context, namespaces []string) (Limits, error) {
	limits := Limits{}
	for _, namespace := range namespaces {
		if err := r.exists(ctx, namespace); err != nil {
			return Limits{}, err
		}
		views := &quotav1.LocalResourceQuotaList{}
		err := r.client.List(ctx, views, client.InNamespace(namespace))
		if limits.NotInstalled = isNotServed(err); err != nil && !limits.NotInstalled {
			return Limits{}, fmt.Errorf("reading the local views in namespace %s: %w", namespace, err)
		}
		quotas := &corev1.ResourceQuotaList{}
		if err := r.client.List(ctx, quotas, client.InNamespace(namespace)); err != nil {
			return Limits{}, fmt.Errorf("reading the ResourceQuotas in namespace %s: %w", namespace, err)
		}
		limits.Views = append(limits.Views, views.Items...)
		limits.Quotas = append(limits.Quotas, quotas.Items...)
	}
	return limits, nil
}

// exists leaves it open where namespaces can't be read.
func (r *Reader) exists(ctx context.Context, namespace string) error {
	err := r.client.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	switch {
	case apierrors.IsNotFound(err):
		return &MissingNamespaceError{Namespace: namespace}
	case err == nil || apierrors.IsForbidden(err):
		return nil
	}
	return fmt.Errorf("reading namespace %s: %w", namespace, err)
}

// Unread is what the reader was not allowed to read.
type Unread struct {
	LimitRanges, PriorityClasses, RuntimeClasses, StorageClasses bool
}

// Surroundings reads what admission goes by in the namespaces, as far as it can
// be read.
func (r *Reader) Surroundings(ctx context.Context, namespaces []string) (found fitting.Surroundings, unread Unread, err error) {
	for _, namespace := range namespaces {
		ranges := &corev1.LimitRangeList{}
		refused, err := r.tryList(ctx, ranges, client.InNamespace(namespace))
		if err != nil {
			return found, unread, err
		}
		unread.LimitRanges = unread.LimitRanges || refused
		found.LimitRanges = append(found.LimitRanges, ranges.Items...)
	}
	priorities, runtimes, storages := &schedulingv1.PriorityClassList{}, &nodev1.RuntimeClassList{}, &storagev1.StorageClassList{}
	for _, part := range []struct {
		list    client.ObjectList
		refused *bool
	}{
		{priorities, &unread.PriorityClasses}, {runtimes, &unread.RuntimeClasses}, {storages, &unread.StorageClasses},
	} {
		if *part.refused, err = r.tryList(ctx, part.list); err != nil {
			return found, unread, err
		}
	}
	found.PriorityClasses, found.RuntimeClasses, found.StorageClasses = priorities.Items, runtimes.Items, storages.Items
	return found, unread, nil
}

// tryList tells whether the list may not be read.
func (r *Reader) tryList(ctx context.Context, list client.ObjectList, options ...client.ListOption) (refused bool, err error) {
	err = r.client.List(ctx, list, options...)
	if err == nil || apierrors.IsForbidden(err) {
		return err != nil, nil
	}
	return false, fmt.Errorf("reading %T: %w", list, err)
}

// isNotServed tells whether the cluster doesn't serve a kind.
func isNotServed(err error) bool {
	return err != nil && (meta.IsNoMatchError(err) || apierrors.IsNotFound(err))
}
