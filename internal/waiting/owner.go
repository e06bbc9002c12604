// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// Kind is a kind of workload whose controller creates objects, and tries again if one is refused.
type Kind string

// The kinds that can be woken.
const (
	ReplicaSet            Kind = "ReplicaSet"
	ReplicationController Kind = "ReplicationController"
	StatefulSet           Kind = "StatefulSet"
	DaemonSet             Kind = "DaemonSet"
	Job                   Kind = "Job"
	Deployment            Kind = "Deployment"
	CronJob               Kind = "CronJob"
	// Pod is one whose claims are made for it, by a controller of volumes or of devices.
	Pod Kind = "Pod"
)

const (
	// longestBackoff is how long an owner without news is remembered: controllers try again after 1000 seconds at the
	// latest.
	longestBackoff = 20 * time.Minute
	// longestSilence is the same for kinds whose controller doesn't try again by itself: that of
	// Deployments gives up after 15 attempts, that of CronJobs waits for the next time of the schedule.
	longestSilence = 24 * time.Hour
)

// Resource returns the API resource of this kind; empty for a kind that can't be woken.
func (k Kind) Resource() schema.GroupVersionResource {
	switch k {
	case ReplicaSet:
		return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	case ReplicationController:
		return schema.GroupVersionResource{Version: "v1", Resource: "replicationcontrollers"}
	case StatefulSet:
		return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	case DaemonSet:
		return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	case Job:
		return schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	case Deployment:
		return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	case CronJob:
		return schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
	case Pod:
		return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	default:
		return schema.GroupVersionResource{}
	}
}

// patience is how long an owner of this kind without news is remembered.
func (k Kind) patience() time.Duration {
	if k == Deployment || k == CronJob {
		return longestSilence
	}
	return longestBackoff
}

// Owner is a workload that controls objects which a quota limits.
type Owner struct {
	Kind      Kind
	Namespace string
	Name      string
	UID       types.UID
}

// Key identifies an owner.
type Key struct {
	Namespace string
	UID       types.UID
}

// Key returns the owner's identity.
func (o Owner) Key() Key { return Key{Namespace: o.Namespace, UID: o.UID} }

// ownerOf returns the owner that an object of the namespace names as its controller; false if there is none, or none
// that can be woken. The creator of an object names its owner, so names that no API server would store are rejected.
func ownerOf(namespace string, controller *metav1.OwnerReference) (Owner, bool) {
	if controller == nil {
		return Owner{}, false
	}
	owner := Owner{Kind: Kind(controller.Kind), Namespace: namespace, Name: controller.Name, UID: controller.UID}
	group, _, versioned := strings.Cut(controller.APIVersion, "/")
	if !versioned {
		group = ""
	}
	return owner, owner.isValid() && owner.Kind.Resource().Group == group
}

// Waits reports whether an object of the namespace names an owner that can be woken as its controller.
func Waits(namespace string, controller *metav1.OwnerReference) bool {
	_, ok := ownerOf(namespace, controller)
	return ok
}

const (
	longestNamespace, longestName, longestUID = 63, 253, 64
	// longestQuota bounds the name of a quota.
	longestQuota = 253
)

func (o Owner) isValid() bool {
	return o.Kind.Resource().Resource != "" && isName(o.Namespace, longestNamespace) && isName(o.Name, longestName) &&
		isName(string(o.UID), longestUID)
}

// isName reports whether a text has the characters of a name or of a UID only, and isn't too long.
func isName(text string, longest int) bool {
	if text == "" || len(text) > longest {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.' && i > 0:
		default:
			return false
		}
	}
	return true
}

// Refusal is that a quota refused an object of an owner.
type Refusal struct {
	Owner
	// Quota is the name of the quota.
	Quota string
	// Requested is the amount that the object would have been charged.
	Requested corev1.ResourceList
	// Short is the part of it that was missing.
	Short corev1.ResourceList
	// Replaces: the object would have replaced another one, so that it may take surge.
	Replaces bool
}

// Decided takes the news of a new object, if its owner can be woken.
func (l *List) Decided(decision outcomes.Decision) {
	owner, ok := ownerOf(decision.Namespace, decision.Controller)
	if !ok {
		return
	}
	switch decided := decision.Decision.(type) {
	case ledger.Granted:
		l.Granted(decision.At, owner.Key())
	case ledger.Denied:
		l.Refused(decision.At, Refusal{
			Owner: owner, Quota: decided.Quota, Requested: decision.Requested, Short: shortOf(decided), Replaces: decided.Replaces,
		})
	}
}

// shortOf returns the amounts that were missing for a charge to fit.
func shortOf(denied ledger.Denied) corev1.ResourceList {
	return quota.Subtract(quota.Add(denied.Requested, denied.Used), quota.Add(denied.Limited, denied.Surge))
}

// Record is the newest news of an owner.
type Record struct {
	Refusal
	// Since is when an object of it was refused first, and Last when one was refused last; zero if
	// this replica refused none.
	Since, Last time.Time
	// Refusals is how many were.
	Refusals int
	// Ended is when an object of it was granted last, or when it was found to lack none; zero for
	// never.
	Ended time.Time
}

// Waits reports whether the newest news is a refusal.
func (r *Record) Waits() bool { return r.Last.After(r.Ended) }

// isAsNewAs reports whether two records of an owner have the same news.
func (r *Record) isAsNewAs(other *Record) bool {
	return r.Quota == other.Quota && r.Since.Equal(other.Since) && r.Last.Equal(other.Last) && r.Ended.Equal(other.Ended) &&
		r.Refusals == other.Refusals
}

// isOver reports whether there was no news of the owner for longer than its controller's longest pause.
func (r *Record) isOver(now time.Time) bool { return now.Sub(r.Last) > r.Kind.patience() }

const (
	// recordBytes is about the size of a record without its names and lists, in memory and as JSON.
	recordBytes = 160
	amountBytes = 16
)

func (r *Record) bytes() int {
	size := recordBytes + len(r.Namespace) + len(r.Name) + len(r.UID) + len(r.Quota)
	for _, list := range []corev1.ResourceList{r.Requested, r.Short} {
		for name := range list {
			size += amountBytes + len(name)
		}
	}
	return size
}
