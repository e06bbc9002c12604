// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

func quota(name string, generation int64, change func(*Quota)) Quota {
	made := Quota{Name: name, Basis: ledger.Basis{Generation: generation, Digest: name}}
	change(&made)
	return made
}

func denies(*Quota)            {}
func audits(q *Quota)          { q.Advisory, q.AdmitsUnwritten = true, true }
func admits(q *Quota)          { q.AdmitsUnwritten = true }
func granted() Outcome         { return Outcome{Decision: ledger.Granted{}} }
func denied() Outcome          { return Outcome{Decision: ledger.Denied{Quota: "a"}} }
func provable() Outcome        { return Outcome{Decision: ledger.Denied{Quota: "a", Provable: true}} }
func failed(f Failure) Outcome { return Outcome{Failure: f} }

func lacks(reason ledger.Reason) Outcome {
	return Outcome{Decision: ledger.Undecided{Quota: "a", Reason: reason, Members: 7}}
}

// unenforced is of a quota that refuses nothing, by the limits that bind the charge.
func unenforced(quota string, reason ledger.Reason) Outcome {
	return Outcome{Decision: ledger.Undecided{Quota: quota, Reason: reason, Unenforced: true}}
}

// String returns the name of an action in the tests.
func (a Action) String() string {
	text := map[Do]string{Answer: "answer", Charge: "charge", Wait: "wait", Prove: "prove", Check: "check " + a.Quota}[a.Do]
	if a.Do == Look {
		text = [...]string{"", "begin", "memory", "namespace", "quotas", "specs", "everywhere"}[a.Look]
	}
	for _, waiver := range a.Waivers {
		text += fmt.Sprintf(" %s %s", map[Waived]string{Judgement: "unjudged", Entirely: "without"}[waiver.Waived], waiver.Quota.Digest)
	}
	for suffix, is := range map[string]bool{fmt.Sprintf(" at %d", a.AtLeast): a.AtLeast > 0, " asking": a.Asks, " late": a.Late} {
		if is {
			text += suffix
		}
	}
	return text
}

// story is a request from its arrival to its answer.
type story struct {
	// finds are the quotas of each look, and outcomes those of the charges; the last ever after.
	finds    [][]Quota
	outcomes []Outcome
	// takes is how long each look and charge takes, unless it ends early, and again how long charges after the first take; zero
	// for the same.
	takes, again time.Duration
	// blind: looks fail from this one on. unwritten is what a Check finds.
	blind     int
	unwritten string
	// replaces is the result of a Prove, and proves how long it takes.
	replaces bool
	proves   time.Duration
	// lenient is until when nothing refuses the request, and over when its time is over.
	lenient, over time.Duration
	want          string
	// remarks are those on quotas that weren't charged, and at is when the request is answered.
	remarks string
	at      time.Duration
}

func (s story) run() (actions []string, facts Facts, took time.Duration) {
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	now, looks, charges := start, 0, 0
	for len(actions) < 200 {
		facts.Now, facts.Lenient, facts.Over = now, now.Sub(start) < s.lenient, s.over > 0 && now.Sub(start) >= s.over
		action := Next(facts)
		actions = append(actions, action.String())
		takes := s.takes
		switch {
		case action.Do == Prove:
			takes = s.proves
		case action.Do == Charge && charges > 0 && s.again > 0:
			takes = s.again
		}
		end := action.Until
		if s.over > 0 && action.Do == Charge {
			end = earlier(end, start.Add(s.over))
		}
		cut := !end.IsZero() && end.Before(now.Add(takes))
		if now = now.Add(takes); cut || action.Do == Wait {
			now = end
		}
		switch action.Do {
		case Look:
			var err error
			if cut || s.blind > 0 && looks+1 >= s.blind {
				err = errors.New("not read")
			}
			facts.Looked(action, s.finds[min(looks, len(s.finds)-1)], err)
			looks++
		case Charge:
			outcome := s.outcomes[min(charges, len(s.outcomes)-1)]
			if cut {
				outcome = failed(Failed)
			}
			facts.Charged(action, outcome, cut, now)
			charges++
		case Wait:
			facts.Last = action
		case Check:
			facts.Last, facts.Unwritten = action, s.unwritten
		case Prove:
			facts.Found(action, s.replaces && !cut)
		case Answer:
			return actions, facts, now.Add(-s.takes).Sub(start)
		}
	}
	return actions, facts, now.Sub(start)
}

