// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// The cluster has at most this many of each.
const (
	maxQuotas     = 2
	maxNamespaces = 3
	maxNames      = 3
	maxSources    = 2
	maxFigures    = 3
)

// Sources: widgets are of a CustomResourceDefinition, and each counts one. Claims count
// one each, and storage, which may grow.
const (
	widgets = iota
	claims
)

// figures are amounts of widgets, claims and storage.
type figures [maxFigures]int

func (f figures) plus(other figures) figures {
	for i, amount := range other {
		f[i] += amount
	}
	return f
}

func (f figures) minus(other figures) figures {
	for i, amount := range other {
		f[i] -= amount
	}
	return f
}

func (f figures) max(other figures) figures {
	for i, amount := range other {
		f[i] = max(f[i], amount)
	}
	return f
}

// vocabulary is the model's terms in the words of Kubernetes. It is made once.
type vocabulary struct {
	sources    [maxSources]schema.GroupVersionResource
	figures    [maxFigures]corev1.ResourceName
	quotas     [maxQuotas]string
	namespaces [maxNamespaces]string
	names      [maxNames]string
	labels     [1 << maxQuotas]map[string]string
	selectors  [maxQuotas]definition.Selector
	// countedFrom are the sources of each figure. Storage may come from widgets, too, as
	// devices may come from pods and claims; it never does.
	countedFrom map[corev1.ResourceName][]schema.GroupResource
	evaluators  *evaluation.Evaluators
	start       time.Time
	lists       map[figures]corev1.ResourceList
	numbers     []string
}

func newVocabulary() *vocabulary {
	v := &vocabulary{
		sources: [maxSources]schema.GroupVersionResource{
			{Group: "example.com", Version: "v1", Resource: "widgets"}, {Version: "v1", Resource: "persistentvolumeclaims"},
		},
		figures:    [maxFigures]corev1.ResourceName{"count/widgets.example.com", "persistentvolumeclaims", "requests.storage"},
		quotas:     [maxQuotas]string{"red", "blue"},
		namespaces: [maxNamespaces]string{"n0", "n1", "n2"},
		names:      [maxNames]string{"x", "y", "z"},
		evaluators: evaluation.New(nil, evaluation.ClaimSources{}),
		start:      time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
		lists:      map[figures]corev1.ResourceList{},
	}
	widget, claim := v.sources[widgets].GroupResource(), v.sources[claims].GroupResource()
	v.countedFrom = map[corev1.ResourceName][]schema.GroupResource{
		v.figures[0]: {widget}, v.figures[1]: {claim}, v.figures[2]: {claim, widget},
	}
	for mask := range v.labels {
		v.labels[mask] = map[string]string{}
		for q, name := range v.quotas {
			if mask>>q&1 == 1 {
				v.labels[mask][name] = "yes"
			}
		}
	}
	for q, name := range v.quotas {
		selector, err := definition.CompileSelector(quotav1.ClusterResourceQuotaSelector{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{name: "yes"}},
		})
		if err != nil {
			panic(err)
		}
		v.selectors[q] = selector
	}
	for n := range 4096 {
		v.numbers = append(v.numbers, strconv.Itoa(n))
	}
	return v
}

// limits reports whether a quota limits a figure: the first limits all, the second no
// storage.
func limits(q, figure int) bool { return q == 0 || figure != 2 }

func masked(q int, amounts figures) figures {
	for i := range amounts {
		if !limits(q, i) {
			amounts[i] = 0
		}
	}
	return amounts
}

// list returns amounts without zeros. The list is never changed.
func (v *vocabulary) list(amounts figures) corev1.ResourceList {
	list, known := v.lists[amounts]
	if !known {
		list = corev1.ResourceList{}
		for i, amount := range amounts {
			if amount != 0 {
				list[v.figures[i]] = *resource.NewQuantity(int64(amount), resource.DecimalSI)
			}
		}
		v.lists[amounts] = list
	}
	return list
}

// hard returns a quota's limits, zeros too.
func (v *vocabulary) hard(q int, amounts figures) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i, amount := range amounts {
		if limits(q, i) {
			list[v.figures[i]] = *resource.NewQuantity(int64(amount), resource.DecimalSI)
		}
	}
	return list
}

// extra returns a quota's surge; nil for none.
func (v *vocabulary) extra(q int, surge figures) corev1.ResourceList {
	if surge = masked(q, surge); surge == (figures{}) {
		return nil
	}
	return v.list(surge)
}

func (v *vocabulary) amounts(list corev1.ResourceList) figures {
	var amounts figures
	for i, name := range v.figures {
		if quantity, known := list[name]; known {
			amounts[i] = int(quantity.Value())
		}
	}
	return amounts
}

func (v *vocabulary) number(n uint64) string {
	if n < uint64(len(v.numbers)) {
		return v.numbers[n]
	}
	return strconv.FormatUint(n, 10)
}

// place is where one object at a time can live.
type place struct{ source, namespace, name int }

