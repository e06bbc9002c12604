// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package coverage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// catchUp returns once all quotas are known up to a resourceVersion. If the watch
// doesn't show them in time, they are listed.
func (i *Index) catchUp(ctx context.Context, epoch uint64) error {
	timer := i.clock.NewTimer(catchUpWait)
	defer timer.Stop()
	for {
		grown := i.quotas.grown()
		if i.SeenQuotas() >= epoch {
			return nil
		}
		select {
		case <-grown:
		case <-timer.C():
			return i.listAll(ctx)
		case <-ctx.Done():
			return fmt.Errorf("waiting for the specs of quotas: %w", context.Cause(ctx))
		}
	}
}

// lookAtNamespace reads a namespace, and returns what is known of it now. That is
// as it was when this was called or later, so nothing that anybody knew up to
// atLeast is missing.
func (i *Index) lookAtNamespace(ctx context.Context, question reach.Question, name string, atLeast uint64) (state, error) {
	began, after := i.clock.Now(), max(atLeast, i.SeenNamespaces())
	object, err := i.namespaceReads.Get(ctx, name)
	if err != nil {
		return state{}, err
	}
	return i.namespaces.merge(object, began, after, question), nil
}

// lookAtQuotas reads the quotas that cover a namespace, or lists all, as the look says.
func (i *Index) lookAtQuotas(ctx context.Context, namespace *namespace, look Look) error {
	switch look {
	case LookQuotas:
		for _, known := range i.covering(namespace).definitions {
			if _, err := i.quotaReads.Get(ctx, known.Limits.Name); err != nil {
				return err
			}
		}
	case LookEverywhere:
		return i.listAll(ctx)
	case LookNamespace:
	}
	return nil
}

func (i *Index) readNamespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	object := emptyNamespace()
	if err := i.live.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return object, nil
}

// readQuota refreshes what is known of one quota. It reads the metadata first, which show whether the known
// spec is current: to read the whole object, with what every namespace uses, would be most of a refusal's
// cost.
func (i *Index) readQuota(ctx context.Context, name string) (struct{}, error) {
	known := i.quotas.version(name)
	version := &metav1.PartialObjectMetadata{}
	version.SetGroupVersionKind(quotav1.GroupVersion.WithKind("ClusterResourceQuota"))
	err := i.live.Get(ctx, client.ObjectKey{Name: name}, version)
	if err == nil && i.quotas.isCurrent(version) {
		i.quotas.touch(version)
		return struct{}{}, nil
	}
	quota := &quotav1.ClusterResourceQuota{}
	if err == nil {
		err = i.live.Get(ctx, client.ObjectKey{Name: name}, quota)
	}
	switch {
	case apierrors.IsNotFound(err):
		i.quotas.remove(name, known)
	case err != nil:
		return struct{}{}, fmt.Errorf("reading quota %s: %w", name, err)
	default:
		i.quotas.put(quota)
	}
	return struct{}{}, nil
}

// listAll lists all quotas. Callers at the same time share one list.
func (i *Index) listAll(ctx context.Context) error {
	_, err := i.quotaLists.Get(ctx, "quotas")
	return err
}

// listQuotas refreshes what is known of all quotas. It reads whole only those whose spec is not
// the one that is known.
func (i *Index) listQuotas(ctx context.Context, _ string) (struct{}, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(quotav1.GroupVersion.WithKind("ClusterResourceQuotaList"))
	if err := i.live.List(ctx, list); err != nil {
		return struct{}{}, fmt.Errorf("listing quotas: %w", err)
	}
	whole := map[string]*quotav1.ClusterResourceQuota{}
	for n := range list.Items {
		item := &list.Items[n]
		if i.quotas.isCurrent(item) {
			continue
		}
		quota := &quotav1.ClusterResourceQuota{}
		err := i.live.Get(ctx, client.ObjectKey{Name: item.Name}, quota)
		if apierrors.IsNotFound(err) {
			quota = nil
		} else if err != nil {
			return struct{}{}, fmt.Errorf("reading quota %s: %w", item.Name, err)
		}
		whole[item.Name] = quota
	}
	i.quotas.merge(list, whole)
	return struct{}{}, nil
}

func emptyNamespace() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return object
}
