/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/sharedquota/shared-quota-operator/internal/serving"
)

type flags struct {
	serving        serving.Options
	leaderElect    bool
	namespace      string
	metrics        metricsFlags
	healthAddress  string
	pprofAddress   string
	shutdownDelay  time.Duration
	reservationTTL time.Duration
	statusEvery    time.Duration
	failurePolicy  string
	protected      string
	limited        string
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
		"Serve metrics over TLS, to whom the cluster lets get /metrics. Otherwise over HTTP, to anybody.")
	flag.StringVar(&f.certDir, "metrics-cert-dir", "",
		"Directory with tls.crt and tls.key for the metrics endpoint. By default it presents the webhooks' certificate.")
	flag.BoolVar(&f.namespaces, "metrics-namespaces", false,
		"Export what each selected namespace uses, as sharedquota_quota_namespace_used: "+
			"a series for each quota, namespace and limited resource.")
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
		"Directory with tls.crt, tls.key and ca.crt for the webhooks, which the installation provides and may change.")
	flag.StringVar(&f.serving.CertSecret, "cert-secret", "",
		"Name of a Secret in the operator's own namespace in which it keeps the webhooks' certificate. By default "+
			serving.DefaultSecret+" with --webhook-service and without --cert-dir. "+
			"With --webhook-url and neither, the certificate lives as long as the process.")
	flag.BoolVar(&f.leaderElect, "leader-elect", true, "Let one of several replicas do the counting.")
	flag.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"The operator's own namespace: it holds the lease and the webhooks' certificate, and is never limited.")
	f.metrics.bind()
	flag.StringVar(&f.healthAddress, "health-probe-bind-address", ":8081", "Address of the health probes; 0 for none.")
	flag.StringVar(&f.pprofAddress, "pprof-bind-address", "0", "Address of the profiling endpoint; 0 for none.")
	flag.DurationVar(&f.shutdownDelay, "shutdown-delay-duration", 5*time.Second,
		"How long requests are still answered after SIGTERM, while the API server turns to other replicas.")
	flag.DurationVar(&f.reservationTTL, "reservation-ttl", 90*time.Second,
		"How long an admitted object may take to appear before it is looked for. "+
			"At least 80s: the API server's request timeout of a minute, and what clocks of replicas may differ by.")
	flag.DurationVar(&f.statusEvery, "status-interval", time.Second, "Least time between two writes of a quota's status and views.")
	flag.StringVar(&f.failurePolicy, "failure-policy", string(admissionregistrationv1.Fail),
		"What the API server does with a request that a quota limits while no operator answers: Fail refuses it, "+
			"Ignore admits it unchecked, and quotas are exceeded.")
	flag.StringVar(&f.protected, "protected-namespaces", "kube-system,kube-public,kube-node-lease",
		"Namespaces that are never limited, separated by commas, besides the operator's own.")
	flag.StringVar(&f.limited, "limited-resources", "",
		"File with a ResourceQuotaConfiguration, as kube-apiserver takes it: what it names may be consumed only where a "+
			"ClusterResourceQuota covers it. The same for all replicas.")
	showVersion := flag.Bool("version", false, "Print the version and end.")
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	if *showVersion {
		fmt.Println("shared-quota-operator", version)
		os.Exit(0)
	}
	f.serving.Namespace = f.namespace
	return f, logging
}
