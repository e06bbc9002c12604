// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Cause is why what lives under a quota, or what the quota allows, changed.
type Cause string

// Causes of changes.
const (
	// Object: an object was created, changed or deleted.
	Object Cause = "object"
	// Joined and Left: a namespace is selected now, or not any more.
	Joined Cause = "joined"
	Left   Cause = "left"
	// Terms: the quota was created, or its spec changed.
	Terms Cause = "terms"
	// Gone: the quota was deleted.
	Gone Cause = "gone"
)

// Change is one commit that changed what lives under a quota, or what it allows.
type Change struct {
	Cause Cause
	// Revision of etcd, which is also the resourceVersion of what was written.
	Revision int64
	// Key in etcd of the object, the namespace or the quota.
	Key string
	// Namespace of the object, or that which joined or left.
	Namespace string
	// Quota is the UID of the quota.
	Quota types.UID
	// By is by how much what lives changed.
	By corev1.ResourceList
	// Lives is the sum after the commit, and Hard what the quota limited then.
	Lives, Hard corev1.ResourceList
	// Enforced is the part of Hard above which requests are refused.
	Enforced corev1.ResourceList
}

// Recording makes the judge keep every change, for History. What is kept then grows
// without bound.
func Recording() Option {
	return func(j *Judge) { j.books.history = map[string][]Change{} }
}

// record keeps a change of what lives under an account.
func (b *books) record(cause Cause, e event, account *account, by corev1.ResourceList) {
	if b.history == nil {
		return
	}
	name := account.quota.Name
	b.history[name] = append(b.history[name], Change{
		Cause: cause, Revision: e.revision, Key: e.key, Namespace: e.at.namespace, Quota: account.quota.UID,
		By: quota.RemoveZeros(by), Lives: account.lives, Hard: account.quota.Spec.Quota.Hard,
		Enforced: account.enforced,
	})
}

// recordMove keeps that a namespace joined or left, if it did.
func (b *books) recordMove(e event, account *account, before corev1.ResourceList, had bool) {
	e.at.namespace = e.at.name
	switch has := account.covers(e.at.name); {
	case has && !had:
		b.record(Joined, e, account, account.slices[e.at.name])
	case had && !has:
		b.record(Left, e, account, quota.Subtract(corev1.ResourceList{}, before))
	}
}
