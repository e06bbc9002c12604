// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/admission"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// status is the API server's knowledge of a request.
type status int

const (
	// asking: the webhook was asked.
	asking status = iota
	// admitted: nothing stands against it.
	admitted
	persisted
	failed
)

// stage is the present work of a replica's front end for a request.
type stage int

const (
	stageNone stage = iota
	// stageCatchUp waits for the watch of quotas.
	stageCatchUp
	// stageRead makes the read that the search asks for.
	stageRead
	stageCharge
	stagePause
	// stageProve looks whether the object replaces another one.
	stageProve
	// stageReply: the answer is on its way to the API server.
	stageReply
)

// request creates an object or makes one grow.
type request struct {
	world   *world
	id      int
	replica *replica
	begun   time.Time
	// revision is the newest when it began.
	revision uint64
	place
	uid types.UID
	// from is the revision of the object that it updates; zero if it creates one.
	from    uint64
	attempt string
	// rise is the amount that it adds.
	rise   figures
	asked  question
	status status
	// left: the API server doesn't wait for an answer any more.
	left bool
	// limit is the highest that was in force since it began, of the quota with the UID.
	limit   [maxQuotas]figures
	limitOf [maxQuotas]types.UID
	// most is the same with surge, and replaces is whether the object replaces another one.
	most     [maxQuotas]figures
	replaces bool
	// granted is the ledger in which it was reserved last.
	granted [maxQuotas]*stored
	// passed are quotas in which nothing was reserved by the last charge, because they couldn't decide, and refuse nothing.
	passed [maxQuotas]bool

	facts    admission.Facts
	action   admission.Action
	stage    stage
	until    time.Time
	search   namespaces.Search
	step     namespaces.Step
	read     read
	proof    proof
	covering []definition.Definition
	// knowledge is, for each of covering, the knowledge of namespaces, and saw is the revision up to which the watch
	// had shown them.
	knowledge []ledger.Knowledge
	saw       uint64
	charging  charging
}

// read is a live read.
type read struct {
	done      bool
	failed    bool
	namespace *namespace
	quotas    []*quota
	revision  uint64
}

// proof is a look whether an object replaces another one.
type proof struct{ done, failed bool }

// charging is a charge of several quotas, or one.
type charging struct {
	charges  []ledger.Charge
	quotas   []int
	at       int
	probing  bool
	patience time.Time
	driver   *driver
	reply    *reply
}

func (r *request) isOpen() bool { return r.status == asking || r.status == admitted }

// surges reports whether the object replaces another one, and was found to.
func (r *request) surges() bool { return r.replaces && r.facts.Replaces }

func (r *request) key() ledger.Key { return ledger.Key{UID: r.uid, Attempt: r.attempt} }

// fail is how the API server takes it that there is no answer.
func (r *request) fail(string) {
	r.left = true
	if r.isOpen() {
		r.status = failed
	}
}

// arrive begins to answer.
func (r *request) arrive() {
	if !r.replica.alive || !r.replica.synced() {
		r.fail("nobody is ready")
		return
	}
	r.next()
}

// next takes the action that package admission returns, as webhooks/objects does.
func (r *request) next() {
	r.facts.Now = r.replica.now()
	switch r.action = r.world.mutation.admit(r, admission.Next(r.facts)); r.action.Do {
	case admission.Look:
		r.look()
	case admission.Charge:
		r.until = r.action.Until
		r.charge()
	case admission.Wait:
		r.stage, r.until = stagePause, r.action.Until
	case admission.Prove:
		r.stage, r.until, r.proof = stageProve, r.action.Until, proof{}
	default:
		r.answer()
	}
}

// look finds the quotas that cover the namespace.
func (r *request) look() {
	name, memory := r.world.vocabulary.namespaces[r.namespace], r.replica.memory
	switch r.action.Look {
	case admission.Namespace:
		r.search = memory.CoverNow(r.question(), name, namespaces.LookNamespace)
	case admission.Specs:
		r.cannotDecide(r.facts.Outcome.Decision)
		fallthrough
	case admission.Quotas:
		r.search = memory.CoverNow(r.question(), name, namespaces.LookQuotas)
	default:
		r.cover(name)
		return
	}
	r.advance()
}

// question is the question that the front end takes the API server to have asked.
func (r *request) question() webhookconfig.Question {
	asked, mutation := webhookconfig.Question{Witness: webhookconfig.WitnessExact, Quotas: r.asked.set(), Epoch: r.asked.epoch}, r.world.mutation
	if mutation.noEpoch {
		asked.Epoch = 0
	}
	if mutation.noWitness {
		asked.Witness, asked.Quotas = webhookconfig.WitnessSome, ""
	}
	return asked
}

// cover finds them in memory, unless that may be old.
func (r *request) cover(name string) {
	atLeast, mutation := r.action.AtLeast, r.world.mutation
	if mutation.noLook {
		atLeast = 0
	}
	if looked, ok := r.replica.trusted[r.trust()]; mutation.trustsLooks && ok && r.replica.now().Sub(looked) < trustedFor {
		if known, ok := r.replica.memory.Known(name); ok {
			r.covered(known)
			return
		}
	}
	r.search = r.replica.memory.Cover(r.question(), name, atLeast)
	r.advance()
}

// advance goes on with the search.
func (r *request) advance() {
	switch r.step = r.search.Next(r.replica.now()); r.step {
	case namespaces.Done:
		r.covered(r.search.Covered())
	case namespaces.WaitForQuotas:
		r.stage, r.until = stageCatchUp, r.search.Until()
	default:
		r.stage, r.read = stageRead, read{}
	}
}

