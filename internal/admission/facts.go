// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// Facts are the knowledge of a request. The caller sets the first three before each Next, and reports a Look by Looked and
// a Charge by Charged. After other Actions it sets Last, and after a Check also Unwritten.
type Facts struct {
	Now time.Time
	// Over: the request's time is over, or contact to the API server is lost.
	Over bool
	// Lenient: the request is admitted if it can't be decided, and as far as this replica knows, no quota that covers it
	// refuses anything.
	Lenient bool

	// Last is the last Action.
	Last Action
	// Began is when the first look began, and Deadline ends the request if it is still Lenient then; zero for none.
	Began, Deadline time.Time
	// Covering are the quotas that the last Look found, and ChargedTo those that the last Charge was of.
	Covering, ChargedTo []Quota
	// Outcome is that of the last charge, or of a look that failed.
	Outcome Outcome
	// Again: the last charge wasn't the first since the patience began.
	Again bool
	// Patience is when the request stops waiting for an outcome that needs time.
	Patience time.Time
	// Waivers are those of the last charge.
	Waivers Waivers
	// Proved: it was looked up whether the object replaces another one, and Replaces is the answer.
	Proved, Replaces bool
	// Unwritten is why the ledger of the quota that couldn't decide can't be read or written; empty if it can.
	Unwritten string
}

// Quota is a quota that covers the request's namespace.
type Quota struct {
	Name  string
	Basis ledger.Basis
	// Advisory: its spec refuses nothing.
	Advisory bool
	// AdmitsUnwritten: the request is admitted while the ledger can't be written.
	AdmitsUnwritten bool
}

// Outcome is the result of a charge. The zero value is that nothing was charged.
type Outcome struct {
	// Decision is nil after a Failure.
	Decision ledger.Decision
	Failure  Failure
}

// Failure is why there is no decision.
type Failure int

const (
	_ Failure = iota
	// Failed: newer specs of the quotas may lead to another outcome.
	Failed
	// Uncovered: so may a quota that this replica doesn't know, because the request needs one.
	Uncovered
	// Final: no look may.
	Final
)

// Waiver is of a quota that couldn't decide, and lets the request pass then.
type Waiver struct {
	// Quota is the version of its spec for which it holds.
	Quota  ledger.Basis
	Waived Waived
	// Remark tells people of it.
	Remark ledger.Remark
}

// Waived is how much of a charge is waived.
type Waived int

const (
	_ Waived = iota
	// Judgement: the charge is reserved, though the ledger can't judge it.
	Judgement
	// Entirely: the quota isn't charged.
	Entirely
)

// Waivers are in the order in which they were made.
type Waivers []Waiver

// Of returns how much of a quota's charge is waived.
func (w Waivers) Of(quota ledger.Basis) Waived {
	if at := slices.IndexFunc(w, func(one Waiver) bool { return one.Quota == quota }); at >= 0 {
		return w[at].Waived
	}
	return 0
}

// Looked takes the quotas that a Look found, or its error.
func (f *Facts) Looked(look Action, found []Quota, err error) {
	if look.Look == Begin {
		*f = Facts{Began: f.Now, Deadline: look.Until, Proved: f.Proved, Replaces: f.Replaces}
	}
	f.Last, f.Covering = look, found
	if err != nil {
		f.Outcome = Outcome{Failure: Final}
	}
}

// Charged takes the outcome of a Charge that ended now, and reports whether it counts. If a Charge that Repeats was cut short, by
// its own end or the request's, the outcome before stands.
func (f *Facts) Charged(charge Action, outcome Outcome, cut bool, now time.Time) (counts bool) {
	if charge.Repeats && cut && outcome.Failure == Failed {
		f.Last, f.Again = charge, true
		return false
	}
	waives := f.Last.Look == Specs && f.isUnchanged()
	f.Again = f.Last.Look != Begin && f.Last.Look != Specs
	f.Last, f.ChargedTo, f.Outcome, f.Waivers, f.Unwritten = charge, f.Covering, outcome, charge.Waivers, ""
	switch advisory := f.isAdvisory(); {
	case f.Again:
	case advisory && waives:
		f.Patience = time.Time{} // the request has waited for another quota
	case advisory:
		f.Patience = now.Add(AdvisoryWait)
	default:
		f.Patience = later(f.Began.Add(CountWait), now.Add(ChargeWait))
	}
	return true
}

// Found takes the result of a Prove.
func (f *Facts) Found(prove Action, replaces bool) {
	f.Last, f.Proved, f.Replaces = prove, true, replaces
}

// Remarks returns the remarks on quotas that cover the request and weren't charged.
func (f *Facts) Remarks() []ledger.Remark {
	var remarks []ledger.Remark
	for _, waiver := range f.Waivers {
		if waiver.Waived == Entirely && slices.ContainsFunc(f.ChargedTo, func(q Quota) bool { return q.Basis == waiver.Quota }) {
			remarks = append(remarks, waiver.Remark)
		}
	}
	return remarks
}

// isUnchanged reports whether the last look found the same versions of the same quotas as were charged.
func (f *Facts) isUnchanged() bool {
	return slices.EqualFunc(f.ChargedTo, f.Covering, func(a, b Quota) bool { return a.Basis == b.Basis })
}

// undecided returns the decision and its quota if a quota couldn't decide.
func (f *Facts) undecided() (undecided ledger.Undecided, by Quota, ok bool) {
	if undecided, ok = f.Outcome.Decision.(ledger.Undecided); ok {
		if at := slices.IndexFunc(f.ChargedTo, func(q Quota) bool { return q.Name == undecided.Quota }); at >= 0 {
			by = f.ChargedTo[at]
		}
	}
	return undecided, by, ok
}

// isAdvisory reports whether a quota that would refuse nothing couldn't decide.
func (f *Facts) isAdvisory() bool {
	undecided, by, ok := f.undecided()
	return ok && undecided.Unenforced && by.Advisory
}

// lacks reports whether the outcome is undecided for this reason.
func (f *Facts) lacks(reason ledger.Reason) bool {
	undecided, _, ok := f.undecided()
	return ok && undecided.Reason == reason
}

// restsOnSpecs reports whether the same quotas lead to the same outcome again, however long the request waits.
func (f *Facts) restsOnSpecs() bool {
	switch decision := f.Outcome.Decision.(type) {
	case ledger.Withheld:
		return false
	case ledger.Undecided:
		return decision.Reason == ledger.InvalidSpec
	default:
		return true
	}
}
