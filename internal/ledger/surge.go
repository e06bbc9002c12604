// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// MaxSurgers bounds the workloads that a ledger names as having taken surge.
const MaxSurgers = 20

// Surger is a workload whose objects take surge. A Charge that names one may take some. A State names those that did since all
// that is charged was within the limits last, for people.
type Surger struct {
	UID types.UID
	// Kind, such as Deployment.
	Kind, Namespace, Name string
	// Since is when it first took some, by the clock of its writer.
	Since time.Time
}

// replaces reports whether the charge is of an object that is known to replace another one.
func (c Charge) replaces() bool { return c.Replaces.UID != "" }

// refuse reports whether a charge doesn't fit. Every charge is judged by the limits, with all that is charged, surge
// included. Only the charge of an object that replaces another one is judged again with surge.
func (d *Draft) refuse(charge Charge, limits Limits, amounts, added corev1.ResourceList) (Denied, bool) {
	names := exceeded(limits.Hard, added, d.chargedOf)
	if len(names) == 0 {
		return Denied{}, false
	}
	if charge.replaces() {
		if names = exceeded(limits.Most(), added, d.chargedOf); len(names) == 0 {
			d.surged = true
			return Denied{}, false
		}
	}
	refused := denied(limits.Name, amounts, limits.Hard, names, d.chargedOf)
	if refused.Replaces = charge.replaces(); refused.Replaces {
		refused.Surge = quota.Mask(limits.Surge, names)
	}
	refused.Provable = !refused.Replaces && slices.ContainsFunc(names, func(name corev1.ResourceName) bool {
		surge := limits.Surge[name]
		return surge.Sign() > 0
	})
	return refused, true
}

// noteSurge names the workload of a charge that was just reserved in surge.
func (d *Draft) noteSurge(surger Surger) {
	if _, known := d.state.Surgers[surger.UID]; !known && len(d.state.Surgers) < MaxSurgers {
		d.state.Surgers[surger.UID] = surger
		d.index.bytes += surger.Size()
	}
}

// Calm names a workload no more that surges no longer. If it has taken more surge since, it is named again with the next.
func (d *Draft) Calm(surger Surger) {
	if held, known := d.state.Surgers[surger.UID]; known && held.Since.Equal(surger.Since) {
		d.index.bytes -= held.Size()
		delete(d.state.Surgers, surger.UID)
		d.changed = true
	}
}

// endSurge names no workload any more once all that is charged is within the limits.
func (d *Draft) endSurge(hard corev1.ResourceList) {
	if len(d.state.Surgers) == 0 || d.isAbove(hard) {
		return
	}
	for _, surger := range d.state.Surgers {
		d.Calm(surger)
	}
}

// isAbove reports whether more of a resource is charged than a limit.
func (d *Draft) isAbove(hard corev1.ResourceList) bool {
	return slices.ContainsFunc(quota.ResourceNames(hard), func(name corev1.ResourceName) bool {
		charged := d.chargedOf(name)
		return charged.Cmp(hard[name]) > 0
	})
}
