// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kubeadmission "k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/sharedread"
)

// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=list;watch

// Natives are the ResourceQuotas of namespaces.
type Natives struct {
	cached client.Reader
	synced func() bool
	live   *sharedread.Reads[[]corev1.ResourceQuota]
}

// NewNatives has the ResourceQuotas watched.
func NewNatives(ctx context.Context, caches cache.Cache, live client.Reader) (*Natives, error) {
	informer, err := caches.GetInformer(ctx, &corev1.ResourceQuota{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("following ResourceQuotas: %w", err)
	}
	return newNatives(caches, informer.HasSynced, live), nil
}

func newNatives(cached client.Reader, synced func() bool, live client.Reader) *Natives {
	read := func(ctx context.Context, namespace string) ([]corev1.ResourceQuota, error) {
		return listNatives(ctx, live, namespace)
	}
	return &Natives{cached: cached, synced: synced, live: sharedread.New("the ResourceQuotas of namespace", read)}
}

func listNatives(ctx context.Context, from client.Reader, namespace string) ([]corev1.ResourceQuota, error) {
	list := &corev1.ResourceQuotaList{}
	if err := from.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the ResourceQuotas of namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

// refuse returns an *evaluation.NativeRefusal if a ResourceQuota of the request's namespace is
// going to refuse it. Room that was reserved for it would be held for nobody.
//
// That rests on a live read, because a cached quota may be full no more. If it isn't known,
// nothing is refused: the API server judges by the same quotas in a moment.
func (n *Natives) refuse(ctx context.Context, evaluators *evaluation.Evaluators, a kubeadmission.Attributes) error {
	if n == nil || !n.synced() {
		return nil
	}
	cached, err := listNatives(ctx, n.cached, a.GetNamespace())
	if err == nil && !isNative(evaluators.CheckNative(a, cached)) {
		return nil
	}
	current, err := n.live.Get(ctx, a.GetNamespace())
	if err == nil {
		err = evaluators.CheckNative(a, current)
	}
	if !isNative(err) {
		return nil // what isn't known refuses nothing
	}
	return err
}

func isNative(err error) bool {
	_, ok := errors.AsType[*evaluation.NativeRefusal](err)
	return ok
}
