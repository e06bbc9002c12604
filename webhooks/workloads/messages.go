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
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// The clauses of an answer are put together here, and package outcomes has the words. Nothing here names another namespace.

const ellipsis = " ..."

// unjudged is said of a workload about which nothing is known.
func unjudged(reason string) string {
	return webhookconfig.Printable(cut(outcomes.NotJudged.Sides(reason)))
}

// words are the words of one finding: one warning for each refusal, or one.
func (f *finding) words(asked *subject) []string {
	why := f.seeMore(asked)
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
		said = outcomes.QuotaNotJudged.Text(cmp.Or(f.unknown, explanation(ledger.NotCounted)))
		what, names = outcomes.NotKnown.Text(), f.uncounted()
	case f.unjudged != "":
		said = outcomes.QuotaNotJudged.Text(f.unjudged)
	case f.waits():
		said, what, names = outcomes.WaitsForRoom.Text(), outcomes.SurgeShort.Text(), f.tight()
	case f.isOnlySurge():
		said, names = outcomes.UsesSurge.Text(), f.surges()
	default:
		return nil
	}
	return []string{listed(f.head(said+what), names, why)}
}

// seeMore names the command that says more. Of a workload that isn't made, only its file is left to ask about.
func (f *finding) seeMore(asked *subject) string {
	switch {
	case !asked.absent:
		return outcomes.SeeWhy.Text(shortName(asked.workload.Kind, asked.workload.Name), asked.workload.Namespace)
	case f.isShort() && len(f.verdict.Refusals) == 0:
		return outcomes.AskForLess.Text(asked.workload.Namespace)
	default:
		return outcomes.SeeFit.Text(asked.workload.Namespace)
	}
}

// head begins the words about a quota.
func (f *finding) head(said string) string {
	if f.onlyWarns {
		return outcomes.OfLenientQuota.Text(f.quota, outcomes.Would(said))
	}
	return outcomes.OfQuota.Text(f.quota, said)
}

// explanation says why the rest of a quota isn't known.
func explanation(reason ledger.Reason) string {
	switch reason {
	case ledger.NotJoined:
		return outcomes.JudgingJoins.Text()
	case ledger.StaleNamespaces:
		return outcomes.JudgingLabels.Text()
	case ledger.StaleLimits:
		return outcomes.JudgingSpec.Text()
	case ledger.InvalidSpec:
		return outcomes.JudgingInvalid.Text()
	default:
		return outcomes.JudgingCount.Text()
	}
}

// refused predicts the API server's answer to the workload's controller, or the answer if the quota didn't only warn.
func (f *finding) refused(refusal fitting.Refusal) string {
	text := outcomes.WillBeRefused.Text(plural(refusal.Refused), "")
	if f.unsure {
		text = outcomes.Maybe(text)
	}
	text += refusal.Message
	if f.onlyWarns && !slices.Contains(f.certain, refusal) {
		return outcomes.Would(text) + outcomes.OnlyOfLenient.Text()
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
		said = outcomes.NoPodEver.Text()
	case asked.maximum:
		said = outcomes.MaximumNever.Text(f.room.Wanted) + f.partly()
	case f.run:
		said = outcomes.RunNever.Text()
	default:
		pods := "pods"
		if f.room.Wanted == 1 {
			pods = "pod"
		}
		said = outcomes.PodsNever.Text(f.room.Wanted, pods) + f.partly()
		if f.unsure && f.room.Fit >= f.room.Wanted { // All of them may be there.
			said = outcomes.Maybe(said)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.room.Never)) {
		amount, hard := f.room.Never[name], f.hard(name)
		names = append(names, fmt.Sprintf("%s %s of %s", name, amount.String(), hard))
	}
	return said, outcomes.MoreThanLimit.Text(), names
}

// partly says how many of the pods fit now. It says nothing if all are there, because the limit was lowered since.
func (f *finding) partly() string {
	if f.room.Fit >= f.room.Wanted {
		return ""
	}
	return outcomes.FitNow.Text(f.fit())
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

// short says how many pods fit, and the shortage of the rest.
func (f *finding) short(asked *subject) (said, what string, names []string) {
	for _, row := range f.verdict.Rows {
		if !row.Shortfall.IsZero() {
			names = append(names, fmt.Sprintf("%s %s", row.Resource, row.Shortfall.String()))
		}
	}
	switch {
	case asked.unknownNodes:
		said = outcomes.NoPodNow.Text()
	case asked.maximum:
		said = outcomes.MaximumNow.Text(f.room.Wanted, f.fit())
	case f.run:
		said = outcomes.RunNow.Text()
	case f.room.Fit < f.room.Wanted:
		said = outcomes.PodsNow.Text(f.fit(), f.room.Wanted)
	case f.room.Wanted == 0:
		said = outcomes.OthersNow.Text()
	case asked.workload.Kind == "Job":
		said = outcomes.LaterPodsNow.Text()
	default:
		said = f.stuck()
	}
	if f.unsure {
		said = outcomes.Maybe(said)
	}
	return said, outcomes.ShortOf.Text(), names
}

// stuck says why a rollout will be stuck.
func (f *finding) stuck() string {
	switch f.surge() {
	case fitting.SurgeTaken:
		return outcomes.StuckSurgeTaken.Text()
	case fitting.SurgeTooSmall:
		return outcomes.StuckSurgeTooSmall.Text()
	case fitting.SurgeGrows:
		return outcomes.StuckLarger.Text()
	default:
		return outcomes.RolloutStuck.Text()
	}
}

// surge is the reason why surge doesn't help with the shortage: the one to do something about first.
func (f *finding) surge() fitting.Surge {
	for _, why := range [...]fitting.Surge{fitting.SurgeNone, fitting.SurgeGrows, fitting.SurgeTooSmall} {
		if slices.ContainsFunc(f.verdict.Rows, func(row fitting.Row) bool { return !row.Shortfall.IsZero() && row.Surge == why }) {
			return why
		}
	}
	return fitting.SurgeTaken
}

// surges are the parts of the remaining surge that a rollout takes.
func (f *finding) surges() []string {
	var names []string
	for _, row := range f.verdict.Rows {
		if takes, left := row.TakesSurge(), row.SurgeLeft(); !takes.IsZero() {
			names = append(names, fmt.Sprintf("%s %s of %s", row.Resource, takes.String(), left.String()))
		}
	}
	return names
}

// takesSurge reports whether a rollout fits, and takes surge of a resource.
func takesSurge(row fitting.Row) bool {
	takes := row.TakesSurge()
	return !takes.IsZero()
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
		if missing := row.Waits(); !missing.IsZero() {
			names = append(names, fmt.Sprintf("%s %s", row.Resource, missing.String()))
		}
	}
	return names
}

// waits reports whether a rollout goes through with the rest of a resource, but without its whole surge.
func waits(row fitting.Row) bool {
	missing := row.Waits()
	return !missing.IsZero()
}

// listed names as many as there is room for, the first at least, and says how many others there are. The
// tail is left out if there is no room for it.
func listed(head string, names []string, tail string) string {
	for count := len(names); count > 0; count-- {
		text := head + strings.Join(names[:count], ", ")
		if rest := len(names) - count; rest > 0 {
			text += outcomes.AndMore.Text(rest)
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
