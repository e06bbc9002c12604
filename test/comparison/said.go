// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// Outcome is what came of an applied workload.
type Outcome struct {
	// Itself is the refusal of the workload as such, and Made the refusal that keeps its controllers from all of its
	// objects; nil if there is none.
	Itself, Made *RefusalError
	// Pods are the pods that live, with all that they need; of a Job, those it began with.
	Pods int
	// Remarks are what quotas would have refused that refuse nothing.
	Remarks map[Short]bool
}

// Said is what one line of preflight claims about one quota.
type Said struct {
	Quota string
	// OnlyWarns: the quota refuses nothing.
	OnlyWarns bool
	// Fit of Wanted pods fit now; Wanted is -1 if it says nothing of that.
	Fit, Wanted int
	// AtLeast: more may fit, and AtMost: fewer.
	AtLeast, AtMost bool
	// Never: not even if all else were deleted.
	Never bool
	// Short are the resources that it is short of.
	Short []corev1.ResourceName
	// More: further resources are not named.
	More bool
	// Refused is the message by which objects will be refused independently of the room.
	Refused string
	// Fits: a rollout fits, and takes surge.
	Fits bool
	// Waits: a rollout will go through, but wait for room.
	Waits bool
	// Unjudged: it doesn't know.
	Unjudged bool
	// Maybe: it isn't sure.
	Maybe bool
}

var (
	quotaPattern  = regexp.MustCompile(`^quota (\S+?)(?: only warns)?: `)
	fitPattern    = regexp.MustCompile(`(at least |at most |perhaps )?(\d+) of (\d+) pods fit now`)
	neverPattern  = regexp.MustCompile(`(\d+) pods? (?:can|may) never fit(?: \((at least |at most |perhaps )?(\d+) fit now\))?`)
	failedPattern = regexp.MustCompile(`^failed quota: (\S+): `)
	namePattern   = regexp.MustCompile(`"[^"]*"`)
	shortPattern  = regexp.MustCompile(`(?:short of|more than the limit:) ([^;]*)`)
)

// ParseSaid reads a warning, or one line of a denial.
func ParseSaid(line string) Said {
	line, _, _ = strings.Cut(line, "; see kubectl crq ")
	said := Said{
		Wanted: -1, OnlyWarns: strings.Contains(line, "only warns"), Waits: strings.Contains(line, "wait for room"),
		Fits:     strings.Contains(line, "the rollout fits"),
		Unjudged: strings.Contains(line, " whether the workload's pods fit"),
		Maybe:    strings.Contains(line, "may ") || strings.Contains(line, "might ") || strings.Contains(line, "perhaps"),
	}
	if _, message, ok := strings.Cut(line, " be refused: "); ok {
		said.Refused = strings.TrimSuffix(strings.TrimSuffix(message, " (the quota only warns)"), " ...")
		return said
	}
	if found := quotaPattern.FindStringSubmatch(line); found != nil {
		said.Quota = found[1]
	}
	if found := fitPattern.FindStringSubmatch(line); found != nil {
		said.bound(found[1])
		said.Fit, said.Wanted = number(found[2]), number(found[3])
	}
	said.Never = strings.Contains(line, "never fit") || strings.Contains(line, "not one pod can ever fit")
	if found := neverPattern.FindStringSubmatch(line); found != nil {
		said.bound(found[2])
		said.Fit, said.Wanted = number(found[1]), number(found[1])
		if found[3] != "" {
			said.Fit = number(found[3])
		}
	}
	if found := shortPattern.FindStringSubmatch(line); found != nil {
		names, _, more := strings.Cut(found[1], " and ")
		said.More = more
		for named := range strings.SplitSeq(names, ", ") {
			name, _, _ := strings.Cut(named, " ")
			said.Short = append(said.Short, corev1.ResourceName(name))
		}
	}
	return said
}

func (s *Said) bound(by string) {
	s.AtLeast = by == "at least " || by == "perhaps "
	s.AtMost = by == "at most " || by == "perhaps "
}

func number(digits string) int {
	value, err := strconv.Atoi(digits)
	must(err)
	return value
}

// isShort reports whether it says that not all fits.
func (s *Said) isShort() bool { return s.Refused != "" || !s.Waits && !s.Unjudged && !s.Fits }

