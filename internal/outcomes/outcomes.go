// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outcomes has the facts that enforcement tells people: how requests were answered, and how ledgers, counts
// and the webhook configuration fared. Metrics, events and the list of owners that wait are made of them.
//
// It also has the words: one table of all messages of the operator and the plugin, in messages_*.go. Each row has a cause and
// a next step, or the reason for none. Tests find a row without either, and text for people outside of the table.
//
// It doesn't know who hears a fact. Packages driver and serving have observers of their own, for facts of their own.
package outcomes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// Observer is told of outcomes. No grant rests on it: its methods return nothing, and don't block. They may be called
// concurrently.
type Observer interface {
	// Answered is told of each request, and how long its answer took.
	Answered(outcome Outcome, took time.Duration)
	// Decided is told of each decision on a new object.
	Decided(decision Decision)
	// Refused is told of each refusal by a quota.
	Refused(refusal Refusal)
	// Looked is told of each look whether a pod replaces another one, and of an error if that couldn't be found out.
	Looked(replaces bool, err error)
	// Lost is told of a ledger that nothing may be granted by any more.
	Lost(quota string, how Loss)
	// Drifted is told of a resource whose running total an audit found wrong and repaired.
	Drifted(quota, resource string)
	// Probed is told of each probe of the webhook configuration, and how long it took.
	Probed(probe Probe, took time.Duration)
	// Gone is told of a quota that was deleted.
	Gone(quota string)
}

// Outcome is how an admission request ended.
type Outcome string

const (
	// Allowed: nothing limits the request, or it was charged.
	Allowed Outcome = "allowed"
	// Denied: a quota refuses the request.
	Denied Outcome = "denied"
	// Unknown: a quota has not been counted yet, so the request was refused.
	Unknown Outcome = "unknown"
	// Undecodable: the request, or an object in it, can't be read.
	Undecodable Outcome = "undecodable"
	// Failed: the operator could not decide, so the request was refused.
	Failed Outcome = "failed"
	// Unchecked: the operator could not decide, and the quotas admit requests then.
	Unchecked Outcome = "unchecked"
)

// Decision is a decision on a request for a new object. There is none on a dry run. A request that is charged again
// may have several denials.
type Decision struct {
	At        time.Time
	Namespace string
	// Controller is the owner that controls the object; nil if there is none. It must not be changed.
	Controller *metav1.OwnerReference
	Decision   ledger.Decision
	// Requested is the amount that the quota that denies was asked for; nil if none does.
	Requested corev1.ResourceList
}

// Refusal is that a quota refused a request, or would have refused it in the mode Deny. There is none of a dry run.
type Refusal struct {
	Quota, Namespace string
	// Kind and Name are the object's, as in pods "web-1".
	Kind, Name string
	// Reason is one of the API's, such as QuotaExceeded.
	Reason string
	// Mode is that of a quota that would have refused the request; empty if it was refused.
	Mode quotav1.EnforcementMode
	// Resources are the resources that the request was refused for, sorted; none if it isn't about any.
	Resources []corev1.ResourceName
	// Message is the text for the request's caller.
	Message string
}

// Resource returns the first of the resources; empty if there is none.
func (r *Refusal) Resource() corev1.ResourceName {
	if len(r.Resources) == 0 {
		return ""
	}
	return r.Resources[0]
}

// Loss is the kind of change that damaged a ledger.
type Loss string

const (
	// Deleted: the ledger is missing.
	Deleted Loss = "deleted"
	// Edited: the ledger differs from the operator's last write.
	Edited Loss = "edited"
	// Restored: the ledger has entries from another history, because etcd was restored from a backup.
	Restored Loss = "restored"
)

// Probe is how a probe of the webhook configuration ended.
type Probe string

const (
	// ProbeProved: the API server has loaded the configuration that is in the cluster.
	ProbeProved Probe = "proved"
	// ProbeOutdated: the API server asks by an older one.
	ProbeOutdated Probe = "outdated"
	// ProbeFailed: the probe came back with an error, or didn't reach the operator.
	ProbeFailed Probe = "failed"
)