func TestNext(t *testing.T) {
	a, b := quota("a", 1, denies), quota("b", 1, denies)
	auditing, second, newer := quota("a", 1, audits), quota("b", 1, audits), quota("a", 2, denies)
	joins, counts := lacks(ledger.NotJoined), unenforced("a", ledger.NotCounted)
	for name, test := range map[string]story{
		"a grant is answered at once":                                               {outcomes: []Outcome{granted()}, want: "begin, charge, answer"},
		"a grant is answered though time is over":                                   {outcomes: []Outcome{granted()}, over: 1, takes: 1, want: "begin, charge, answer"},
		"a denial rests on a look at the namespace":                                 {outcomes: []Outcome{denied()}, want: "begin, charge, namespace, answer"},
		"a denial by quotas that don't cover the namespace any more isn't answered": {finds: [][]Quota{{a}, {b}}, outcomes: []Outcome{denied(), granted()}, want: "begin, charge, namespace, charge, answer"},
		"a denial by another version of the spec isn't answered":                    {finds: [][]Quota{{a}, {newer}}, outcomes: []Outcome{denied()}, want: "begin, charge, namespace, charge, namespace, answer"},
		"a denial after patience has ended rests on a look at the namespace":        {outcomes: []Outcome{joins, denied()}, takes: CountWait / 3, want: "begin, charge, memory at 7, charge, namespace, answer"},
		"a namespace that joins is waited for, and the ledger asked to count it":    {outcomes: []Outcome{joins, joins, granted()}, want: "begin, charge, memory at 7, charge, wait, memory at 7, charge asking, answer", at: Poll},
		"patience with a count ends":                                                {outcomes: []Outcome{lacks(ledger.NotCounted)}, takes: 700 * time.Millisecond, want: "begin, charge, quotas, charge, wait, quotas, charge, answer", at: 6*700*time.Millisecond + Poll},
		"a replica that is behind looks after patience has ended":                   {outcomes: []Outcome{lacks(ledger.StaleNamespaces), lacks(ledger.StaleNamespaces), granted()}, takes: CountWait, want: "begin, charge, memory at 7, charge, wait, memory at 7, charge, answer", at: 5*CountWait + Poll + CountWait},
		"objects that are about to appear are waited for":                           {outcomes: []Outcome{{Decision: ledger.Withheld{}}, {Decision: ledger.Withheld{}}, granted()}, want: "begin, charge, memory, charge, wait, memory, charge, answer", at: Poll},
		"an invalid spec needs no time":                                             {outcomes: []Outcome{lacks(ledger.InvalidSpec)}, want: "begin, charge, quotas, answer"},
		"a failure rests on a look at the specs":                                    {outcomes: []Outcome{failed(Failed)}, want: "begin, charge, quotas, answer"},
		"a request without a quota is looked at":                                    {outcomes: []Outcome{failed(Uncovered)}, want: "begin, charge, everywhere, answer"},
		"a quota that no watch has shown is charged":                                {finds: [][]Quota{{}, {a}}, outcomes: []Outcome{failed(Uncovered), granted()}, want: "begin, charge, everywhere, charge, answer"},
		"a final failure is answered at once":                                       {outcomes: []Outcome{failed(Final)}, want: "begin, charge, answer"},
		"a final failure after a look is answered at once":                          {finds: [][]Quota{{a}, {b}}, outcomes: []Outcome{denied(), failed(Final)}, want: "begin, charge, namespace, charge, answer"},
		"a look that fails is answered":                                             {outcomes: []Outcome{denied()}, blind: 2, want: "begin, charge, namespace, answer"},
		"nothing is charged if the first look fails":                                {blind: 1, want: "begin, answer"},
		"the last outcome is answered if time is over":                              {outcomes: []Outcome{joins}, takes: 1, over: 2, want: "begin, charge, answer", at: 2},

		"a quota that refuses nothing is waited for, then charged unjudged": {finds: [][]Quota{{auditing}}, outcomes: []Outcome{counts, counts, granted()}, takes: AdvisoryWait, want: "begin, charge, quotas, charge, specs, charge unjudged a, answer", at: 6 * AdvisoryWait},
		"a quota that can't reserve it isn't charged":                       {finds: [][]Quota{{auditing}}, outcomes: []Outcome{counts, counts, counts, granted()}, takes: AdvisoryWait, want: "begin, charge, quotas, charge, specs, charge unjudged a, specs, charge without a, answer", remarks: "a NotCounted", at: 8 * AdvisoryWait},
		"an invalid quota that refuses nothing isn't charged":               {finds: [][]Quota{{auditing}}, outcomes: []Outcome{unenforced("a", ledger.InvalidSpec), granted()}, want: "begin, charge, quotas, specs, charge without a, answer", remarks: "a InvalidSpec"},
		"a quota isn't waived if a fence binds":                             {finds: [][]Quota{{auditing}}, outcomes: []Outcome{lacks(ledger.StaleLimits)}, takes: 2 * time.Second, want: "begin, charge, quotas, charge, answer", at: 7 * time.Second},
		"a waiver needs the newest spec":                                    {finds: [][]Quota{{auditing}, {auditing}, {newer}}, outcomes: []Outcome{counts, counts, denied()}, takes: AdvisoryWait, want: "begin, charge, quotas, charge, specs, charge, namespace, answer", at: 7 * AdvisoryWait},
		"a waiver ends with its spec":                                       {finds: [][]Quota{{auditing, b}, {auditing, b}, {auditing, b}, {newer, b}}, takes: AdvisoryWait, outcomes: []Outcome{counts, counts, lacks(ledger.StaleLimits), denied()}, want: "begin, charge, quotas, charge, specs, charge unjudged a, quotas, charge unjudged a, namespace, answer", at: 9 * AdvisoryWait},
		"several quotas are waived one by one, and waited for once":         {finds: [][]Quota{{auditing, second}}, takes: AdvisoryWait, outcomes: []Outcome{counts, counts, counts, unenforced("b", ledger.Sealed), unenforced("b", ledger.Sealed), granted()}, want: "begin, charge, quotas, charge, specs, charge unjudged a, specs, charge without a, specs, charge without a unjudged b, specs, charge without a without b, answer", remarks: "a NotCounted, b Sealed", at: 12 * AdvisoryWait},
		"another quota is still waited for":                                 {finds: [][]Quota{{auditing, b}}, outcomes: []Outcome{counts, counts, {Decision: ledger.Undecided{Quota: "b", Reason: ledger.NotJoined}}, granted()}, takes: AdvisoryWait, want: "begin, charge, quotas, charge, specs, charge unjudged a, memory, charge unjudged a, answer", at: 8 * AdvisoryWait},

		"a ledger that can't be written isn't charged if the quota admits then": {finds: [][]Quota{{quota("a", 1, admits)}}, outcomes: []Outcome{joins, joins, granted()}, takes: 2 * time.Second, unwritten: "the disk is full", want: "begin, charge, memory at 7, charge, check a, specs, charge without a asking, answer", remarks: "a Unavailable unchecked: the disk is full", at: 13 * time.Second},
		"a ledger that can be written refuses":                                  {finds: [][]Quota{{quota("a", 1, admits)}}, outcomes: []Outcome{joins}, takes: 2 * time.Second, want: "begin, charge, memory at 7, charge, check a, answer", at: 9 * time.Second},
		"a sealed ledger isn't checked":                                         {finds: [][]Quota{{quota("a", 1, admits)}}, outcomes: []Outcome{lacks(ledger.Sealed)}, takes: 2 * time.Second, unwritten: "the disk is full", want: "begin, charge, quotas, charge, answer", at: 7 * time.Second},

		"a replacement is charged once more, with surge":               {outcomes: []Outcome{provable(), granted()}, replaces: true, proves: time.Millisecond, want: "begin, charge, namespace, prove, charge, answer", at: time.Millisecond},
		"an object that isn't one is denied":                           {outcomes: []Outcome{provable()}, want: "begin, charge, namespace, prove, answer"},
		"nothing is proved if there is room":                           {outcomes: []Outcome{granted()}, replaces: true, want: "begin, charge, answer"},
		"nothing is proved if surge doesn't help":                      {outcomes: []Outcome{denied()}, replaces: true, want: "begin, charge, namespace, answer"},
		"nothing is proved if another quota can't decide":              {outcomes: []Outcome{lacks(ledger.InvalidSpec)}, replaces: true, want: "begin, charge, quotas, answer"},
		"a proof is awaited for so long":                               {outcomes: []Outcome{provable(), granted()}, replaces: true, proves: time.Hour, want: "begin, charge, namespace, prove, answer", at: ProofWait},
		"the denial of a replacement rests on a look after the charge": {outcomes: []Outcome{provable(), denied()}, replaces: true, want: "begin, charge, namespace, prove, charge, namespace, answer"},
		"it is proved once":                                            {outcomes: []Outcome{provable(), provable()}, replaces: true, want: "begin, charge, namespace, prove, charge, namespace, answer"},
		"it is proved once, also if it doesn't replace anything":       {finds: [][]Quota{{a}, {a}, {newer}}, outcomes: []Outcome{provable()}, want: "begin, charge, namespace, prove, answer"},
		"it is proved only by the newest spec":                         {finds: [][]Quota{{a}, {newer}}, outcomes: []Outcome{provable(), denied()}, replaces: true, want: "begin, charge, namespace, charge, namespace, answer"},
		"another quota is asked with the same proof":                   {finds: [][]Quota{{a}, {a}, {a, b}}, outcomes: []Outcome{provable(), denied(), granted()}, replaces: true, want: "begin, charge, namespace, prove, charge, namespace, charge, answer"},
		"nothing is proved if time is over":                            {outcomes: []Outcome{provable()}, replaces: true, takes: 1, over: 3, want: "begin, charge, namespace, answer", at: 3},
		"a namespace that joins is waited for after a proof":           {outcomes: []Outcome{provable(), joins, granted()}, replaces: true, want: "begin, charge, namespace, prove, charge, wait, memory at 7, charge asking, answer", at: Poll},
		"a proof ends if nothing refuses the request":                  {outcomes: []Outcome{provable()}, replaces: true, lenient: time.Hour, takes: 300 * time.Millisecond, proves: time.Minute, want: "begin, charge, namespace, prove, answer", at: LenientWait},
		"what is proved holds if a quota begins to refuse meanwhile":   {outcomes: []Outcome{provable(), joins, provable()}, replaces: true, lenient: time.Second, takes: 300 * time.Millisecond, want: "begin, charge, namespace, prove, charge, begin, charge, namespace, answer"},

		"a request that nothing refuses is answered soon":                 {outcomes: []Outcome{joins}, lenient: time.Hour, takes: 400 * time.Millisecond, want: "begin, charge, memory at 7, answer late", at: LenientWait},
		"a wait ends if nothing refuses the request":                      {outcomes: []Outcome{joins}, lenient: time.Hour, takes: 290 * time.Millisecond, want: "begin, charge, memory at 7, charge, wait, answer late", at: LenientWait},
		"a look ends if nothing refuses the request":                      {lenient: time.Hour, takes: time.Minute, want: "begin, answer", at: LenientWait},
		"a denial that comes late is answered":                            {outcomes: []Outcome{denied()}, lenient: time.Hour, takes: LenientWait / 2, want: "begin, charge, answer", at: LenientWait},
		"a quota that begins to refuse meanwhile gets the whole time":     {outcomes: []Outcome{joins, granted()}, lenient: time.Second, takes: 500 * time.Millisecond, want: "begin, charge, memory at 7, begin, charge, answer", at: LenientWait + time.Second},
		"a request that seems to be refused at first gets the whole time": {outcomes: []Outcome{joins}, takes: 2 * time.Second, want: "begin, charge, memory at 7, charge, answer", at: 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if test.finds == nil {
				test.finds = [][]Quota{{a}}
			}
			actions, facts, took := test.run()
			if diff := cmp.Diff(test.want, strings.Join(actions, ", ")); diff != "" {
				t.Errorf("actions (-want,+got):\n%s", diff)
			}
			var remarks []string
			for _, remark := range facts.Remarks() {
				undecided := remark.Refusal.(ledger.Undecided)
				text := remark.Quota + " " + string(undecided.Reason)
				if remark.Unchecked {
					text += " unchecked: " + undecided.Detail
				}
				remarks = append(remarks, text)
			}
			if diff := cmp.Diff(test.remarks, strings.Join(remarks, ", ")); diff != "" {
				t.Errorf("remarks (-want,+got):\n%s", diff)
			}
			if test.at > 0 && took != test.at {
				t.Errorf("answered after %s, want %s", took, test.at)
			}
		})
	}
}