// names reports whether it names the resource as short.
func (s *Said) names(short Short) bool {
	return s.Quota == short.Quota && (s.More || slices.Contains(s.Short, short.Resource))
}

// Asked is what preflight was asked about.
type Asked struct {
	// Judged are the names of the quotas that it judges, and Denying those of all quotas that refuse something.
	Judged, Denying sets.Set[string]
	// Replaces: pods are replaced. Then what is short may be so for a while only.
	Replaces bool
	// Grows: older pods, or pods of an older template, may be made on the way. If they are refused, that may not matter.
	Grows bool
	// Same: as much of the same is asked for as before, of which nothing is said.
	Same bool
	// LimitRanges is how many there are. Of several, it is a matter of chance which one is asked first.
	LimitRanges int
}

// Disproves returns the claims of preflight's lines that didn't come true, in words; none if all did.
func (o Outcome) Disproves(lines []string, asked Asked) []string {
	var wrong claims
	least, came, atLeast, atMost, unjudged := -1, 0, false, false, false
	said := make([]Said, 0, len(lines))
	for _, line := range lines {
		one := ParseSaid(line)
		said = append(said, one)
		unjudged = unjudged || one.Unjudged || one.AtMost
		if one.OnlyWarns || !one.isShort() {
			continue
		}
		wrong.claimf(o.Made != nil || one.Maybe || one.AtLeast, "all came, but it said: %s", line)
		atLeast, atMost = atLeast || one.AtLeast, atMost || one.AtMost
		if one.Wanted >= 0 && (least < 0 || one.Fit < least) {
			least, came = one.Fit, min(o.Pods, one.Wanted) // pods that aren't wanted any more stay if the controller is stuck
		}
	}
	if least >= 0 && !asked.Replaces && !slices.ContainsFunc(said, func(one Said) bool { return one.Refused != "" }) {
		atMost = atMost || unjudged || !asked.Judged.IsSuperset(asked.Denying)
		wrong.claimf(came == least || atMost && came < least || atLeast && came > least, "%d pods came, but it said that %d fit", o.Pods, least)
	}
	if o.Made == nil || unjudged || asked.Same {
		return wrong
	}
	refusers := o.Made.quotas()
	if len(refusers) > 0 && !asked.Judged.HasAny(refusers...) || len(asked.Judged) == 0 {
		return wrong
	}
	wrong.claimf(slices.ContainsFunc(said, func(one Said) bool { return one.foretells(o.Made) }), "it didn't say this: %v", o.Made)
	return wrong
}

// quotas returns the names of the quotas that refuse the object.
func (r *RefusalError) quotas() []string {
	if found := failedPattern.FindStringSubmatch(r.Message); found != nil {
		return found[1:]
	}
	var names []string
	for _, short := range r.Shorts {
		names = append(names, short.Quota)
	}
	return names
}

// IsUnknown reports whether nobody said by which quota it was refused.
func (r *RefusalError) IsUnknown() bool { return len(r.Shorts) == 0 && r.Message == "" }

// foretells reports whether it says of the refusal that it will be. A workload of which it says something worse, that it
// can never come to be, may be refused for something else before.
func (s *Said) foretells(refusal *RefusalError) bool {
	switch {
	case s.OnlyWarns:
		return false
	case s.Refused != "":
		return refusal.Message == "" || sameReason(refusal.Message, s.Refused)
	case refusal.IsUnknown():
		return s.isShort()
	default:
		return slices.ContainsFunc(refusal.Shorts, func(short Short) bool { return s.names(short) || s.Never && s.Quota == short.Quota })
	}
}

// sameReason reports whether a refusal came as foretold. Of several LimitRanges, it is a matter of chance which one is asked first.
func sameReason(message, said string) bool {
	byQuota := failedPattern.MatchString(message)
	return strings.Contains(message, said) || !byQuota && !failedPattern.MatchString(said)
}

// claims are the ones that are wrong.
type claims []string

func (c *claims) claimf(isSo bool, format string, args ...any) {
	if !isSo {
		*c = append(*c, fmt.Sprintf(format, args...))
	}
}

