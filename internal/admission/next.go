// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

const (
	// CountWait is how long a request waits, since it began, for a quota that is being counted or for objects that are about to
	// appear.
	CountWait = 3 * time.Second
	// Poll is how often it looks meanwhile.
	Poll = 50 * time.Millisecond
	// ChargeWait is the least time that it waits for that after its first charge, and the least that each further charge has.
	ChargeWait = time.Second
	// AdvisoryWait is how long a request waits for a quota that can't decide and refuses nothing.
	AdvisoryWait = 500 * time.Millisecond
	// LenientWait is how long a request waits in all if nothing refuses it: a little longer than package driver waits for
	// the ledgers.
	LenientWait = 1200 * time.Millisecond
	// ProofWait bounds the look whether an object replaces another one.
	ProofWait = time.Second
)

// Action is one step of the caller. The zero value answers.
type Action struct {
	Do Do
	// Until ends the Action early; zero if only the end of the request's time does.
	Until time.Time
	// Look is the Reading of a Look, and AtLeast the resourceVersion up to which the namespace must be known then.
	Look    Reading
	AtLeast uint64
	// Waivers are those of a Charge. Asks: it asks the ledgers to count namespaces that joined. Repeats: it is the same as the
	// last one, whose outcome stands if it doesn't end in time.
	Waivers Waivers
	Asks    bool
	Repeats bool
	// Quota is the one to Check.
	Quota string
	// Late: an Answer is given though the quota that couldn't decide might in time.
	Late bool
}

// Do is the verb of an Action.
type Do int

const (
	// Answer answers with the last outcome.
	Answer Do = iota
	// Look finds the quotas that cover the namespace.
	Look
	// Charge charges these quotas, or none.
	Charge
	// Wait lets time pass.
	Wait
	// Check reads and writes a ledger.
	Check
	// Prove finds out whether the object replaces another one, so that it may take surge.
	Prove
)

// Reading is the extent of a Look.
type Reading int

const (
	// Begin forgets all that was reported, and then reads as Memory does.
	Begin Reading = iota + 1
	// Memory reads live only the facts that may be old in memory.
	Memory
	// Namespace reads the namespace live.
	Namespace
	// Quotas also reads the quotas that cover it.
	Quotas
	// Specs reads the same, to waive a charge by it.
	Specs
	// Everywhere also lists all quotas.
	Everywhere
)

// Next returns the next Action of the caller.
func Next(f Facts) Action {
	next := f.next()
	if next.Do != Answer && next.Look != Begin {
		next.Until = earlier(next.Until, f.Deadline)
	}
	return next
}

// earlier returns the earlier time; zero is no time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (f *Facts) next() Action {
	_, _, undecided := f.undecided()
	late := !f.Over && !f.Deadline.IsZero() && !f.Now.Before(f.Deadline)
	switch {
	case f.Last.Do == Answer, late && !f.Lenient && (undecided || f.Outcome.Failure != 0):
		return f.begin()
	case f.Outcome == Outcome{}:
		return Action{Do: Charge}
	case late, f.Over, f.Outcome.Failure == Final, ledger.IsGranted(f.Outcome.Decision):
		return Action{Late: late && undecided}
	default:
		return f.goOn()
	}
}

// goOn looks, waits and charges again until nothing leads to another outcome.
func (f *Facts) goOn() Action {
	switch f.Last.Do {
	case Look:
		return f.looked()
	case Charge:
		return f.charged()
	case Wait:
		return f.look()
	case Check:
		if f.Unwritten != "" {
			return Action{Do: Look, Look: Specs}
		}
	case Prove:
		if f.Replaces {
			return Action{Do: Charge, Waivers: f.Waivers}
		}
	case Answer:
	}
	return Action{}
}

// begin begins, also from scratch because a quota refuses by now that seemed to refuse nothing.
func (f *Facts) begin() Action {
	begin := Action{Do: Look, Look: Begin}
	if f.Lenient {
		begin.Until = f.Now.Add(LenientWait)
	}
	return begin
}