// A charge is repeated until the request has waited for three seconds in all. The last one may take a second. If it doesn't end in
// time, the outcome before is answered. A charge of other quotas gets the whole time.
func TestARepeatedChargeThatDoesNotEndLeavesTheOutcomeBefore(t *testing.T) {
	a, b := quota("a", 1, denies), quota("b", 1, denies)
	withheld := Outcome{Decision: ledger.Withheld{}}
	then := func(outcome Outcome) []Outcome { return []Outcome{withheld, outcome} }
	const second = time.Second
	for name, test := range map[string]struct {
		story
		answers Outcome
	}{
		"it ends in time":                   {story{takes: second, at: 4 * second, outcomes: then(granted())}, granted()},
		"it ends too late":                  {story{takes: 2 * second, at: 7 * second, outcomes: then(granted())}, withheld},
		"it doesn't end":                    {story{again: time.Hour, at: CountWait, outcomes: then(granted())}, withheld},
		"it begins late and doesn't end":    {story{takes: 2 * second, again: time.Hour, at: 6*second + ChargeWait, outcomes: then(granted())}, withheld},
		"it fails before":                   {story{takes: 900 * time.Millisecond, at: 4500 * time.Millisecond, outcomes: then(failed(Failed))}, failed(Failed)},
		"it fails for good":                 {story{takes: second, at: 4 * second, outcomes: then(failed(Final))}, failed(Final)},
		"it is of other quotas":             {story{takes: 2 * second, at: 8 * second, finds: [][]Quota{{a}, {b}}, outcomes: then(granted())}, granted()},
		"it is of a replica that is behind": {story{takes: 2 * second, at: 8 * second, outcomes: []Outcome{lacks(ledger.StaleNamespaces), granted()}}, granted()},
		"the request's time is over":        {story{again: time.Hour, over: 2 * second, at: 2 * second, outcomes: then(granted())}, withheld},
		"nothing refuses the request":       {story{again: time.Hour, lenient: time.Hour, at: LenientWait, outcomes: then(granted())}, withheld},
	} {
		t.Run(name, func(t *testing.T) {
			if test.finds == nil {
				test.finds = [][]Quota{{a}}
			}
			actions, facts, took := test.run()
			if diff := cmp.Diff(test.answers, facts.Outcome); diff != "" || took != test.at {
				t.Errorf("answered after %s, want %s, (-want,+got):\n%s\nactions: %s", took, test.at, diff, actions)
			}
		})
	}
}

