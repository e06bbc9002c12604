// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// counter is the part of a replica that works while the replica leads, or believes that it does.
// The count is the operator's own.
type counter struct {
	replica *replica
	count   *counting.Count
	// defined is the basis for which each quota is counted.
	defined [maxQuotas]ledger.Basis
	limited [maxQuotas]bool
	// tasks are the reconciles under way; due says when the next one is.
	tasks  [maxQuotas]*task
	due    [maxQuotas]time.Time
	write  *writing
	writes bool
	// specs are the first versions seen of each quota's generation.
	specs [maxQuotas]*entry
	// ages are of each quota's ledger, and seals of a sealed ledger.
	ages, seals [maxQuotas]ledger.Ages
}

// observed is the state of the count from which an observation was made.
type observed struct {
	basis      ledger.Basis
	listed     [maxSources]bool
	sources    [maxSources]uint64
	namespaces uint64
	// members is how far the count of namespaces holds: before the first join that is
	// unproved, if one is.
	members uint64
}

// lead makes the replica count.
func (r *replica) lead() {
	r.counter = &counter{replica: r, writes: true}
	r.counter.count = counting.New(r.world.evaluators,
		func(quotas []string) { r.counter.tell(quotas, false) }, func(quotas []string) { r.counter.tell(quotas, true) })
	for q := range maxQuotas {
		r.counter.due[q], r.counter.ages[q], r.counter.seals[q] = r.now(), ledger.Ages{}, ledger.Ages{}
	}
	for kind := countNamespaces; kind <= countClaims; kind++ {
		r.streams[kind] = stream{}
	}
}

func (c *counter) tell(quotas []string, freed bool) {
	for q, name := range c.replica.world.vocabulary.quotas {
		if !slices.Contains(quotas, name) {
			continue
		}
		if !freed {
			c.due[q] = c.replica.now()
		}
		if driver := c.replica.drivers[q]; driver != nil {
			driver.step(machine.Counted{Freed: freed})
		}
	}
}

// source is the source of the count that a watch feeds.
func (c *counter) source(source int) *counting.Source {
	return c.count.Source(c.replica.world.sources[source].GroupResource())
}

func (c *counter) takeNamespace(change change[namespace]) {
	name := c.replica.world.vocabulary.namespaces[change.key]
	if change.value == nil {
		c.count.DeleteNamespace(name, change.revision)
	} else {
		labels := c.replica.world.labels[change.value.labels]
		c.count.SetNamespace(name, labels, nil, change.revision, c.replica.now())
	}
	c.count.NamespacesAt(change.revision)
}

func (c *counter) listNamespaces(list []*namespace, revision uint64) {
	var labelled []counting.NamespaceLabels
	for _, listed := range list {
		if listed != nil {
			labelled = append(labelled, counting.NamespaceLabels{
				Name: c.replica.world.vocabulary.namespaces[listed.namespace], Labels: c.replica.world.labels[listed.labels], Version: listed.revision,
			})
		}
	}
	c.count.ReplaceNamespaces(labelled, revision, c.replica.now())
}

func (c *counter) takeObject(source int, before *object, change change[object]) {
	if change.value != nil {
		c.must(c.source(source).Set(change.value.raw, c.replica.now()))
	} else {
		c.must(c.source(source).Delete(deleted(before.raw, change.revision), c.replica.now()))
	}
	c.source(source).At(change.revision)
}

// deleted is how a watch shows that an object was deleted.
func deleted(raw runtime.Object, revision uint64) runtime.Object {
	gone := raw.DeepCopyObject()
	if object, ok := gone.(metav1.Object); ok {
		object.SetResourceVersion(strconv.FormatUint(revision, 10))
	}
	return gone
}

func (c *counter) listObjects(source int, list []*object, revision uint64) {
	var objects []runtime.Object
	for _, listed := range list {
		if listed != nil {
			objects = append(objects, listed.raw)
		}
	}
	c.must(c.source(source).Replace(objects, revision, c.replica.now()))
}

func (*counter) must(err error) {
	if err != nil {
		panic(err)
	}
}

// define starts to count the resources that the spec limits, unless that is under way.
func (c *counter) define(known *quota) {
	if c.limited[known.quota] && c.defined[known.quota] == known.basis() {
		return
	}
	w := c.replica.world
	sources := map[corev1.ResourceName][]schema.GroupResource{}
	for i, name := range w.figures {
		if limits(known.quota, i) {
			sources[name] = w.countedFrom[name]
		}
	}
	for source := range maxSources {
		c.source(source)
	}
	c.defined[known.quota], c.limited[known.quota] = known.basis(), true
	c.count.Define(counting.Target{
		UID: known.uid, Generation: known.generation, Digest: known.basis().Digest,
		Quota:    evaluation.Quota{Name: w.vocabulary.quotas[known.quota], Spec: corev1.ResourceQuotaSpec{Hard: known.list}, Advisory: known.audits},
		Selector: w.selectors[known.quota], Sources: sources,
	}, c.replica.now())
}