// object is one version of an object.
type object struct {
	place
	uid      types.UID
	revision uint64
	// size is one, and storage for a claim.
	size figures
	// parts are the parts of the object, in the order in which it grew.
	parts []part
	raw   runtime.Object
}

// part is the addition of one request to an object.
type part struct {
	revision uint64
	amounts  figures
	// asked are the quotas for which the operator was asked about it.
	asked [maxQuotas]types.UID
	// by is the request; nil for none. surges: it was charged as one whose object replaces another one, which is so.
	by     *request
	surges bool
}

// grantedAt is the version of the ledger in which a part was reserved.
func (p part) grantedAt(q int) uint64 {
	if p.by == nil || p.by.granted[q] == nil {
		return 0
	}
	return p.by.granted[q].snapshot.Version.ResourceVersion
}

// namespace is one version of a namespace.
type namespace struct {
	namespace int
	// labels is a bit for each quota that selects it.
	labels   int
	revision uint64
	raw      *metav1.PartialObjectMetadata
}

// quota is one version of a ClusterResourceQuota.
type quota struct {
	quota      int
	uid        types.UID
	generation int64
	revision   uint64
	hard       figures
	// surge is the room above hard for objects that replace others.
	surge figures
	// list is hard, and extra is surge, as Kubernetes has them.
	list, extra corev1.ResourceList
	// audits: its mode is Audit, so it refuses nothing.
	audits bool
	// ledger is the UID of the ledger that its status names.
	ledger types.UID
	raw    *quotav1.ClusterResourceQuota
}

func (q *quota) basis() ledger.Basis {
	return ledger.Basis{Quota: q.uid, Generation: q.generation, Digest: string(q.uid)}
}

// unlimited is more than there ever is.
const unlimited = 1 << 20

// limit is the most that may live.
func (q *quota) limit() figures {
	if !q.audits {
		return q.hard
	}
	return masked(q.quota, figures{unlimited, unlimited, unlimited})
}

// most is the most that may live with objects that replace others.
func (q *quota) most() figures { return q.limit().plus(masked(q.quota, q.surge)) }

// object returns the quota as Kubernetes has it.
func (v *vocabulary) object(q *quota) *quotav1.ClusterResourceQuota {
	object := &quotav1.ClusterResourceQuota{}
	object.Name, object.UID, object.Generation, object.ResourceVersion = v.quotas[q.quota], q.uid, q.generation, v.number(q.revision)
	object.Spec.Quota.Hard, object.Spec.Surge.Hard = q.list, q.extra
	if q.audits {
		object.Spec.Enforcement.Mode = quotav1.EnforcementAudit
	}
	return object
}

// define returns the quota as enforcement sees it.
func (v *vocabulary) define(object *quotav1.ClusterResourceQuota) definition.Definition {
	return definition.Definition{Selector: v.selectors[slices.Index(v.quotas[:], object.Name)], Limits: ledger.Limits{
		Basis: ledger.Basis{Quota: object.UID, Generation: object.Generation, Digest: string(object.UID)},
		Name:  object.Name, Hard: object.Spec.Quota.Hard, Surge: object.Spec.Surge.Hard, Advisory: object.Spec.Enforcement.Mode == quotav1.EnforcementAudit,
	}}
}

// stored is one version of a ledger.
type stored struct {
	quota    int
	snapshot machine.Snapshot
	included [maxFigures]included
}

// included is how far a figure of a ledger's used has come, as the simulation knows it:
// the ledger's own Counted is not asked.
// It may be known from several counts, none of which has come further than another in all.
type included []reached

// reached is how far one count has come.
type reached struct {
	sources    [maxSources]uint64
	namespaces uint64
}

// covers reports whether a count has come at least as far.
func (r reached) covers(other reached) bool {
	if r.namespaces < other.namespaces {
		return false
	}
	for source := range r.sources {
		if r.sources[source] < other.sources[source] {
			return false
		}
	}
	return true
}

// with returns the counts that are included once another one is, too.
func (i included) with(added reached) included {
	kept := included{added}
	for _, known := range i {
		if known.covers(added) {
			return i
		}
		if !added.covers(known) {
			kept = append(kept, known)
		}
	}
	return kept
}

// change is one event of a watch; value is nil for a deletion.
type change[T any] struct {
	key      int
	revision uint64
	at       time.Time
	value    *T
}

// history is all that was ever stored of one kind.
type history[T any] struct {
	changes []change[T]
	// newest has the values that are stored now.
	newest []*T
}

func newHistory[T any](keys int) history[T] {
	return history[T]{newest: make([]*T, keys)}
}

func (h *history[T]) store(key int, revision uint64, at time.Time, value *T) {
	h.changes = append(h.changes, change[T]{key, revision, at, value})
	h.newest[key] = value
}

// listed returns the values that were stored after so many changes, and their revision.
func (h *history[T]) listed(after int) (list []*T, revision uint64) {
	list = make([]*T, len(h.newest))
	for _, change := range h.changes[:after] {
		list[change.key], revision = change.value, change.revision
	}
	return list, revision
}
