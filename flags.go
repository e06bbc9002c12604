// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/serving"
)

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
	limited       string
	wakeOwners    bool
}

// reservationFlags say what is held for requests that were admitted.
type reservationFlags struct {
	life        time.Duration
	maxDoubtful int64
	escrow      bool
}

func (f *reservationFlags) bind() {
	flag.DurationVar(&f.life, "reservation-ttl", 60*time.Second,
		"How long an admitted request holds room if its object doesn't appear. After that, the operator looks for the object a last time. "+
			"At least 56s: the API server works on a request for up to 34s, a replica grants from escrow for 2s, "+
			"and the clocks of two replicas may differ by the rest.")
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