func (c *counter) forget(q int) {
	c.count.Forget(c.replica.world.vocabulary.quotas[q])
	c.defined[q], c.limited[q] = ledger.Basis{}, false
	c.replica.forget(q)
}

// observe is the operator's Counter.
func (d *driver) observe(asked machine.Observe) *ledger.Observation {
	counter := d.replica.counter
	if counter == nil || slices.Contains(d.replica.forgotten, d) {
		return nil
	}
	w := d.replica.world
	var observation *ledger.Observation
	counter.count.Read(w.vocabulary.quotas[d.quota], func(view counting.View) {
		whole := counting.ObservationOf(view)
		observation = &whole
		if !w.mutation.noProof {
			observation = counting.SettlementOf(view, asked.Ledger)
		}
		if observation == nil && w.mutation.leftProves && asked.Ledger.Basis == whole.Basis {
			observation = &whole
		}
		if observation == nil {
			return
		}
		seen := map[ledger.Key]bool{}
		for key, reservation := range asked.Ledger.Reservations {
			seen[key] = observation.Seen(reservation)
		}
		observation.Seen = func(reservation ledger.Reservation) bool { return seen[reservation.Key()] }
	})
	if observation == nil {
		return nil
	}
	d.observed = &observed{basis: observation.Basis, namespaces: observation.Counted[ledger.Namespaces]}
	d.observed.members = d.observed.namespaces
	counter.count.Read(w.vocabulary.quotas[d.quota], func(view counting.View) {
		if observation.Touched[ledger.Namespaces] < view.Touched()[ledger.Namespaces] {
			d.observed.members = observation.Touched[ledger.Namespaces]
		}
	})
	for source := range maxSources {
		d.observed.sources[source], d.observed.listed[source] = lookup(observation.Counted, w.sources[source].GroupResource())
	}
	return w.mutation.observation(d, observation)
}

func lookup(counted map[schema.GroupResource]uint64, source schema.GroupResource) (uint64, bool) {
	version, listed := counted[source]
	return version, listed
}

// include notes how far the figures have come of a ledger that was just written. The
// rules are those of the ledger, said again: a count that is behind is not taken.
func (w *world) include(before *stored, count *observed) {
	if before == nil || count == nil {
		return
	}
	written := w.ledgers.newest[before.quota]
	state := before.snapshot.State
	if state.Quota != count.basis.Quota || count.basis.Generation < state.Generation || count.namespaces < state.Counted[ledger.Namespaces] {
		return
	}
	for figure := range maxFigures {
		if !w.isBehind(count, state, figureSource(figure)) && (figure != 2 || !w.isBehind(count, state, widgets)) {
			written.included[figure] = written.included[figure].with(reached{count.sources, count.members})
		}
	}
}

func (w *world) isBehind(count *observed, state ledger.State, source int) bool {
	return !count.listed[source] || count.sources[source] < state.Counted[w.sources[source].GroupResource()]
}

// learn notes how far the figures have come of a ledger that a leader has nothing to add to: the
// ledger uses the counted amounts, and need not be written for that.
func (d *driver) learn(count *observed, effects []machine.Effect) {
	w := d.replica.world
	stored, machine := w.ledgers.newest[d.quota], d.machine
	if stored == nil || count == nil || len(effects) > 0 || !machine.Idle() || machine.Current().Version != stored.snapshot.Version {
		return
	}
	w.include(stored, count)
}

// figureSource is the source from which a figure is counted.
func figureSource(figure int) int { return min(figure, claims) }

// newest returns how far a count must have come to include all that is stored now.
func (w *world) newest() *ledger.Newest {
	newest := map[schema.GroupResource]uint64{ledger.Namespaces: w.newestNamespace()}
	for source := range maxSources {
		newest[w.sources[source].GroupResource()] = w.newestOf(source)
	}
	return &ledger.Newest{Versions: newest}
}

func (w *world) newestOf(source int) uint64 {
	newest := uint64(0)
	for _, object := range w.objects[source].newest {
		if object != nil {
			newest = max(newest, object.revision)
		}
	}
	return newest
}

func (w *world) newestNamespace() uint64 {
	newest := uint64(0)
	for _, namespace := range w.namespaces.newest {
		if namespace != nil {
			newest = max(newest, namespace.revision)
		}
	}
	return newest
}
