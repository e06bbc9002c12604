// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager is the shared quota operator: it counts, enforces and reports
// what namespaces share under ClusterResourceQuotas.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsregistry "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/controllers"
	"github.com/sharedquota/shared-quota-operator/internal/certs"
	"github.com/sharedquota/shared-quota-operator/internal/contact"
	"github.com/sharedquota/shared-quota-operator/internal/coverage"
	"github.com/sharedquota/shared-quota-operator/internal/deviceclaims"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/internal/report"
	"github.com/sharedquota/shared-quota-operator/internal/serving"
	"github.com/sharedquota/shared-quota-operator/webhooks"
	"github.com/sharedquota/shared-quota-operator/webhooks/objects"
	"github.com/sharedquota/shared-quota-operator/webhooks/quotas"
	"github.com/sharedquota/shared-quota-operator/webhooks/workloads"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// minReservationTTL is how long the API server works on a request that changes something, 34
// seconds (requestTimeoutUpperBound in k8s.io/apiserver/pkg/endpoints/handlers), and by how
// much the clocks of replicas may differ, and the life of an escrow. test/e2e finds that bound on the real
// API server.
const minReservationTTL = 54*time.Second + escrowLife

// discoveryTimeout is for the API server to say what it serves.
const discoveryTimeout = 10 * time.Second

// gcPercent lets the heap grow to four times what is in use.
const gcPercent = 300

// version is set by the linker for a release.
var version = "dev"

func parseFlags() (flags, zap.Options) {
	var f flags
	logging := zap.Options{}
	flag.StringVar(&f.serving.URL, "webhook-url", "",
		"Base URL at which the API server reaches the webhooks, to run outside of the cluster.")
	flag.StringVar(&f.serving.Service, "webhook-service", "",
		"NAMESPACE/NAME of the Service through which the API server reaches the webhooks.")
	flag.StringVar(&f.serving.BindAddress, "webhook-bind-address", "",
		"IP address on which the webhooks are served. By default all of the host's.")
	flag.IntVar(&f.serving.Port, "webhook-port", 9443, "Port on which the webhooks are served.")
	flag.StringVar(&f.serving.CertDir, "cert-dir", "",
		"Directory with tls.crt, tls.key and ca.crt for the webhooks. The operator loads the files again when they change.")
	flag.StringVar(&f.serving.CertSecret, "cert-secret", "",
		"Name of a Secret in the operator's own namespace in which it keeps the webhooks' certificate. By default "+
			serving.DefaultSecret+" with --webhook-service and without --cert-dir. "+
			"With --webhook-url and neither of the two, the operator makes a certificate at each start.")
	flag.StringVar(&f.serving.ClientCAFile, "client-ca-file", "",
		"PEM file of certificate authorities. If set, callers of the webhooks must present a client certificate of one of them. "+
			"Give the API servers an AdmissionConfiguration with such a certificate first.")
	flag.BoolVar(&f.leaderElect, "leader-elect", true, "Elect one of several replicas to do the counting.")
	flag.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"The operator's own namespace. It holds the lease and the webhooks' certificate, and is never limited.")
	f.metrics.bind()
	flag.StringVar(&f.healthAddress, "health-probe-bind-address", ":8081", "Address of the health probes; 0 for none.")
	flag.StringVar(&f.pprofAddress, "pprof-bind-address", "0", "Address of the profiling endpoint; 0 for none.")
	flag.DurationVar(&f.shutdownDelay, "shutdown-delay-duration", 5*time.Second,
		"How long to answer requests after SIGTERM, until the API server sends them to other replicas.")
	f.reservations.bind()
	flag.DurationVar(&f.statusEvery, "status-interval", time.Second, "Minimum time between two writes of a quota's status and views.")
	flag.StringVar(&f.failurePolicy, "failure-policy", string(admissionregistrationv1.Fail),
		"What the API server does with a request that a quota limits if no operator answers, unless the quota says it "+
			"(spec.enforcement.whenUnavailable, or only the modes Warn and Audit): Fail refuses it, Ignore admits it unchecked, "+
			"so that the quota may be exceeded.")
	flag.StringVar(&f.protected, "protected-namespaces", "kube-system,kube-public,kube-node-lease",
		"Comma-separated namespaces that are never limited, besides the operator's own.")
	flag.BoolVar(&f.wakeOwners, "wake-owners", true,
		"Wake workloads whose objects a quota refused once there is room for them, by the annotation "+quotav1.RoomAnnotation+
			" on their status subresource. If false, their controllers try again by themselves.")
	flag.StringVar(&f.limited, "limited-resources", "",
		"File with a ResourceQuotaConfiguration, as for kube-apiserver: the resources that it names may be consumed only where a "+
			"ClusterResourceQuota covers them. Give all replicas the same file.")
	showVersion := flag.Bool("version", false, "Print the version and exit.")
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	if *showVersion {
		fmt.Println("shared-quota-operator", version)
		os.Exit(0)
	}
	f.serving.Namespace = f.namespace
	return f, logging
}