// looked goes on after a look that followed a charge.
func (f *Facts) looked() Action {
	charge := Action{Do: Charge, Waivers: f.Waivers, Asks: f.Again && f.lacks(ledger.NotJoined)}
	switch {
	case !f.isUnchanged():
	case f.Last.Look == Specs:
		charge.Waivers = f.waive()
	case f.restsOnSpecs():
		return f.conclude()
	case !f.lacks(ledger.StaleNamespaces):
		// If the machine is busy, the charge may take longer than the request's time. People would only be told that a deadline
		// was exceeded.
		charge.Repeats, charge.Until = true, later(f.Patience, f.Now.Add(ChargeWait))
	}
	return charge
}

// charged goes on after a charge that wasn't granted. Patience is for outcomes that need time. A replica that is behind needs a
// look, however long that takes.
func (f *Facts) charged() Action {
	switch {
	case f.restsOnSpecs():
		return f.look()
	case !f.Now.Before(f.Patience) && !f.lacks(ledger.StaleNamespaces):
		return f.conclude()
	case f.Again:
		return Action{Do: Wait, Until: f.Now.Add(Poll)}
	default:
		return f.look()
	}
}

// look reads the facts that the outcome rests on:
//
//   - a request that needs a quota may be covered by one that no watch has shown yet;
//   - a denial has been checked against a spec that the quota had at most a second before. Whether the namespace is still the
//     quota's has not;
//   - a replica that is behind must see the change of namespaces that the ledger has counted;
//   - a namespace that the ledger has not counted yet needs only time, and so does one that holds too much for objects
//     that are about to appear;
//   - anything else rests on the quotas' specs.
func (f *Facts) look() Action {
	look := Action{Do: Look, Look: Quotas}
	switch decision := f.Outcome.Decision.(type) {
	case ledger.Denied:
		look.Look = Namespace
	case ledger.Withheld:
		look.Look = Memory
	case ledger.Undecided:
		if decision.Reason == ledger.StaleNamespaces || decision.Reason == ledger.NotJoined {
			look.Look, look.AtLeast = Memory, decision.Members
		}
	default:
		if f.Outcome.Failure == Uncovered {
			look.Look = Everywhere
		}
	}
	return look
}

// conclude goes on if neither a look nor time leads to another outcome. Surge is only for objects that replace others, so
// that is looked up before a charge is refused, and never as long as there is room. A quota that refuses nothing, or that
// admits requests while its ledger can't be written, is waived. A ledger that isn't counted may be unwritten: the leader's
// count would be settled in it, so a replica that only judges doesn't notice.
func (f *Facts) conclude() Action {
	undecided, by, ok := f.undecided()
	uncounted := undecided.Reason == ledger.NotCounted || undecided.Reason == ledger.NotJoined
	denied, _ := f.Outcome.Decision.(ledger.Denied)
	switch {
	case denied.Provable && !f.Proved:
		return Action{Do: Prove, Until: f.Now.Add(ProofWait)}
	case !ok, f.Waivers.Of(by.Basis) == Entirely:
		return Action{}
	case f.isAdvisory():
		return Action{Do: Look, Look: Specs}
	case uncounted && by.AdmitsUnwritten:
		return Action{Do: Check, Quota: by.Name}
	default:
		return Action{}
	}
}

// waive returns the waivers with one more, or a larger one, of the quota that couldn't decide.
func (f *Facts) waive() Waivers {
	undecided, by, _ := f.undecided()
	waiver := Waiver{Quota: by.Basis, Waived: f.Waivers.Of(by.Basis) + 1, Remark: ledger.Remark{Quota: by.Name, Refusal: undecided}}
	switch {
	case undecided.Reason == ledger.InvalidSpec:
		waiver.Waived = Entirely
	case f.Unwritten != "":
		undecided.Reason, undecided.Detail = ledger.Unavailable, f.Unwritten
		waiver.Waived, waiver.Remark = Entirely, ledger.Remark{Quota: by.Name, Unchecked: true, Refusal: undecided}
	}
	others := slices.DeleteFunc(slices.Clone(f.Waivers), func(one Waiver) bool { return one.Quota == by.Basis })
	return append(others, waiver)
}
