// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/contact"
	"github.com/sharedquota/shared-quota-operator/internal/coverage"
	"github.com/sharedquota/shared-quota-operator/internal/deviceclaims"
	"github.com/sharedquota/shared-quota-operator/internal/serving"
)

// newContact begins to note when the API server answers. The replica is told of by
// the name of its host, which is the pod's.
func newContact(clock clock.Clock) (*contact.Contact, error) {
	replica, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("finding the replica's name: %w", err)
	}
	return contact.New(clock, replica), nil
}

// monitoring asks the API server, when it is silent, for one quota's metadata in the
// newest version, for which it has to ask etcd.
func monitoring(noted *contact.Contact, live client.Reader) *contact.Monitor {
	return contact.NewMonitor(noted, func(ctx context.Context) error {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(quotav1.GroupVersion.WithKind("ClusterResourceQuotaList"))
		return live.List(ctx, list, client.Limit(1))
	})
}

// addProbes adds the probes, and what keeps asking whether the API server answers.
func addProbes(
	mgr ctrl.Manager, setup *serving.Setup, index *coverage.Index, classes *deviceclaims.Classes, contact *contact.Contact,
) error {
	synced := func(*http.Request) error {
		if !index.Synced() {
			return errors.New("quotas and namespaces are not known yet")
		}
		if !classes.Synced() {
			return errors.New("device classes are not known yet")
		}
		return nil
	}
	return errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("webhooks", setup.Certificates.Ready(mgr.GetClient(), setup.Address)),
		mgr.AddReadyzCheck("coverage", synced),
		mgr.AddReadyzCheck("contact", contact.Ready),
		mgr.Add(monitoring(contact, mgr.GetAPIReader())),
	)
}
