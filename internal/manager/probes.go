// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"net/http"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// monitoring asks the API server, when it is silent or may have another history, for the Lease, which is read in etcd,
// and for one quota's metadata in the newest version, for which the API server asks etcd at least how new that is.
func monitoring(noted *apiserver.Contact, history *apiserver.History, live client.Reader) *apiserver.Monitor {
	lists := func(ctx context.Context) (uint64, error) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(quotav1.GroupVersion.WithKind("ClusterResourceQuotaList"))
		err := live.List(ctx, list, client.Limit(1))
		return ledger.ParseVersion(list.ResourceVersion), err
	}
	return apiserver.NewMonitor(noted, func(ctx context.Context) error { return history.Check(ctx, lists) })
}

// exitRestored is the exit status of a process whose cluster was restored from a backup.
const exitRestored = 3

// newHistory makes a History that ends the process. Nothing that the process knows may be written any more, so
// nothing is brought to an end before.
func newHistory(clock clock.PassiveClock) *apiserver.History {
	return apiserver.NewHistory(clock, func(err error) {
		ctrl.Log.WithName("history").Error(err, "The API server has another history than this process remembers")
		os.Exit(exitRestored) //nolint:revive // the caller must not go on
	})
}

// probes adds the probes of this process.
func (o *operator) probes(context.Context) error {
	synced := func(*http.Request) error {
		if !o.index.Synced() {
			return errors.New("quotas and namespaces are not known yet")
		}
		if !o.classes.Synced() {
			return errors.New("device classes are not known yet")
		}
		return nil
	}
	return errors.Join(
		o.manager.AddHealthzCheck("ping", healthz.Ping),
		o.manager.AddReadyzCheck("webhooks", o.serving.Certificates.Ready(o.manager.GetClient(), o.serving.Address)),
		o.manager.AddReadyzCheck("coverage", synced),
		o.manager.AddReadyzCheck("contact", o.contact.Ready),
	)
}
