// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/controllers/status"
	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/serving"
)

// discoveryTimeout is how long the API server has to list its resources.
const discoveryTimeout = 10 * time.Second

// connect makes the manager and the clients. Every answer of the API server to its clients is noted.
func (o *operator) connect(context.Context) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), quotav1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("building the scheme: %w", err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	replica, err := os.Hostname() // the pod's name
	if err != nil {
		return fmt.Errorf("finding the replica's name: %w", err)
	}
	o.contact = apiserver.NewContact(o.clock, replica)
	// The elections have a connection of their own, whose answers say nothing of the others'.
	elections := tuned(config)
	config.Wrap(o.contact.Wrap)
	config.Dial = o.contact.Dial
	config = tuned(config)
	options := ctrl.Options{
		Scheme:                 scheme,
		Cache:                  cacheOptions(o.serving.Secret),
		WebhookServer:          o.serving.Server,
		Metrics:                metricsOptions(o.flags.metrics, o.serving.Certificates),
		HealthProbeBindAddress: o.flags.healthAddress,
		LeaderElectionID:       leaseName,
		LeaseDuration:          ptr.To(leaseDuration),
		RenewDeadline:          ptr.To(renewDeadline),
		RetryPeriod:            ptr.To(retryPeriod),
		// Another replica takes over at once: see yield, too. Nothing is left to do for a leader
		// when the manager has stopped.
		LeaderElectionReleaseOnCancel: true,
		PprofBindAddress:              o.flags.pprofAddress,
		MapperProvider:                mapperWithin(discoveryTimeout),
	}
	if o.flags.leaderElect {
		if o.lease, err = newLease(elections, o.clock, o.flags.namespace, replica, o.history); err != nil {
			return err
		}
		options.LeaderElection, options.LeaderElectionResourceLockInterface = true, o.lease
	}
	if o.manager, err = ctrl.NewManager(config, options); err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if o.lease != nil {
		if err := o.manager.Add(o.lease); err != nil {
			return fmt.Errorf("adding the lease: %w", err)
		}
		// The manager stops the webhooks once all that only a leader does has stopped.
		o.serving.Server.OnStop(o.lease.yield)
	}
	o.clients, err = newClients(o.manager)
	return err
}

// tuned returns how the API server is called.
func tuned(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server's priority and fairness decides
	// The API server would compress each event of a watch on its own, for more CPU
	// time than the event costs otherwise.
	config.DisableCompression = true
	config.Wrap(apiserver.Within(apiserver.RequestLimit))
	return config
}

// mapperWithin makes RESTMappers, which take no context, wait for so long at most for
// each answer of the API server.
func mapperWithin(timeout time.Duration) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
		return apiutil.NewDynamicRESTMapper(config, &http.Client{Transport: client.Transport, Timeout: timeout})
	}
}

// metricsOptions protect the metrics as the API server's own are protected,
// because they name quotas and namespaces. The API server authenticates and
// authorizes the caller.
func metricsOptions(f metricsFlags, certificates *serving.Certificates) metricsserver.Options {
	options := metricsserver.Options{BindAddress: f.address, SecureServing: f.secure, CertDir: f.certDir}
	if !f.secure {
		return options
	}
	options.FilterProvider = filters.WithAuthenticationAndAuthorization
	if f.certDir == "" {
		options.TLSOpts = []func(*tls.Config){func(config *tls.Config) { config.GetCertificate = certificates.Present }}
	}
	return options
}

// cacheOptions leave out fields that aren't read, and don't copy objects that may
// be large and are read often: a quota's status has a part for each namespace.
// Code that changes such an object makes a copy of it first. Of Secrets there is
// only the one with the certificate. The managed fields of the webhook
// configuration show its editors.
func cacheOptions(secret types.NamespacedName) cache.Options {
	shared := cache.ByObject{UnsafeDisableDeepCopy: ptr.To(true)}
	byObject := map[client.Object]cache.ByObject{
		&quotav1.ClusterResourceQuota{}:                           {UnsafeDisableDeepCopy: ptr.To(true), Transform: status.ShareSlices},
		&quotav1.QuotaLedger{}:                                    shared,
		&quotav1.LocalResourceQuota{}:                             {UnsafeDisableDeepCopy: ptr.To(true), Transform: status.ShareFigures()},
		&corev1.ResourceQuota{}:                                   shared,
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Transform: func(object any) (any, error) { return object, nil }},
	}
	if secret.Name != "" {
		byObject[&corev1.Secret{}] = cache.ByObject{Namespaces: map[string]cache.Config{
			secret.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", secret.Name)},
		}}
	}
	return cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: byObject}
}

// clients have no cache. The typed one asks for protobuf, the encoding of built-in types that is cheapest to read.
type clients struct {
	typed    kubernetes.Interface
	untyped  dynamic.Interface
	metadata metadata.Interface
}

func newClients(mgr ctrl.Manager) (clients, error) {
	protobuf := rest.CopyConfig(mgr.GetConfig())
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	typed, errTyped := kubernetes.NewForConfigAndClient(protobuf, mgr.GetHTTPClient())
	untyped, errUntyped := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	metadata, errMetadata := metadata.NewForConfigAndClient(metadata.ConfigFor(mgr.GetConfig()), mgr.GetHTTPClient())
	if err := errors.Join(errTyped, errUntyped, errMetadata); err != nil {
		return clients{}, fmt.Errorf("making the clients: %w", err)
	}
	return clients{typed: typed, untyped: untyped, metadata: metadata}, nil
}
