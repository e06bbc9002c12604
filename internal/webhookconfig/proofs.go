// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Enforcement is how far it is known that the API server asks about all that a quota
// limits.
type Enforcement int

const (
	// Unknown: this leader hasn't found out yet. The leader before may have.
	Unknown Enforcement = iota
	// Uncovered: the configuration in the cluster doesn't ask about all of it.
	Uncovered
	// Unproved: it does, but the API server may not have loaded it yet.
	Unproved
	// Edited: another client has edited the configuration so that it doesn't ask
	// about all of it, and no repair has lasted yet.
	Edited
	// Unprovable: the state is unknown, because probes fail.
	Unprovable
	// Proved: the API server has loaded a configuration that does, and each one since
	// does, too.
	Proved
)

// Verdict is the result of Proofs for one quota.
type Verdict struct {
	Enforcement Enforcement
	// Coverage is that of the configuration in the cluster.
	Coverage Coverage
	// Failure is why probes fail, if the quota is Unprovable, or why the configuration can't be written, if it is Uncovered.
	Failure string
	// Edit names the client that edited the configuration, if the quota is
	// Edited.
	Edit string
}

// Observation is the configuration that is in the cluster, and how far it covers each quota that there is.
type Observation struct {
	// Configuration identifies it, and Edition is the last write of this operator; both are empty if there is none.
	Configuration types.UID
	Generation    int64
	Edition       Edition
	Quotas        []Quota
	Coverages     []Coverage // of each of the Quotas
	// Edit names the other client that edited the configuration; empty if there was none, or once a repair has lasted.
	Edit string
	// Failure is why the configuration can't be written; empty if it can.
	Failure string
}

const (
	// probePatience is how long probes may fail, or may find an older configuration,
	// before anything is concluded from it: a replica that is replaced takes seconds.
	probePatience = 15 * time.Second
	// proofLife is how long a proof holds.
	proofLife = 30 * time.Second
)

// Proofs knows which quotas the API server is proved to ask about. Its methods may be
// called concurrently. The zero Proofs knows nothing.
type Proofs struct {
	// mu guards all that follows.
	mu sync.Mutex
	// configuration and edition are those of the last Observation.
	configuration types.UID
	edition       Edition
	// quota name -> how the configuration covers it
	runs map[string]run
	// proved is the newest Generation of the configuration that is known to be loaded.
	proved int64
	// begun is when the first probe ended, contact when the last one did that was
	// answered, and failing since when none was; zero for never and for not at all.
	begun, contact, failing time.Time
	failure                 string
	// unwritten is the Failure of the last Observation.
	unwritten string
	// quota name -> the last verdict
	verdicts map[string]Verdict
}

// run is an unbroken series of configurations that cover the same spec of a quota.
type run struct {
	uid        types.UID
	generation int64
	coverage   Coverage
	// since is the Generation of the first of them.
	since int64
	// edit is that of the Observation, if the edit left the quota uncovered.
	edit string
}

// Observe takes the configuration and the quotas in the cluster. It returns the names of the quotas whose verdict has
// changed.
func (p *Proofs) Observe(seen Observation, now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	another := seen.Configuration != p.configuration
	if another {
		p.configuration, p.proved = seen.Configuration, 0 // generations begin again
	}
	if another || len(p.runs) == 0 {
		p.contact, p.failing, p.failure = now, time.Time{}, "" // there was nothing to prove
	}
	p.edition, p.unwritten = seen.Edition, seen.Failure
	runs := make(map[string]run, len(seen.Quotas))
	for i, quota := range seen.Quotas {
		current := run{uid: quota.UID, generation: quota.Generation, coverage: seen.Coverages[i], since: seen.Generation}
		previous := p.runs[quota.Name]
		if !another && previous.coverage != Missing && previous.uid == current.uid && previous.generation == current.generation {
			current.since = previous.since
		}
		if seen.Edit != "" && (current.coverage == Missing || previous.edit != "") {
			current.edit = seen.Edit
		}
		runs[quota.Name] = current
	}
	p.runs = runs
	return p.lockedConclude(now)
}

// Wanted returns the edition that must be proved now. It is false if there is
// nothing to prove: no quota, or no configuration.
func (p *Proofs) Wanted() (Edition, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.edition, p.edition != Edition{} && len(p.runs) > 0
}

// Answered takes the edition that a probe was answered with. It reports whether this
// is the last one, and returns the quotas of which it concludes something else.
func (p *Proofs) Answered(edition Edition, now time.Time) (current bool, changed []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lockedBegin(now)
	p.contact, p.failing, p.failure = now, time.Time{}, ""
	if current = edition == p.edition; current {
		p.proved = edition.Generation
	}
	return current, p.lockedConclude(now)
}

// Failed takes why a probe failed. It returns the quotas of which it concludes
// something else.
func (p *Proofs) Failed(failure string, now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lockedBegin(now)
	if p.failing.IsZero() {
		p.failing = now
	}
	if now.Sub(p.failing) <= probePatience {
		p.failure = failure // it stays once it is told, or each probe would be a write
	}
	return p.lockedConclude(now)
}

func (p *Proofs) lockedBegin(now time.Time) {
	if p.begun.IsZero() {
		p.begun = now
	}
}

// Of returns the verdict on this spec of a quota.
func (p *Proofs) Of(name string, uid types.UID, generation int64, now time.Time) Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, found := p.runs[name]
	if !found || known.uid != uid || known.generation != generation {
		return Verdict{}
	}
	return p.lockedVerdict(known, now)
}

func (p *Proofs) lockedVerdict(known run, now time.Time) Verdict {
	verdict := Verdict{Coverage: known.coverage}
	failing := !p.failing.IsZero() && now.Sub(p.failing) >= probePatience
	proved := p.proved >= known.since && p.proved > 0
	switch {
	case known.edit != "":
		verdict.Enforcement, verdict.Edit = Edited, known.edit
	case known.coverage == Missing:
		verdict.Enforcement, verdict.Failure = Uncovered, p.unwritten
	case failing, proved && now.Sub(p.contact) > proofLife:
		verdict.Enforcement, verdict.Failure = Unprovable, p.failure
	case proved:
		verdict.Enforcement = Proved
	case p.proved == 0 && (p.begun.IsZero() || now.Sub(p.begun) < probePatience):
		verdict.Enforcement = Unknown
	default:
		verdict.Enforcement = Unproved
	}
	return verdict
}

// lockedConclude returns the names of the quotas whose verdict has changed, sorted.
func (p *Proofs) lockedConclude(now time.Time) []string {
	verdicts := make(map[string]Verdict, len(p.runs))
	var changed []string
	for name, known := range p.runs {
		verdicts[name] = p.lockedVerdict(known, now)
		if previous, found := p.verdicts[name]; !found || previous != verdicts[name] {
			changed = append(changed, name)
		}
	}
	p.verdicts = verdicts
	slices.Sort(changed)
	return changed
}
