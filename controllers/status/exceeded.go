// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"hash/fnv"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// joinedFor is how long the same namespaces must have been selected before a rise above hard is taken for requests that
// were admitted: the objects of a namespace may be counted a moment after it joins.
const joinedFor = 10 * time.Second

// remembered is a quota as its last status had it in which everything was counted.
type remembered struct {
	uid types.UID
	// peaks are the peaks in statuses, and the peaks that this leader has seen, and surged those of surge.
	peaks, surged peaks

	generation int64
	// selected identifies the namespaces, and since is when they were first so; zero if that was before this leader.
	selected uint64
	since    time.Time
	// within are the resources of which no more was used than hard.
	within map[corev1.ResourceName]bool
	// exceeded is the condition; nil if there was none yet.
	exceeded *metav1.Condition
}

// memory remembers quotas. A leader begins with the statuses that the one before has written. The zero memory knows
// none.
type memory struct {
	mu sync.Mutex // guards quotas
	// name -> quota
	quotas map[string]remembered
}

// of returns the memory of a quota. At first, it is that of its status.
func (m *memory) of(quota *quotav1.ClusterResourceQuota) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lockedOf(quota)
}

func (m *memory) lockedOf(quota *quotav1.ClusterResourceQuota) remembered {
	if known, found := m.quotas[quota.Name]; found && known.uid == quota.UID {
		return known
	}
	return m.lockedNote(quota, &quota.Status, time.Time{})
}

// saw notes the used and reserved amounts without surge, the surge, and the peaks that the status has.
func (m *memory) saw(quota *quotav1.ClusterResourceQuota, held, surge corev1.ResourceList, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.lockedOf(quota)
	known.peaks = known.peaks.next(now, quota.Status.Peaks, quota.Spec.Quota.Hard, held)
	known.surged = known.surged.next(now, surgesIn(quota.Status.Peaks), quota.Spec.Surge.Hard, surge)
	m.quotas[quota.Name] = known
}

// wrote notes the status that was written.
func (m *memory) wrote(quota *quotav1.ClusterResourceQuota, written *quotav1.ClusterResourceQuotaStatus, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lockedNote(quota, written, now)
}

// lockedNote takes over a status. From one in which not everything was counted it takes the condition alone.
func (m *memory) lockedNote(
	quota *quotav1.ClusterResourceQuota, status *quotav1.ClusterResourceQuotaStatus, now time.Time,
) remembered {
	known := m.quotas[quota.Name]
	if known.uid != quota.UID {
		known = remembered{uid: quota.UID}
	}
	known.exceeded = meta.FindStatusCondition(status.Conditions, quotav1.ConditionExceeded).DeepCopy()
	if isComplete(status) {
		if selected := selectedIn(status); known.within == nil || known.selected != selected {
			known.selected, known.since = selected, now
		}
		known.generation, known.within = status.ObservedGeneration, map[corev1.ResourceName]bool{}
		for name, used := range status.Total.Used {
			known.within[name] = used.Cmp(status.Total.Hard[name]) <= 0
		}
	}
	if m.quotas == nil {
		m.quotas = map[string]remembered{}
	}
	m.quotas[quota.Name] = known
	return known
}

func (m *memory) forget(quota string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.quotas, quota)
}

// isComplete reports whether everything was counted that can be. While the ledger is in trouble, the condition
// Ready doesn't say so.
func isComplete(status *quotav1.ClusterResourceQuotaStatus) bool {
	ready := meta.FindStatusCondition(status.Conditions, quotav1.ConditionReady)
	switch {
	case ready == nil:
		return false
	case ready.Reason == quotav1.ReasonLedgerUnavailable, ready.Reason == quotav1.ReasonNotSettled:
		return len(status.Total.Used) == len(status.Total.Hard)
	default:
		return ready.Status == metav1.ConditionTrue
	}
}

func selectedIn(status *quotav1.ClusterResourceQuotaStatus) uint64 {
	return digestOf(func(yield func(string) bool) {
		for i := range status.Namespaces {
			if !yield(status.Namespaces[i].Namespace) {
				return
			}
		}
	})
}

// digestOf identifies a set of names that are given in order.
func digestOf(sorted iter.Seq[string]) uint64 {
	sum := fnv.New64a()
	for name := range sorted {
		_, _ = sum.Write([]byte(name + "\n")) // a hash never fails
	}
	return sum.Sum64()
}

