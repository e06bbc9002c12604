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
	"time"

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