func main() {
	f, logging := parseFlags()
	logger := zap.New(zap.UseFlagOptions(&logging))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	tuneCollector()
	if err := run(ctrl.SetupSignalHandler(), f); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f flags) error {
	reached, byDefault, err := settings(f)
	if err != nil {
		return err
	}
	clock, err := systemClock()
	if err != nil {
		return err
	}
	setup, err := serving.New(clock, f.serving)
	if err != nil {
		return err
	}
	ctx = setup.Server.Stopping(ctx, clock, f.shutdownDelay)
	mgr, contact, err := newManager(clock, f, setup)
	if err != nil {
		return err
	}
	measured := newMetrics(contact)
	setup.Server.Observe(measured)
	claims, classes, err := deviceclaims.Sources(ctx, mgr)
	if err != nil {
		return err
	}
	evaluators := evaluation.New(clock, claims, byDefault.Limited()...)
	store, err := newStore(mgr)
	if err != nil {
		return err
	}
	// It ends after the manager has: what the webhooks still answer is charged.
	charging, stop := context.WithCancel(context.WithoutCancel(ctx))
	group := driver.New(charging, clock, store, observing{measured}, driverOptions(f, contact.Replica()))
	defer group.Wait()
	defer stop()
	defer drain(charging, group)
	index, err := coverage.NewIndex(ctx, clock, mgr.GetCache(), mgr.GetAPIReader())
	if err != nil {
		return err
	}
	told := newTold(clock, group)
	parts := webhooks.Parts{
		Objects: objects.Parts{
			Clock: clock, Evaluators: evaluators, Coverage: index, Charger: group, Metrics: measured, Contact: contact,
			Refusals:       objects.NewRefusals(clock, mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder(report.RecorderName)),
			AdmitByDefault: reached.AdmitsByDefault(),
			Waiting:        told.waiting, History: told.history,
			ReservationTTL: f.reservations.life, MaxDoubtful: f.reservations.maxDoubtful,
		},
		Workloads: preflight(clock, mgr, index, group, claims, measured),
		Edits:     quotas.NewEdits(clock, told.history),
	}
	err = errors.Join(
		webhooks.Register(ctx, mgr, parts, index, quotas.NewFences(clock, group, f.reservations.life), contact, reached.Protected),
		setup.Callers.Follow(ctx, mgr.GetCache(), mgr.GetAPIReader()),
		controllers.Register(ctx, mgr, clock, evaluators, group, measured, controllerOptions(f, setup, reached, index, classes, told)),
		addProbes(mgr, setup, index, classes, contact), addLacking(mgr))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// preflight returns what workloads are judged with. The evaluators make no calls: what they don't know of
// device classes isn't judged.
func preflight(
	clock clock.Clock, mgr ctrl.Manager, index *coverage.Index, group *driver.Group, claims evaluation.ClaimSources,
	measured *metrics.Metrics,
) workloads.Parts {
	return workloads.Parts{
		Clock: clock, Coverage: index, Ledgers: group, Metrics: measured,
		Evaluators: evaluation.New(clock, evaluation.ClaimSources{DeviceClasses: claims.DeviceClasses}),
		Events:     workloads.NewEvents(clock, mgr.GetEventRecorder(report.RecorderName)),
	}
}

func controllerOptions(
	f flags, setup *serving.Setup, reached reach.Settings, index *coverage.Index, classes *deviceclaims.Classes, told told,
) controllers.Options {
	return controllers.Options{
		Define:           index.Define,
		Serving:          setup,
		Reach:            reached,
		Namespace:        f.namespace,
		DecodeLedger:     ledgerstore.Snapshot,
		Intact:           ledgerstore.Intact,
		LedgerSize:       ledgerstore.Size,
		DeviceClasses:    classes,
		ReservationTTL:   f.reservations.life,
		MaxDoubtful:      f.reservations.maxDoubtful,
		StatusEvery:      f.statusEvery,
		NamespaceMetrics: f.metrics.namespaces,
		Waiting:          told.waiting,
		History:          told.history,
		Process:          told.process,
		WakeOwners:       f.wakeOwners,
	}
}

func newMetrics(contact *contact.Contact) *metrics.Metrics {
	measured := metrics.New(metricsregistry.Registry)
	measured.Contact(contact.Silence)
	return measured
}

// settings are what the flags say of what the webhooks are called for, and of what
// is limited by default. It is an error if they say what can't be.
func settings(f flags) (reach.Settings, evaluation.LimitedConfiguration, error) {
	if err := f.reservations.check(); err != nil {
		return reach.Settings{}, evaluation.LimitedConfiguration{}, err
	}
	policy := admissionregistrationv1.FailurePolicyType(f.failurePolicy)
	if policy != admissionregistrationv1.Fail && policy != admissionregistrationv1.Ignore {
		return reach.Settings{}, evaluation.LimitedConfiguration{}, fmt.Errorf("--failure-policy %q: want Fail or Ignore", f.failurePolicy)
	}
	protected, err := protected(f.protected, f.namespace)
	byDefault, loadErr := evaluation.LoadLimited(f.limited)
	return reach.Settings{
		Paths: webhooks.Paths(), Protected: protected, FailurePolicy: policy, Everywhere: byDefault.Resources(),
	}, byDefault, errors.Join(err, loadErr)
}

// tuneCollector lets garbage pile up, unless the environment says otherwise: the
// heap is small and the garbage of admission much. Collected at each doubling, it
// took an eighth of the operator's CPU time under load.
func tuneCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// newManager makes the manager. Whatever the API server answers to its clients is noted.
func newManager(clock clock.Clock, f flags, setup *serving.Setup) (ctrl.Manager, *contact.Contact, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), quotav1.AddToScheme(scheme)); err != nil {
		return nil, nil, fmt.Errorf("building the scheme: %w", err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("finding the cluster: %w", err)
	}
	noted, err := newContact(clock)
	if err != nil {
		return nil, nil, err
	}
	config.Wrap(noted.Wrap)
	mgr, err := ctrl.NewManager(tuned(config), ctrl.Options{
		Scheme:                  scheme,
		Cache:                   cacheOptions(setup.Secret),
		WebhookServer:           setup.Server,
		Metrics:                 metricsOptions(f.metrics, setup.Certificates),
		HealthProbeBindAddress:  f.healthAddress,
		LeaderElection:          f.leaderElect,
		LeaderElectionID:        "shared-quota-operator",
		LeaderElectionNamespace: f.namespace,
		// Another replica takes over at once. Nothing is left to do for a leader
		// when the manager has stopped.
		LeaderElectionReleaseOnCancel: true,
		PprofBindAddress:              f.pprofAddress,
		MapperProvider:                mapperWithin(discoveryTimeout),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("making the manager: %w", err)
	}
	return mgr, noted, nil
}

// mapperWithin makes RESTMappers, which take no context, wait for so long at most for
// each answer of the API server.
func mapperWithin(timeout time.Duration) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
		return apiutil.NewDynamicRESTMapper(config, &http.Client{Transport: client.Transport, Timeout: timeout})
	}
}

