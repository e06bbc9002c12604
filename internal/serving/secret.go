// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The Role is for the one Secret. Only a creation can't be told by its name.
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=shared-quota-webhook-cert,verbs=list;watch;update,namespace=shared-quota-system
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create,namespace=shared-quota-system

const (
	// callTimeout is for one write of the Secret.
	callTimeout = 10 * time.Second
	// secretEvery bounds the time between two looks at the Secret: a due time in
	// months is computed with a clock that may be set.
	secretEvery = 12 * time.Hour
)

// errElsewhere tells that another replica wrote the Secret at the same time.
var errElsewhere = errors.New("the Secret was written by someone else")

// Secret keeps a certificate in a Secret that all replicas share.
type Secret struct {
	clock  clock.PassiveClock
	client client.Client
	key    types.NamespacedName
	issuer *Issuer
}

// NewSecret keeps the issuer's certificates in the Secret of that name.
func NewSecret(clock clock.PassiveClock, client client.Client, key types.NamespacedName, issuer *Issuer) *Secret {
	return &Secret{clock: clock, client: client, key: key, issuer: issuer}
}

// Load returns the certificate that the Secret holds, and after how long to load it again. It first replaces a
// certificate that isn't valid, or not for much longer. Every write names the version that it replaces: of several
// replicas one wins, and the others take over its certificate.
func (s *Secret) Load(ctx context.Context) (*Material, time.Duration, error) {
	secret, err := s.read(ctx)
	if err != nil {
		return nil, 0, err
	}
	now := s.clock.Now()
	renewed, err := s.issuer.Renew(secret.Data, now)
	if err != nil {
		return nil, 0, fmt.Errorf("renewing Secret %s: %w", s.key, err)
	}
	if renewed.Why != "" {
		secret.Data = renewed.Data
		if err := s.write(ctx, secret); err != nil {
			return nil, 0, err
		}
		log.FromContext(ctx).Info("renewed the webhook's certificate", "secret", s.key.String(), "because", renewed.Why)
	}
	material, err := NewMaterial(
		renewed.Data[CertKey], renewed.Data[KeyKey], renewed.Data[AuthorityKey])
	if err != nil {
		return nil, 0, fmt.Errorf("reading Secret %s: %w", s.key, err)
	}
	// An end is given in whole seconds.
	return material, min(renewed.Due.Sub(now)+time.Second, secretEvery), nil
}

// read returns a copy of the Secret, or an empty one if there is none.
func (s *Secret) read(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := s.client.Get(ctx, s.key, secret)
	if apierrors.IsNotFound(err) {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}, Type: corev1.SecretTypeTLS,
		}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", s.key, err)
	}
	return secret, nil
}

func (s *Secret) write(ctx context.Context, secret *corev1.Secret) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var err error
	if secret.ResourceVersion == "" {
		err = s.client.Create(ctx, secret)
	} else {
		err = s.client.Update(ctx, secret)
	}
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), apierrors.IsNotFound(err) && secret.ResourceVersion != "":
		return errElsewhere
	case err != nil:
		return fmt.Errorf("writing Secret %s: %w", s.key, err)
	}
	return nil
}
