// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// All text that a person reads in an answer is built here. Nothing here names another namespace.

const ellipsis = " ..."

// unjudged is said of a workload about which nothing is known.
func unjudged(reason string) string {
	return webhookconfig.Printable(cut("not judged whether its pods fit into the quotas: "+reason, ""))
}

// words are the words of one finding: one warning for each refusal, or one.
func (f *finding) words(asked *subject) []string {
	why := "; see kubectl crq why " + shortName(asked.workload.Kind, asked.workload.Name) + " -n " + asked.workload.Namespace
	if refusals := f.verdict.Refusals; len(refusals) > 0 {
		words := make([]string, 0, len(refusals))
		for _, refusal := range refusals {
			words = append(words, webhookconfig.Printable(cut(f.refused(refusal), why)))
		}
		return words
	}
	var said, what string
	var names []string
	switch {
	case f.isShort() && len(f.room.Never) > 0:
		said, what, names = f.never(asked)
	case f.isShort():
		said, what, names = f.short(asked)
	case len(f.uncounted()) > 0:
		said, what, names = notJudged, cmp.Or(f.unknown, explanation(ledger.NotCounted))+": ", f.uncounted()
	case f.unjudged != "":
		said, what = notJudged, f.unjudged
	case f.waits():
		said, what, names = "the rollout will wait for room, ", "short for its whole surge of ", f.tight()
	default:
		return nil
	}
	return []string{listed(f.head(said+what), names, why)}
}

// head begins the words about a quota.
func (f *finding) head(said string) string {
	if f.onlyWarns {
		return "quota " + f.quota + " only warns: " + would(said)
	}
	return "quota " + f.quota + ": " + said
}

// onlyWarns is added to a finding that a quota doesn't refuse.
const onlyWarns = " (the quota only warns)"

// would turns a statement about the future into one about a refusal by the quota.
func would(said string) string {
	return strings.NewReplacer("will be", "would be", "may be", "might be", "will wait", "would wait").Replace(said)
}

const notJudged = "not judged whether its pods fit: "

// explanation says why the rest of a quota isn't known.
func explanation(reason ledger.Reason) string {
	switch reason {
	case ledger.NotJoined:
		return "the objects in a namespace that joined this quota are still being counted"
	case ledger.StaleNamespaces:
		return "the labels of namespaces have just changed"
	case ledger.StaleLimits:
		return "its spec has just changed"
	case ledger.InvalidSpec:
		return "this version of the operator can't enforce its spec"
	default:
		return "usage is still being counted"
	}
}

// refused predicts the API server's answer to the workload's controller, or the answer if the quota didn't only warn.
func (f *finding) refused(refusal fitting.Refusal) string {
	said := " will be refused: "
	if f.unsure {
		said = maybe(said)
	}
	text := "its " + plural(refusal.Refused) + said + refusal.Message
	if f.onlyWarns && !slices.Contains(f.certain, refusal) {
		return would(text) + onlyWarns
	}
	return text
}

func plural(kind string) string {
	if kind == "Pod" {
		return "pods"
	}
	return kind + "s"
}

// never says that something is more than the limit.
func (f *finding) never(asked *subject) (said, what string, names []string) {
	switch {
	case asked.unknownNodes:
		said = "not one pod can ever fit"
	case asked.maximum:
		said = fmt.Sprintf("maxReplicas %d can never fit", f.room.Wanted) + f.partly()
	case f.run:
		said = "a run can never fit"
	default:
		said = fmt.Sprintf("%d pods can never fit", f.room.Wanted) + f.partly()
		if f.unsure && f.room.Fit >= f.room.Wanted { // All of them may be there.
			said = maybe(said)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.room.Never)) {
		amount, hard := f.room.Never[name], f.hard(name)
		names = append(names, fmt.Sprintf("%s %s of %s", name, amount.String(), hard))
	}
	return said, ", because that is more than the limit: ", names
}

// partly says how many of the pods fit now. It says nothing if all are there, because the limit was lowered since.
func (f *finding) partly() string {
	if f.room.Fit >= f.room.Wanted {
		return ""
	}
	return " (" + f.fit() + " fit now)"
}

