// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// Outage is what decides which requests are refused while no replica of the operator answers.
type Outage struct {
	// Configuration is the operator's webhook configuration; nil if there is none.
	Configuration *admissionregistrationv1.ValidatingWebhookConfiguration
	// Namespaces are all, or the one that was asked for.
	Namespaces []corev1.Namespace
	Quotas     []quotav1.ClusterResourceQuota
	// Forbidden are the resources that the user may not read, sorted.
	Forbidden []string
}

// Outage reads that for a namespace, or for all of them if it is empty. It fails if the user may not read the webhook
// configuration, and if the cluster doesn't serve quotas. The error is a *MissingNamespaceError if the namespace doesn't exist.
func (r *Reader) Outage(ctx context.Context, namespace string) (*Outage, error) {
	found := &Outage{}
	namespaces, quotas := &corev1.NamespaceList{}, &quotav1.ClusterResourceQuotaList{}
	round := r.newRound()
	round.call(func(ctx context.Context) error {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		err := r.client.Get(ctx, client.ObjectKey{Name: reach.ConfigurationName}, configuration)
		switch {
		case err == nil:
			found.Configuration = configuration
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading the webhook configuration: %w", err)
		}
		return nil
	})
	if namespace == "" {
		round.list("namespaces", namespaces)
	} else {
		round.call(func(ctx context.Context) error { return r.outageNamespace(ctx, round, namespace, namespaces) })
	}
	notServed := round.list("clusterresourcequotas", quotas)
	if err := round.wait(ctx); err != nil {
		return nil, err
	}
	if *notServed {
		return nil, &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: quotav1.GroupVersion.Group, Kind: "ClusterResourceQuota"}}
	}
	found.Namespaces, found.Quotas, found.Forbidden = namespaces.Items, quotas.Items, round.forbidden()
	return found, nil
}

func (r *Reader) outageNamespace(ctx context.Context, round *round, name string, into *corev1.NamespaceList) error {
	namespace := &corev1.Namespace{}
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	switch {
	case err == nil:
		into.Items = append(into.Items, *namespace)
		return nil
	case apierrors.IsNotFound(err):
		return &MissingNamespaceError{Namespace: name}
	case apierrors.IsForbidden(err):
		round.forbid("namespaces")
		return nil
	}
	return fmt.Errorf("reading namespace %s: %w", name, err)
}
