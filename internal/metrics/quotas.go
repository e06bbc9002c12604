// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// Projection is where people read a quota's figures.
type Projection string

const (
	// Status is the quota's own.
	Status Projection = "status"
	// Views are the LocalResourceQuotas in its namespaces.
	Views Projection = "views"
)

// Figures are the leader's knowledge of one quota at a scrape.
type Figures struct {
	Quota string
	// Hard is the limits of the spec; Used the counted use, and Reserved the
	// amounts that were admitted besides, of the resources in Used.
	Hard, Used, Reserved corev1.ResourceList
	// Surge is the room above Hard for pods that replace others, and Surging are the workloads that have taken some.
	Surge   corev1.ResourceList
	Surging []quotav1.SurgingWorkload
	// Namespaces has the use of each selected namespace; nil if that is left out.
	// namespace name -> used
	Namespaces map[string]corev1.ResourceList
	// Reservations are how many charges are in flight.
	Reservations int
	// Doubtful is how many of them seem to be for requests that failed.
	// namespace name -> number
	Doubtful map[string]int
	// LedgerBytes is how large the stored ledger is, as JSON; zero if there is none.
	LedgerBytes int
	// Waiting is how many workloads wait for room.
	Waiting    int
	Conditions []metav1.Condition
	// Lag is for how long a change has not been shown.
	// projection -> age; zero if everything is shown
	Lag map[Projection]time.Duration
}

// source is where the figures of quotas come from.
type source struct {
	// elected is closed once this replica is the leader.
	elected <-chan struct{}
	read    func() []Figures
}

// quotas collects the figures at each scrape, so that none is stale, none of a
// quota that is gone is left, and nothing is written while requests are answered.
type quotas struct {
	// source is nil until there is one.
	source atomic.Pointer[source]

	leader, hard, surge, surging, used, reserved, namespaceUsed, condition, exceeded *prometheus.Desc
	reservations, doubtful, size, waiting, lag                                       *prometheus.Desc
}

func newQuotas() *quotas {
	return &quotas{
		leader: described("counting", "leader", "1 for the replica that counts, the leader; 0 for the others."),
		hard: described("quota", "hard",
			"Limit on what the selected namespaces use together, in cores, bytes or objects.",
			labelQuota, labelResource),
		surge: described("quota", "surge",
			"Room above the limit for pods that replace others, in cores, bytes or objects.", labelQuota, labelResource),
		surging: described("quota", "surging_since_timestamp_seconds",
			"When a workload, as in \"Deployment shop/web\", took surge first, which hasn't ended since. At most 20 of a quota.",
			labelQuota, labelWorkload),
		used: described("quota", "used",
			"Observed use of the selected namespaces, in cores, bytes or objects; only of resources that have been counted.",
			labelQuota, labelResource),
		reserved: described("quota", "reserved",
			"Reserved for requests that were admitted and not observed yet, in cores, bytes or objects.",
			labelQuota, labelResource),
		namespaceUsed: described("quota", "namespace_used",
			"Observed use of one selected namespace, in cores, bytes or objects; with --metrics-namespaces.",
			labelQuota, labelNamespace, labelResource),
		condition: described("quota", "condition",
			"1 for the status that a condition of the quota has, 0 for the others.", labelQuota, labelType, labelStatus),
		exceeded: described("quota", "exceeded",
			"1 for the reason why more of a resource is used than the quota allows, 0 for the others.", labelQuota, labelReason),
		reservations: described("ledger", "reservations",
			"Charges that are held for objects not observed yet. A ledger holds 5000 at most.", labelQuota),
		doubtful: described("ledger", "doubtful_reservations",
			"Charges that one namespace holds for requests that seem to have failed after they were admitted.",
			labelQuota, labelNamespace),
		size: described("ledger", "size_bytes",
			"Size of the stored ledger as JSON. Its reservations take 900 KiB at most.", labelQuota),
		waiting: described("owners", "waiting",
			"Workloads that wait for room, because the quota refused objects that their controllers created.", labelQuota),
		lag: described("projection", "lag_seconds",
			"Age of the oldest change that the quota's status, or one of its views, doesn't show yet; 0 if all is shown.",
			labelQuota, labelProjection),
	}
}

func described(subsystem, name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, name), help, labels, nil)
}

// Describe implements prometheus.Collector.
func (q *quotas) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		q.leader, q.hard, q.surge, q.surging, q.used, q.reserved, q.namespaceUsed, q.condition, q.exceeded, q.reservations, q.doubtful,
		q.size, q.waiting, q.lag,
	} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (q *quotas) Collect(metrics chan<- prometheus.Metric) {
	to := sink(metrics)
	from := q.source.Load()
	if from == nil || !isClosed(from.elected) {
		to.gauge(q.leader, 0)
		return
	}
	to.gauge(q.leader, 1)
	for _, figures := range from.read() {
		q.collect(to, figures)
	}
}

func (q *quotas) collect(to sink, figures Figures) {
	to.amounts(q.hard, figures.Hard, figures.Quota)
	to.amounts(q.surge, figures.Surge, figures.Quota)
	for _, workload := range figures.Surging {
		to.gauge(q.surging, float64(workload.Since.Unix()), figures.Quota,
			workload.Kind+" "+workload.Namespace+"/"+workload.Name)
	}
	to.amounts(q.used, figures.Used, figures.Quota)
	for name := range figures.Used {
		amount := figures.Reserved[name]
		to.gauge(q.reserved, amount.AsApproximateFloat64(), figures.Quota, string(name))
	}
	for namespace, used := range figures.Namespaces {
		to.amounts(q.namespaceUsed, used, figures.Quota, namespace)
	}
	to.gauge(q.reservations, float64(figures.Reservations), figures.Quota)
	for namespace, number := range figures.Doubtful {
		to.gauge(q.doubtful, float64(number), figures.Quota, namespace)
	}
	to.gauge(q.size, float64(figures.LedgerBytes), figures.Quota)
	to.gauge(q.waiting, float64(figures.Waiting), figures.Quota)
	for _, condition := range figures.Conditions {
		for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
			to.gauge(q.condition, truth(condition.Status == status), figures.Quota, condition.Type, string(status))
		}
	}
	exceeded := meta.FindStatusCondition(figures.Conditions, quotav1.ConditionExceeded)
	for _, reason := range []string{
		quotav1.ReasonUsedAboveHard, quotav1.ReasonSurging, quotav1.ReasonAdmittedAboveHard, quotav1.ReasonAdmittedWhileUnavailable,
	} {
		to.gauge(q.exceeded, truth(exceeded != nil && exceeded.Reason == reason), figures.Quota, reason)
	}
	for projection, age := range figures.Lag {
		to.gauge(q.lag, age.Seconds(), figures.Quota, string(projection))
	}
}

// sink is where a scrape's metrics go.
type sink chan<- prometheus.Metric

func (s sink) gauge(desc *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...) //nolint:promlinter // the catalogue names it
}

// amounts sends one gauge for each resource, which is the last label.
func (s sink) amounts(desc *prometheus.Desc, list corev1.ResourceList, labels ...string) {
	for name, amount := range list {
		s.gauge(desc, amount.AsApproximateFloat64(), append(slices.Clip(labels), string(name))...)
	}
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

func truth(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}
