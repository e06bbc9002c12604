// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/selection"
)

// Fields of a SpecChange.
const (
	FieldHard            = "hard"
	FieldMode            = "mode"
	FieldTrial           = "trial"
	FieldSelector        = "selector"
	FieldWhenUnavailable = "whenUnavailable"
)

const (
	// MostChanges is how many changes a status has, and so how many of one edit are kept.
	MostChanges = 10
	// mostEdits is how many edits are kept of one quota.
	mostEdits = 20
	// mostStored is how many stored specs are known of one quota.
	mostStored = 16
	// longestUser and longestValue bound what is kept of a user and of a value.
	longestUser, longestValue = 256, 128
)

// Edit is what somebody asked for. It may not have been stored: another webhook may have refused it, or another edit
// came first.
type Edit struct {
	// Quota is the name of the quota, and UID its UID.
	Quota string
	UID   types.UID
	At    time.Time
	By    string
	// Generation is that of the spec that it makes, and Before and After are digests of the specs.
	Generation    int64
	Before, After string
	// Changes are what it changes; they may be none. Their generation, time and user are missing.
	Changes []quotav1.SpecChange
}

// NewEdit compares two versions of a quota, and reports whether their specs differ.
func NewEdit(at time.Time, by string, previous, current *quotav1.ClusterResourceQuota) (Edit, bool) {
	edit := Edit{
		Quota: current.Name, UID: current.UID, At: at, By: shortened(by, longestUser),
		Generation: max(current.Generation, previous.Generation+1), Before: SpecDigest(previous.Spec), After: SpecDigest(current.Spec),
	}
	if edit.Before == edit.After {
		return Edit{}, false
	}
	edit.Changes = changesOf(previous.Spec, current.Spec)
	edit.Changes = edit.Changes[:min(len(edit.Changes), MostChanges)]
	return edit, true
}

// SpecDigest identifies a spec.
func SpecDigest(spec quotav1.ClusterResourceQuotaSpec) string {
	text, err := json.Marshal(spec)
	if err != nil {
		return "" // a spec that came as JSON can be written as JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

func changesOf(before, after quotav1.ClusterResourceQuotaSpec) []quotav1.SpecChange {
	var changes []quotav1.SpecChange
	note := func(field string, name corev1.ResourceName, from, to string) {
		if from != to {
			changes = append(changes, quotav1.SpecChange{
				Field: field, Resource: name, From: shortened(from, longestValue), To: shortened(to, longestValue),
			})
		}
	}
	limits(FieldHard, before.Quota.Hard, after.Quota.Hard, note)
	modes(before, after, note)
	note(FieldSelector, "", selectorOf(before), selectorOf(after))
	limits(FieldTrial, before.Trial.Hard, after.Trial.Hard, note)
	note(FieldWhenUnavailable, "", string(before.Enforcement.WhenUnavailable), string(after.Enforcement.WhenUnavailable))
	return changes
}

func limits(field string, before, after corev1.ResourceList, note func(string, corev1.ResourceName, string, string)) {
	for _, name := range slices.Sorted(maps.Keys(quota.Add(before, after))) {
		from, limited := before[name]
		to, stays := after[name]
		if limited && stays && from.Cmp(to) == 0 {
			continue
		}
		note(field, name, text(from.String(), limited), text(to.String(), stays))
	}
}

func text(value string, ok bool) string {
	if !ok {
		return ""
	}
	return value
}

// modes notes a change of the mode for all resources, and of those that have a mode of their own.
func modes(before, after quotav1.ClusterResourceQuotaSpec, note func(string, corev1.ResourceName, string, string)) {
	note(FieldMode, "", string(cmp.Or(before.Enforcement.Mode, quotav1.EnforcementDeny)),
		string(cmp.Or(after.Enforcement.Mode, quotav1.EnforcementDeny)))
	overridden := map[corev1.ResourceName]bool{}
	for _, override := range slices.Concat(before.Enforcement.Overrides, after.Enforcement.Overrides) {
		overridden[override.Resource] = true
	}
	for _, name := range slices.Sorted(maps.Keys(overridden)) {
		note(FieldMode, name, string(definition.ModeOf(before, name)), string(definition.ModeOf(after, name)))
	}
}

func selectorOf(spec quotav1.ClusterResourceQuotaSpec) string {
	compiled, err := selection.Compile(spec.Selector)
	if err == nil {
		return compiled.String()
	}
	written, err := json.Marshal(spec.Selector)
	if err != nil {
		return ""
	}
	return string(written)
}

func shortened(value string, most int) string {
	const ellipsis = "..."
	if len(value) <= most {
		return value
	}
	return strings.ToValidUTF8(value[:most-len(ellipsis)], "") + ellipsis
}

// newestEdits sorts edits, those of the newest generation first, drops what is twice, and bounds them. Of one generation,
// the last edit comes first: once it was stored, there was no other one, and those before were refused.
func newestEdits(edits []Edit) []Edit {
	slices.SortFunc(edits, func(a, b Edit) int {
		return cmp.Or(cmp.Compare(b.Generation, a.Generation), b.At.Compare(a.At), cmp.Compare(a.After, b.After),
			cmp.Compare(a.Before, b.Before), cmp.Compare(a.By, b.By))
	})
	edits = slices.CompactFunc(edits, func(a, b Edit) bool {
		return a.Generation == b.Generation && a.After == b.After && a.Before == b.Before && a.By == b.By && a.At.Equal(b.At)
	})
	return slices.Clip(edits[:min(len(edits), mostEdits)])
}

// stored are specs of one quota that are known to have been stored: generation -> digest.
type stored map[int64]string

func (s stored) note(generation int64, digest string) {
	s[generation] = digest
	for len(s) > mostStored {
		delete(s, slices.Min(slices.Collect(maps.Keys(s))))
	}
}

// confirmed returns the changes of the edits that were stored, those of the newest generation first. An edit that made a
// spec that was stored is confirmed, and so is the spec that it found.
func (s stored) confirmed(edits []Edit) []quotav1.SpecChange {
	known := maps.Clone(s)
	var changes []quotav1.SpecChange
	done := int64(-1)
	for i := range edits { // in the order of newestEdits
		edit := &edits[i]
		if digest, ok := known[edit.Generation]; !ok || digest != edit.After || edit.Generation == done {
			continue
		}
		done = edit.Generation
		if _, ok := known[edit.Generation-1]; !ok {
			known[edit.Generation-1] = edit.Before
		}
		changes = append(changes, edit.changes()...)
	}
	return changes
}

// changes returns what an edit changes, as a status shows it.
func (e *Edit) changes() []quotav1.SpecChange {
	changes := slices.Clone(e.Changes)
	for i := range changes {
		changes[i].At.Time = e.At.Truncate(time.Second)
		changes[i].By, changes[i].Generation = e.By, e.Generation
	}
	return changes
}

// AddChanges adds changes to those that a status has, and returns the newest ones.
func AddChanges(shown, confirmed []quotav1.SpecChange) []quotav1.SpecChange {
	all := slices.Clone(shown)
	for _, change := range confirmed {
		same := func(other quotav1.SpecChange) bool {
			return other.Generation == change.Generation && other.Field == change.Field && other.Resource == change.Resource
		}
		if !slices.ContainsFunc(all, same) {
			all = append(all, change)
		}
	}
	slices.SortStableFunc(all, func(a, b quotav1.SpecChange) int { return cmp.Compare(b.Generation, a.Generation) })
	return all[:min(len(all), MostChanges)]
}