// Nothing is waived, charged or granted by a zero value.
func TestZeroValuesRefuse(t *testing.T) {
	if next := Next(Facts{}); next.Do != Look || next.Look != Begin || !next.Until.IsZero() {
		t.Errorf("it begins with %s until %s", next, next.Until)
	}
	if next := Next(Facts{Last: Action{Do: Charge}}); next.Do != Charge || len(next.Waivers) > 0 {
		t.Errorf("no outcome: %s", next)
	}
	if (Action{}).Do != Answer || ledger.IsGranted(Outcome{}.Decision) || Waivers(nil).Of(ledger.Basis{}) != 0 {
		t.Error("a zero value admits")
	}
}

// An object is looked up once, and only before a denial that surge may spare it. A denial rests on a look after the charge,
// unless the time is over.
func TestAnyRequestIsProvedAtMostOnce(t *testing.T) {
	quotas := []Quota{quota("a", 1, denies), quota("a", 2, denies), quota("a", 1, audits), quota("b", 1, admits)}
	outcomes := []Outcome{
		provable(), provable(), denied(), granted(), lacks(ledger.NotJoined), lacks(ledger.StaleNamespaces), unenforced("a", ledger.NotCounted),
		failed(Failed),
	}
	rapid.Check(t, func(t *rapid.T) {
		start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
		var facts Facts
		now, proofs, replaces, looked := start, 0, false, false
		lenient := rapid.Bool().Draw(t, "lenient")
		for step := 0; ; step++ {
			if step > 1000 {
				t.Fatal("it is never answered")
			}
			facts.Now, facts.Over, facts.Lenient = now, now.Sub(start) > 10*time.Second, lenient
			action := Next(facts)
			now = now.Add(time.Duration(rapid.IntRange(1, 500).Draw(t, "ms")) * time.Millisecond)
			if action.Do == Wait {
				now = action.Until
			}
			switch action.Do {
			case Look:
				facts.Looked(action, rapid.SliceOfN(rapid.SampledFrom(quotas), 1, 2).Draw(t, "found"), nil)
				looked = true
				if facts.Replaces != replaces {
					t.Fatalf("%s forgets the proof", action)
				}
			case Charge:
				outcome := rapid.SampledFrom(outcomes).Draw(t, "outcome")
				if decision, _ := outcome.Decision.(ledger.Denied); decision.Provable && replaces {
					outcome = denied() // as a ledger answers
				}
				facts.Charged(action, outcome, rapid.Bool().Draw(t, "cut"), now)
				looked = false
			case Wait, Check:
				facts.Last = action
			case Prove:
				proofs++
				if decision, _ := facts.Outcome.Decision.(ledger.Denied); !decision.Provable || proofs > 1 || !looked {
					t.Fatalf("proof %d after %+v, looked after the charge: %v", proofs, facts.Outcome, looked)
				}
				if action.Until.IsZero() || action.Until.After(facts.Now.Add(ProofWait)) {
					t.Fatalf("a proof may take until %s", action.Until)
				}
				replaces = rapid.Bool().Draw(t, "replaces")
				facts.Found(action, replaces)
				if next := Next(facts); replaces && next.Do != Charge {
					t.Fatalf("after a proof: %s", next)
				}
			case Answer:
				_, refused := facts.Outcome.Decision.(ledger.Denied)
				late := !facts.Deadline.IsZero() && !facts.Now.Before(facts.Deadline)
				if refused && !looked && !facts.Over && !late {
					t.Fatal("a denial rests on no look")
				}
				return
			}
		}
	})
}

// A caller may keep the facts and actions of before.
func TestWaiversAreNotShared(t *testing.T) {
	facts := Facts{
		Last: Action{Do: Look, Look: Specs}, Outcome: unenforced("a", ledger.NotCounted), ChargedTo: []Quota{quota("a", 1, audits)},
		Covering: []Quota{quota("a", 1, audits)}, Waivers: Waivers{{Quota: quota("a", 1, audits).Basis, Waived: Judgement}},
	}
	before := slices.Clone(facts.Waivers)
	if got := Next(facts).Waivers.Of(facts.Waivers[0].Quota); got != Entirely {
		t.Errorf("waived: %d", got)
	}
	if diff := cmp.Diff(before, facts.Waivers); diff != "" {
		t.Errorf("(-before,+after):\n%s", diff)
	}
}