// metricsOptions protect the metrics as the API server's own are protected, because they
// name quotas and namespaces. The API server says who asks, and whether they may.
func metricsOptions(f metricsFlags, certificates *certs.Certificates) metricsserver.Options {
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

// cacheOptions leave out what nobody reads, and copy nothing of what may be large
// and is read often: a quota's status has a part for each namespace. Whoever
// changes such an object makes a copy of it first. Of Secrets there is only the
// one with the certificate. The managed fields of the webhook configuration say who
// edits it.
func cacheOptions(secret types.NamespacedName) cache.Options {
	shared := cache.ByObject{UnsafeDisableDeepCopy: ptr.To(true)}
	byObject := map[client.Object]cache.ByObject{
		&quotav1.ClusterResourceQuota{}: shared, &quotav1.LocalResourceQuota{}: shared, &quotav1.QuotaLedger{}: shared,
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

// newStore makes the store of ledgers, which reads past the cache.
func newStore(mgr ctrl.Manager) (*ledgerstore.Store, error) {
	live, err := client.New(mgr.GetConfig(), client.Options{
		Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("making the client of ledgers: %w", err)
	}
	return ledgerstore.New(live), nil
}

// protected are the namespaces that no quota limits: a cluster must be able to
// heal itself, and the operator itself, whatever is exhausted.
func protected(given, own string) ([]string, error) {
	var namespaces []string
	for name := range strings.SplitSeq(given+","+own, ",") {
		name = strings.TrimSpace(name)
		if name == "" || slices.Contains(namespaces, name) {
			continue
		}
		if problems := apivalidation.ValidateNamespaceName(name, false); len(problems) > 0 {
			return nil, fmt.Errorf("--protected-namespaces %q: %s", name, strings.Join(problems, "; "))
		}
		namespaces = append(namespaces, name)
	}
	return namespaces, nil
}