// found reads of which resources a message says that more is used than hard because requests were admitted while they
// couldn't be decided.
var found = regexp.MustCompile(outcomes.AboveHardUnchecked.Text(`(\S+)`, `\S+`, `(\S+)`, `\S+`))

// saidUnavailable returns the resources of which the condition says so, with the limit that each had then: once the limit
// is another one, that explains it no longer. A message that was cut doesn't say it of the last ones.
func saidUnavailable(exceeded *metav1.Condition) map[corev1.ResourceName]string {
	limits := map[corev1.ResourceName]string{}
	if exceeded != nil && exceeded.Reason == quotav1.ReasonAdmittedWhileUnavailable {
		for _, match := range found.FindAllStringSubmatch(exceeded.Message, -1) {
			limits[corev1.ResourceName(match[1])] = match[2]
		}
	}
	return limits
}

// rose reports whether more of a resource has come to be used than hard because requests were admitted while they
// couldn't be decided. It is so if the quota admits then, and nothing else explains it: neither another spec, nor
// namespaces that joined or are never limited, nor an entry of the webhook configuration that is missing.
func (f facts) rose(name corev1.ResourceName) bool {
	before := f.remembered
	return f.admits && before.within[name] && before.generation == f.generation && len(f.protected) == 0 &&
		before.selected == digestOf(slices.Values(slices.Sorted(maps.Keys(f.slices)))) &&
		f.now.Sub(before.since) >= joinedFor &&
		f.verdict.Enforcement != webhookconfig.Uncovered && f.verdict.Enforcement != webhookconfig.Edited
}

// excess is of which resources more is used than hard, in words.
type excess struct {
	// unavailable are the resources whose requests were admitted while they couldn't be decided, and others the rest.
	unavailable, others []string
}

func (f facts) excess(before map[corev1.ResourceName]string) excess {
	var found excess
	for _, name := range slices.Sorted(maps.Keys(f.total.Used)) {
		used, hard := f.total.Used[name], f.total.Hard[name]
		if used.Cmp(hard) <= 0 {
			continue
		}
		if f.enforcement.Refuses() && (before[name] == hard.String() || f.rose(name)) {
			more := used.DeepCopy()
			more.Sub(hard)
			unchecked := outcomes.AboveHardUnchecked.Text(name, used.String(), hard.String(), more.String())
			found.unavailable = append(found.unavailable, unchecked)
		} else {
			found.others = append(found.others, outcomes.AboveHard.Text(name, used.String(), hard.String()))
		}
	}
	return found
}

// exceeded lists the resources of which more is used than is allowed. Reserved
// amounts are not used yet: if a limit is lowered below used and reserved
// amounts, the condition becomes True once enough of it is used.
func (f facts) exceeded() metav1.Condition {
	before := saidUnavailable(f.remembered.exceeded)
	found := f.excess(before)
	isTrue := func(reason string, parts []string, message *outcomes.Message, more ...any) metav1.Condition {
		args := append([]any{strings.Join(parts, ", ")}, more...)
		return decided(metav1.ConditionTrue, reason, message.Text(args...))
	}
	switch {
	case len(found.unavailable) > 0:
		return isTrue(quotav1.ReasonAdmittedWhileUnavailable, append(found.unavailable, found.others...), outcomes.RoseUnchecked)
	case len(before) > 0 && f.isCounting() && f.invalid == nil:
		return *f.remembered.exceeded // so that another leader knows, too
	case len(found.others) == 0:
		return f.notExceeded()
	case f.surge.active:
		return isTrue(quotav1.ReasonSurging, found.others, outcomes.SurgingAbove, f.surge.workloads())
	case !f.enforcement.Refuses():
		return isTrue(quotav1.ReasonAdmittedAboveHard, found.others, outcomes.AdmittedAbove, f.enforcement.Mode)
	default:
		return isTrue(quotav1.ReasonUsedAboveHard, found.others, outcomes.RefusedAbove)
	}
}

func (f facts) isCounting() bool { return f.countedGeneration != f.generation || len(f.uncounted) > 0 }

func (f facts) notExceeded() metav1.Condition {
	switch {
	case f.invalid != nil:
		return decided(metav1.ConditionUnknown, quotav1.ReasonInvalidSpec,
			outcomes.InvalidCount.Text())
	case f.isCounting():
		return decided(metav1.ConditionUnknown, quotav1.ReasonCounting,
			outcomes.CountPending.Text())
	default:
		return decided(metav1.ConditionFalse, quotav1.ReasonWithinLimits,
			outcomes.WithinHard.Text())
	}
}