// fit says how many pods fit now. More may fit if not all is known that is there. If they may cost more than is charged, fewer may.
func (f *finding) fit() string {
	number := strconv.FormatInt(f.room.Fit, 10)
	switch {
	case f.atLeast && f.unjudged != "":
		return "perhaps " + number
	case f.atLeast:
		return "at least " + number
	case f.unjudged != "":
		return "at most " + number
	default:
		return number
	}
}

func (f *finding) hard(name corev1.ResourceName) string {
	limit := f.verdict.Rows[0].Limit.Spec.Hard[name]
	return limit.String()
}

// maybe turns a certain statement into an uncertain one.
func maybe(said string) string {
	return strings.NewReplacer(
		"not one pod fits", "perhaps not one pod fits", "doesn't fit", "may not fit", "will be stuck", "may be stuck",
		"will be refused", "may be refused", "can never fit", "may never fit",
	).Replace(said)
}

// short says how many pods fit, and the shortage of the rest.
func (f *finding) short(asked *subject) (said, what string, names []string) {
	for _, row := range f.verdict.Rows {
		if !row.Shortfall.IsZero() {
			names = append(names, fmt.Sprintf("%s %s", row.Resource, row.Shortfall.String()))
		}
	}
	switch {
	case asked.unknownNodes:
		said = "not one pod fits now, "
	case asked.maximum:
		said = fmt.Sprintf("maxReplicas %d: %s fit now, ", f.room.Wanted, f.fit())
	case f.run:
		said = "a run doesn't fit now, "
	case f.room.Fit < f.room.Wanted:
		said = fmt.Sprintf("%s of %d pods fit now, ", f.fit(), f.room.Wanted)
	case f.room.Wanted == 0:
		said = "what is made besides pods doesn't fit now, "
	case asked.workload.Kind == "Job":
		said = "its later pods don't fit, "
	default:
		said = "the rollout will be stuck, "
	}
	if f.unsure {
		said = maybe(said)
	}
	return said, "short of ", names
}

// uncounted are the resources whose rest is unknown.
func (f *finding) uncounted() []string {
	var names []string
	for _, row := range f.verdict.Rows {
		if !row.Counted {
			names = append(names, string(row.Resource))
		}
	}
	return names
}

// tight are the resources that a rollout is short of for its whole surge.
func (f *finding) tight() []string {
	var names []string
	for _, row := range f.verdict.Rows {
		if waits(row) {
			missing := row.WholeSurge.DeepCopy()
			missing.Sub(row.Available)
			names = append(names, fmt.Sprintf("%s %s", row.Resource, missing.String()))
		}
	}
	return names
}

// waits reports whether a rollout goes through with the rest of a resource, but without its whole surge.
func waits(row fitting.Row) bool {
	return row.Counted && row.Shortfall.IsZero() && row.WholeSurge.Cmp(row.Requested) > 0 && row.WholeSurge.Cmp(row.Available) > 0
}

// listed names as many as there is room for, the first at least, and says how many others there are. The
// tail is left out if there is no room for it.
func listed(head string, names []string, tail string) string {
	for count := len(names); count > 0; count-- {
		text := head + strings.Join(names[:count], ", ")
		if rest := len(names) - count; rest > 0 {
			text += fmt.Sprintf(" and %d more", rest)
		}
		if len(text)+len(tail) <= webhookconfig.MaxWarning {
			return webhookconfig.Printable(text + tail)
		}
		if count == 1 {
			return webhookconfig.Printable(cut(text, tail))
		}
	}
	return webhookconfig.Printable(cut(head, tail))
}

// cut shortens a text to the length that the API server passes on. The tail is
// left out first.
func cut(text, tail string) string {
	switch {
	case len(text)+len(tail) <= webhookconfig.MaxWarning:
		return text + tail
	case len(text) <= webhookconfig.MaxWarning:
		return text
	default:
		return strings.ToValidUTF8(text[:webhookconfig.MaxWarning-len(ellipsis)], "") + ellipsis
	}
}
