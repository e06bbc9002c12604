// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/clock"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// namespace is what is known of one, which may be its objects alone.
type namespace struct {
	object  *corev1.Namespace // nil where there is none
	records map[place]*record
}

// books hold what lives, and what was seen. They know nothing of etcd, and are
// for one goroutine at a time.
type books struct {
	clock    clock.Clock
	measures *measures

	namespaces map[string]*namespace
	accounts   map[string]*account // name of a quota -> what lives under it
	verdicts   map[string]*verdict // name of a quota -> its violations
	offers     map[string]string   // device class -> extended resource
	// aging are the pods that stop counting at a time, without a commit.
	aging map[place]*record
	// broken says of quotas what is wrong with their spec.
	broken map[string]error
}

func newBooks(clock clock.Clock, layout layout) *books {
	return &books{
		clock:      clock,
		measures:   newMeasures(clock, layout),
		namespaces: map[string]*namespace{},
		accounts:   map[string]*account{},
		verdicts:   map[string]*verdict{},
		offers:     map[string]string{},
		aging:      map[place]*record{},
		broken:     map[string]error{},
	}
}

// apply enters a commit. Commits must come in their order.
func (b *books) apply(e event) error {
	if err := b.age(); err != nil {
		return err
	}
	if err := b.enter(e); err != nil {
		return fmt.Errorf("entering %s at revision %d: %w", e.key, e.revision, err)
	}
	return nil
}

func (b *books) enter(e event) error {
	switch e.at.resource {
	case namespaces:
		object, _ := e.object.(*corev1.Namespace)
		return b.setNamespace(e, object)
	case quotas:
		object, _ := e.object.(*quotav1.ClusterResourceQuota)
		return b.setQuota(e, object)
	case deviceClasses:
		object, _ := e.object.(*resourceapi.DeviceClass)
		b.setDeviceClass(e.at.name, object)
		return nil
	}
	return b.setObject(e)
}

// age measures the pods again whose time is over.
func (b *books) age() error {
	now := b.clock.Now()
	for at, aged := range b.aging {
		if !now.After(aged.due) {
			continue
		}
		next := &record{evaluator: aged.evaluator, object: aged.object}
		if err := next.measure(); err != nil {
			return err
		}
		if _, err := b.replace(at, next); err != nil {
			return err
		}
	}
	return nil
}

func (b *books) setNamespace(e event, object *corev1.Namespace) error {
	name := e.at.name
	ns := b.namespace(name)
	ns.object = object
	for _, account := range b.accounts {
		if err := account.reconsider(name, ns); err != nil {
			return err
		}
	}
	b.forgetIfEmpty(name)
	return nil
}

func (b *books) namespace(name string) *namespace {
	if _, known := b.namespaces[name]; !known {
		b.namespaces[name] = &namespace{records: map[place]*record{}}
	}
	return b.namespaces[name]
}

func (b *books) forgetIfEmpty(name string) {
	if ns := b.namespaces[name]; ns.object == nil && len(ns.records) == 0 {
		delete(b.namespaces, name)
	}
}

func (b *books) setQuota(e event, object *quotav1.ClusterResourceQuota) error {
	name := e.at.name
	earlier := b.accounts[name]
	if earlier != nil && object != nil && earlier.continues(object) {
		return nil // Its status was written.
	}
	delete(b.accounts, name)
	delete(b.broken, name)
	if object == nil {
		return nil
	}
	next, err := newAccount(object)
	if err != nil {
		b.broken[name] = err
	}
	for namespace, ns := range b.namespaces {
		if err := next.reconsider(namespace, ns); err != nil {
			return err
		}
	}
	next.inherit(earlier)
	b.accounts[name] = next
	return nil
}

func (b *books) setDeviceClass(name string, object *resourceapi.DeviceClass) {
	delete(b.offers, name)
	if object != nil && object.Spec.ExtendedResourceName != nil {
		b.offers[name] = *object.Spec.ExtendedResourceName
	}
}

func (b *books) setObject(e event) error {
	var next *record
	if !e.deleted {
		var err error
		if next, err = b.measures.record(e.at.resource, e.object); err != nil {
			return err
		}
	}
	changes, err := b.replace(e.at, next)
	if err != nil {
		return err
	}
	for name, change := range changes {
		b.judge(e, b.accounts[name], change)
	}
	return nil
}

// replace puts next in the place of what is recorded; nil is none. It returns
// by how much that changes what lives under each quota that covers it.
func (b *books) replace(at place, next *record) (map[string]corev1.ResourceList, error) {
	ns := b.namespace(at.namespace)
	changes := map[string]corev1.ResourceList{}
	for name, account := range b.accounts {
		if !account.covers(at.namespace) {
			continue
		}
		change, err := account.replace(at.namespace, ns.records[at], next)
		if err != nil {
			return nil, err
		}
		changes[name] = change
	}
	delete(ns.records, at)
	delete(b.aging, at)
	if next != nil {
		ns.records[at] = next
	}
	if next != nil && !next.due.IsZero() {
		b.aging[at] = next
	}
	b.forgetIfEmpty(at.namespace)
	return changes, nil
}