// trust is a question about a namespace. trustedFor is how long a mutated front end believes a look for it.
type trust struct {
	namespace int
	asked     question
}

const trustedFor = 5 * time.Second

func (r *request) trust() trust { return trust{r.namespace, r.asked} }

// isReading reports whether a live read is awaited that has not happened.
func (r *request) isReading() bool { return r.stage == stageRead && !r.read.done }

// takeRead has the API server answer a live read.
func (r *request) takeRead(fails bool) {
	r.read.done, r.read.failed = true, fails
	r.read.namespace = r.world.namespaces.newest[r.namespace]
	r.read.quotas = append([]*quota(nil), r.world.quotas.newest...)
	r.read.revision = r.world.revision
}

// isProving reports whether a look is awaited whether the object replaces another one.
func (r *request) isProving() bool { return r.stage == stageProve && !r.proof.done }

// takeProof answers the look, truthfully unless it fails.
func (r *request) takeProof(fails bool) { r.proof = proof{done: true, failed: fails} }

// isReady reports whether the front end can go on.
func (r *request) isReady() bool {
	now := r.replica.now()
	switch r.stage {
	case stageNone, stageReply:
		return false
	case stageCatchUp:
		return !r.search.Waits(now)
	case stageCharge:
		return r.charging.reply.came || !r.until.IsZero() && !r.until.After(now)
	case stagePause:
		return !r.until.After(now)
	case stageProve:
		return r.proof.done || !r.until.After(now)
	default:
		return r.read.done
	}
}

// wakeAt is when a timer makes it ready; zero for never.
func (r *request) wakeAt() time.Time {
	waits := r.stage == stageCatchUp || r.stage == stagePause || r.stage == stageProve || r.stage == stageCharge
	if waits && !r.until.IsZero() {
		return r.until.Add(-r.replica.offset)
	}
	return time.Time{}
}

// goOn makes the next step.
func (r *request) goOn() {
	switch r.stage {
	case stageCatchUp:
		r.advance()
	case stageRead:
		if r.read.failed || r.step == namespaces.ReadNamespace && r.read.namespace == nil || !r.learn() {
			r.facts.Looked(r.action, nil, errLost)
			r.next()
			return
		}
		r.advance()
	case stageCharge:
		if !r.charging.reply.came {
			r.cut()
			return
		}
		r.charged()
	case stagePause:
		r.facts.Last = r.action
		r.next()
	case stageProve:
		known := r.proof.done && !r.proof.failed
		r.facts.Found(r.action, known && r.replaces || !known && r.world.mutation.believes)
		r.next()
	default:
	}
}

// learn takes the result of a read. It reports false if the namespace is gone.
func (r *request) learn() bool {
	w, memory := r.world, r.replica.memory
	switch r.step {
	case namespaces.ReadNamespace:
		if w.mutation.trustsLooks {
			r.replica.trusted[r.trust()] = r.replica.now()
		}
		return r.search.Found(r.read.namespace.raw)
	case namespaces.ReadQuotas:
		for _, covering := range r.search.Covered().Definitions {
			if live := r.read.quotas[slices.Index(w.vocabulary.quotas[:], covering.Limits.Name)]; live != nil {
				memory.Read(live.raw)
			} else {
				memory.Miss(covering.Limits.Name, r.read.revision)
			}
		}
	case namespaces.ListQuotas:
		names := map[string]bool{}
		for _, live := range r.read.quotas {
			if live != nil {
				memory.Read(live.raw)
				names[live.raw.Name] = true
			}
		}
		memory.Listed(names, r.read.revision)
	default:
	}
	return true
}

// covered goes on with the quotas that cover the namespace.
func (r *request) covered(found namespaces.Covered) {
	r.covering, r.knowledge = found.Definitions, found.Knowledge
	r.saw = r.replica.saw()
	r.world.checkCovered(r)
	r.world.mutation.know(r)
	quotas := make([]admission.Quota, 0, maxQuotas)
	for _, covering := range r.covering {
		quotas = append(quotas, admission.Quota{Name: covering.Limits.Name, Basis: covering.Limits.Basis, Advisory: covering.Limits.Advisory})
	}
	r.facts.Looked(r.action, quotas, nil)
	r.next()
}

// cut goes on without the outcome of a charge that took too long.
func (r *request) cut() {
	r.world.counts.cut++
	r.giveUp()
	r.facts.Charged(r.action, admission.Outcome{Failure: admission.Failed}, true, r.replica.now())
	r.next()
}

// decided goes on with the outcome of a charge.
func (r *request) decided(answer machine.Answer) {
	outcome := admission.Outcome{Decision: answer.Decision}
	if answer.Err != nil {
		outcome = admission.Outcome{Failure: admission.Failed}
	}
	r.facts.Charged(r.action, outcome, false, r.replica.now())
	r.next()
}

// answer ends the request, unless it is granted.
func (r *request) answer() {
	decision := r.facts.Outcome.Decision
	if ledger.IsGranted(decision) {
		r.stage = stageReply
		return
	}
	r.stage = stageNone
	if r.status == asking && !r.left {
		r.world.checkRefusal(r, decision)
	}
	r.fail("refused")
}

// cannotDecide notes that a quota can't decide and is let pass.
func (r *request) cannotDecide(why any) {
	r.world.counts.passed++
	if r.world.shape.calm && r.world.namespaces.newest[r.namespace] != nil {
		r.world.failf("request %d was not decided: %v", r.id, why)
	}
}

// isNamedIn reports whether the question names a quota.
func (r *request) isAskedOf(q int, uid types.UID) bool {
	return uid != "" && r.asked.quotas[q] == uid
}