// DisprovesFit returns the claims of fit's verdict that didn't come true.
func (o Outcome) DisprovesFit(verdict fitting.Verdict, asked Asked) []string {
	var wrong claims
	short := map[Short]bool{}
	remarked := map[Short]bool{}
	for _, row := range verdict.Rows {
		of := Short{row.Limit.Name, row.Resource}
		if row.Limit.Admits == "" {
			short[of] = !row.Shortfall.IsZero()
		}
		remarked[of] = row.WholeSurge.Cmp(row.Available) > 0
	}
	fits := verdict.Outcome() == fitting.Fits
	for _, refusal := range []*RefusalError{o.Itself, o.Made} {
		switch {
		case refusal == nil:
			continue
		case fits:
			wrong.claimf(false, "fit says that all fits: %v", refusal)
		case refusal.Message != "":
			wrong.claimf(slices.ContainsFunc(verdict.Refusals, func(said fitting.Refusal) bool {
				return said.Refused == refusal.Kind && sameReason(refusal.Message, said.Message)
			}), "fit doesn't say that it is refused: %v", refusal)
		default:
			for _, is := range refusal.Shorts {
				wrong.claimf(short[is], "fit doesn't name %v, by which it is refused", is)
			}
		}
	}
	wrong.claimf(fits || o.Itself != nil || o.Made != nil || asked.Grows, "fit says that not all fits, but all came")
	for remark := range o.Remarks { // While pods are replaced, more may be tried than is needed.
		wrong.claimf(remarked[remark] || asked.Replaces, "fit doesn't say that %v only warns of it", remark)
	}
	return wrong
}

// Why is what `kubectl crq why -o json` answers.
type Why struct {
	Result, Cause, Summary string
	Quotas                 []struct {
		Quota     string
		Resources []struct{ Resource, Short string }
	}
}

// The words of Why.
const (
	fits, doesNotFit         = "fits", "does not fit"
	notRefused, fitsNow      = "NotRefused", "FitsNow"
	quotaShort, quotaRefused = "QuotaShort", "QuotaRefused"
	otherRefused             = "OtherRefused"
)

// shorts returns what the quotas are short of.
func (w *Why) shorts() map[Short]bool {
	short := map[Short]bool{}
	for _, quota := range w.Quotas {
		for _, row := range quota.Resources {
			short[Short{strings.TrimPrefix(quota.Quota, "crq/"), corev1.ResourceName(row.Resource)}] = row.Short != "" && row.Short != "0"
		}
	}
	return short
}

// DisprovesWhy returns the claims of why's answer, which was asked after nothing more came, that aren't so.
func (o Outcome) DisprovesWhy(why *Why, asked Asked) []string {
	var wrong claims
	refusal := o.Made
	if refusal == nil {
		wrong.claimf(why.Result == fits && why.Cause == notRefused, "all came, but why says: %s", why.Summary)
		return wrong
	}
	// While pods were replaced, something was refused that is no longer in the way.
	if asked.Replaces && why.Cause == fitsNow && refusal.Message == "" {
		return wrong
	}
	wrong.claimf(why.Result == doesNotFit, "why says that it %s: %v", why.Result, refusal)
	switch {
	case refusal.IsUnknown():
	case refusal.Message == "":
		short := why.shorts()
		wrong.claimf(why.Cause == quotaShort, "why says %s: %v", why.Cause, refusal)
		for _, is := range refusal.Shorts {
			wrong.claimf(short[is], "why doesn't name %v, by which it is refused", is)
		}
	case failedPattern.MatchString(refusal.Message):
		quota := failedPattern.FindStringSubmatch(refusal.Message)[1]
		wrong.claimf(why.Cause == quotaRefused && strings.Contains(why.Summary, quota), "why says %s: %v", why.Summary, refusal)
	default:
		_, text, by := strings.Cut(why.Summary, "a LimitRange refuses it: ")
		text, _, _ = strings.Cut(text, ". Besides, ")
		plain := func(text string) string { return namePattern.ReplaceAllString(text, "") }
		isSame := asked.LimitRanges > 1 || strings.Contains(plain(refusal.Message), plain(strings.TrimSuffix(text, ".")))
		wrong.claimf(why.Cause == otherRefused && by && isSame, "why says %s: %v", why.Summary, refusal)
	}
	return wrong
}
