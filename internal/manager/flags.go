// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/serving"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
	"github.com/sharedquota/shared-quota-operator/webhooks/objects"
	"github.com/sharedquota/shared-quota-operator/webhooks/quotas"
	"github.com/sharedquota/shared-quota-operator/webhooks/workloads"
)

// minReservationTTL is how long the API server works on a request that changes something, 34
// seconds (requestTimeoutUpperBound in k8s.io/apiserver/pkg/endpoints/handlers), and the life of an escrow, and a tenth
// more because no two clocks count seconds alike. test/e2e finds that bound on the real API server.
const minReservationTTL = 38*time.Second + escrowLife

type flags struct {
	serving       serving.Options
	leaderElect   bool
	namespace     string
	metrics       metricsFlags
	healthAddress string
	pprofAddress  string
	shutdownDelay time.Duration
	reservations  reservationFlags
	statusEvery   time.Duration
	failurePolicy string
	protected     string
	kubevirt      string
	limited       string
	wakeOwners    bool
	version       bool
}

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
	flag.StringVar(&f.kubevirt, "kubevirt-controllers", "system:serviceaccount:kubevirt:kubevirt-controller",
		"Comma-separated users as which the controllers of KubeVirt create pods. Pods that virtual machines migrate to may take "+
			"the surge of a quota only if such a user creates them.")
	flag.BoolVar(&f.wakeOwners, "wake-owners", true,
		"Wake workloads whose objects a quota refused once there is room for them, by the annotation "+quotav1.RoomAnnotation+
			" on their status subresource. If false, their controllers try again by themselves.")
	flag.StringVar(&f.limited, "limited-resources", "",
		"File with a ResourceQuotaConfiguration, as for kube-apiserver: the resources that it names may be consumed only where a "+
			"ClusterResourceQuota covers them. Give all replicas the same file.")
	flag.BoolVar(&f.version, "version", false, "Print the version and exit.")
	logging.BindFlags(flag.CommandLine)
	_ = flag.CommandLine.Parse(os.Args[1:]) // it ends the process if it fails
	f.serving.Namespace = f.namespace
	return f, logging
}

// reservationFlags bound the reservations for admitted requests.
type reservationFlags struct {
	life        time.Duration
	maxDoubtful int64
	escrow      bool
}

func (f *reservationFlags) bind() {
	flag.DurationVar(&f.life, "reservation-ttl", 60*time.Second,
		"How long an admitted request holds room if its object doesn't appear. After that, the operator looks for the object a last time. "+
			"At least 40s: the API server works on a request for up to 34s, and a replica grants from escrow for 2s.")
	flag.BoolVar(&f.escrow, "escrow", true,
		"Let each replica reserve some room in advance while a limit is far, and grant requests from that room without a write.")
	flag.Int64Var(&f.maxDoubtful, "max-doubtful-percent", 5,
		"Percentage of a limit that one namespace may hold for objects that don't appear, after one of its requests has failed. "+
			"A fifth of what would be free without those is always allowed. 100 means no such bound.")
}

func (f *reservationFlags) check() error {
	if f.life < minReservationTTL {
		return fmt.Errorf("--reservation-ttl %s: want at least %s", f.life, minReservationTTL)
	}
	if f.maxDoubtful < 0 || f.maxDoubtful > 100 {
		return fmt.Errorf("--max-doubtful-percent %d: want 0 to 100", f.maxDoubtful)
	}
	return nil
}

// metricsFlags say how metrics are served.
type metricsFlags struct {
	address    string
	secure     bool
	certDir    string
	namespaces bool
}

func (f *metricsFlags) bind() {
	flag.StringVar(&f.address, "metrics-bind-address", ":8443", "Address of the metrics endpoint; 0 for none.")
	flag.BoolVar(&f.secure, "metrics-secure", true,
		"Serve metrics over TLS and require authorization for GET /metrics. If false, serve them over HTTP to anybody.")
	flag.StringVar(&f.certDir, "metrics-cert-dir", "",
		"Directory with tls.crt and tls.key for the metrics endpoint. By default it presents the webhooks' certificate.")
	flag.BoolVar(&f.namespaces, "metrics-namespaces", false,
		"Export what each selected namespace uses, as sharedquota_quota_namespace_used: "+
			"a series for each quota, namespace and limited resource.")
}

// settings converts the flags to the webhooks' settings and the configuration of
// resources that are limited by default. It validates them.
func settings(f flags) (webhookconfig.Settings, evaluation.LimitedConfiguration, error) {
	if err := f.reservations.check(); err != nil {
		return webhookconfig.Settings{}, evaluation.LimitedConfiguration{}, err
	}
	policy := admissionregistrationv1.FailurePolicyType(f.failurePolicy)
	if policy != admissionregistrationv1.Fail && policy != admissionregistrationv1.Ignore {
		err := fmt.Errorf("--failure-policy %q: want Fail or Ignore", f.failurePolicy)
		return webhookconfig.Settings{}, evaluation.LimitedConfiguration{}, err
	}
	protected, err := protected(f.protected, f.namespace)
	byDefault, loadErr := evaluation.LoadLimited(f.limited)
	return webhookconfig.Settings{
		Paths: paths(), Protected: protected, FailurePolicy: policy, Everywhere: byDefault.Resources(),
	}, byDefault, errors.Join(err, loadErr)
}

func paths() webhookconfig.Paths {
	return webhookconfig.Paths{Objects: objects.Path, Workloads: workloads.Path, Quotas: quotas.Path, Probe: probePath}
}

// protected are the namespaces that no quota limits: a cluster must be able to
// heal itself, and the operator itself, even if every quota is exhausted.
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
