// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

const (
	catchUpWait = 100 * time.Millisecond
	countWait   = 3 * time.Second
	countPoll   = 50 * time.Millisecond
)

// status is what the API server knows of a request.
type status int

const (
	// asking: the webhook was asked.
	asking status = iota
	// admitted: nothing stands against it.
	admitted
	persisted
	failed
)

// stage is what the front end of a replica does for a request.
type stage int

const (
	stageNone stage = iota
	// stageCatchUp waits for the watch of quotas.
	stageCatchUp
	// stageListQuotas, because the question is newer than the watch.
	stageListQuotas
	stageReadNamespace
	// stageListToSettle, because entry and namespace disagree.
	stageListToSettle
	stageCharge
	// stageLook and stageLookAtQuotas read again before a refusal.
	stageLook
	stageLookAtQuotas
	stagePause
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
	// rise is what it adds.
	rise   figures
	asked  question
	status status
	// left: the API server doesn't wait for an answer any more.
	left bool
	// limit is the highest that was in force since it began, of the quota with the UID.
	limit   [maxQuotas]figures
	limitOf [maxQuotas]types.UID
	// granted is the ledger in which it was reserved last.
	granted [maxQuotas]*stored
	// passed are quotas that couldn't decide, and refuse nothing.
	passed [maxQuotas]bool

	stage     stage
	until     time.Time
	atLeast   uint64
	read      read
	covering  []*quota
	knowledge ledger.Knowledge
	// again: a charge was not granted, and refused is why. It is tried again until
	// patience.
	again    bool
	refused  ledger.Decision
	patience time.Time
	charging charging
}

// read is a live read.
type read struct {
	done      bool
	failed    bool
	began     time.Time
	after     uint64
	namespace *namespace
	quotas    []*quota
	revision  uint64
}

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
	r.cover(0)
}

// cover finds out which quotas cover the namespace.
func (r *request) cover(atLeast uint64) {
	r.atLeast = atLeast
	if r.asked.epoch > r.replica.coverage.seenQuotas && !r.world.mutation.noEpoch {
		r.stage, r.until = stageCatchUp, r.replica.now().Add(catchUpWait)
		return
	}
	r.coverNamespace()
}

func (r *request) coverNamespace() {
	seen, mutation := &r.replica.coverage, r.world.mutation
	known := seen.state(r.namespace, r.asked)
	settled := mutation.noWitness || seen.isSettled(known, r.asked, r.replica.now(), mutation.trustsLooks)
	if known.namespace == nil || known.seen < r.atLeast && !mutation.noLook || !settled {
		r.beginRead(stageReadNamespace)
		return
	}
	r.covered(known)
}

func (r *request) beginRead(stage stage) {
	r.stage = stage
	r.read = read{began: r.replica.now(), after: max(r.atLeast, r.replica.coverage.seen)}
}

// isReading reports whether a live read is awaited that has not happened.
func (r *request) isReading() bool { return r.reads() && !r.read.done }

func (r *request) reads() bool {
	switch r.stage {
	case stageListQuotas, stageReadNamespace, stageListToSettle, stageLook, stageLookAtQuotas:
		return true
	default:
		return false
	}
}

// takeRead has the API server answer a live read.
func (r *request) takeRead(fails bool) {
	r.read.done, r.read.failed = true, fails
	r.read.namespace = r.world.namespaces.newest[r.namespace]
	r.read.quotas = append([]*quota(nil), r.world.quotas.newest...)
	r.read.revision = r.world.revision
}

// isReady reports whether the front end can go on.
func (r *request) isReady() bool {
	now := r.replica.now()
	switch r.stage {
	case stageNone, stageReply:
		return false
	case stageCatchUp:
		return r.replica.coverage.seenQuotas >= r.asked.epoch || !r.until.After(now)
	case stageCharge:
		return r.charging.reply.came
	case stagePause:
		return !r.until.After(now)
	default:
		return r.read.done
	}
}

// wakeAt is when a timer makes it ready; zero for never.
func (r *request) wakeAt() time.Time {
	if r.stage == stageCatchUp || r.stage == stagePause {
		return r.until.Add(-r.replica.offset)
	}
	return time.Time{}
}

// goOn does what comes next.
func (r *request) goOn() {
	if r.reads() && (r.read.failed || r.read.namespace == nil && (r.stage == stageReadNamespace || r.stage == stageLook)) {
		r.refuse(nil)
		return
	}
	seen := &r.replica.coverage
	switch r.stage {
	case stageCatchUp:
		if seen.seenQuotas >= r.asked.epoch {
			r.coverNamespace()
			return
		}
		r.beginRead(stageListQuotas)
	case stageListQuotas:
		seen.mergeQuotas(r.read.quotas, r.read.revision)
		r.coverNamespace()
	case stageReadNamespace:
		r.goOnCovering()
	case stageListToSettle:
		seen.mergeQuotas(r.read.quotas, r.read.revision)
		known := seen.state(r.namespace, r.asked)
		if known.namespace == nil {
			r.refuse(nil)
			return
		}
		seen.settle(r.namespace, known.namespace.revision, r.asked)
		r.covered(known)
	default:
		r.goOnCharging()
	}
}

func (r *request) goOnCovering() {
	seen := &r.replica.coverage
	seen.mergeNamespace(r.read.namespace, r.read.began, r.read.after)
	known := seen.state(r.namespace, r.asked)
	if known.settled || r.world.mutation.noWitness || agrees(seen.covering(known.namespace), r.asked) {
		r.covered(known)
		return
	}
	r.beginRead(stageListToSettle)
}

func (r *request) goOnCharging() {
	seen := &r.replica.coverage
	switch r.stage {
	case stageCharge:
		r.charged()
	case stageLook:
		seen.mergeNamespace(r.read.namespace, r.read.began, r.read.after)
		r.lookedAtNamespace(seen.state(r.namespace, question{}))
	case stageLookAtQuotas:
		known := seen.state(r.namespace, question{})
		for _, covering := range seen.covering(known.namespace) {
			if live := r.read.quotas[covering.quota]; live != nil {
				seen.putQuota(live)
			} else {
				seen.removeQuota(covering.quota, covering.revision)
			}
		}
		r.covered(known)
	case stagePause:
		r.lookAgain()
	default:
	}
}

// covered goes on with the quotas that cover the namespace.
func (r *request) covered(known known) {
	before := r.covering
	r.covering = r.replica.coverage.covering(known.namespace)
	r.knowledge = ledger.Knowledge{Seen: known.seen}
	if known.namespace != nil {
		r.knowledge.Namespace = known.namespace.revision
	}
	if r.world.mutation.noKnowledge {
		r.knowledge = ledger.Knowledge{Seen: 1 << 62}
	}
	if _, denied := r.refused.(ledger.Denied); r.again && denied && sameLimits(before, r.covering) {
		r.refuse(r.refused)
		return
	}
	r.charge()
}

func sameLimits(a, b []*quota) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].uid != b[i].uid || a[i].generation != b[i].generation {
			return false
		}
	}
	return true
}

// decided takes the outcome of a charge.
func (r *request) decided(answer machine.Answer) {
	_, granted := answer.Decision.(ledger.Granted)
	switch now := r.replica.now(); {
	case answer.Err != nil:
		r.refuse(nil)
	case granted:
		r.stage = stageReply
	case !r.again:
		r.again, r.refused, r.patience = true, answer.Decision, now.Add(countWait)
		r.lookAgain()
	default:
		r.refused = answer.Decision
		_, denied := answer.Decision.(ledger.Denied)
		switch {
		case now.After(r.patience):
			r.refuse(answer.Decision)
		case denied:
			r.lookAgain()
		default:
			r.stage, r.until = stagePause, now.Add(countPoll)
		}
	}
}

// lookAgain makes sure of a decision other than yes.
func (r *request) lookAgain() {
	if undecided, ok := r.refused.(ledger.Undecided); ok && undecided.Reason == ledger.StaleNamespaces {
		r.cover(undecided.Members)
		return
	}
	seen, now := &r.replica.coverage, r.replica.now()
	known := seen.state(r.namespace, r.asked)
	if !known.isVerified(now) || !seen.isSettled(known, r.asked, now, r.world.mutation.trustsLooks) {
		r.atLeast = 0
		r.beginRead(stageLook)
		return
	}
	r.lookedAtNamespace(known)
}

func (r *request) lookedAtNamespace(known known) {
	if _, denied := r.refused.(ledger.Denied); denied {
		r.covered(known)
		return
	}
	r.beginRead(stageLookAtQuotas)
}

// refuse ends the request; the decision is nil if something failed.
func (r *request) refuse(decision ledger.Decision) {
	if q := r.undecidedBy(decision); q >= 0 {
		r.pass(q)
		r.charge()
		return
	}
	r.stage = stageNone
	if r.status == asking && !r.left {
		r.world.checkRefusal(r, decision)
	}
	r.fail("refused")
}

// undecidedBy returns the quota that can't decide and would refuse nothing, as the front end knows it; -1 for none.
func (r *request) undecidedBy(decision ledger.Decision) int {
	undecided, ok := decision.(ledger.Undecided)
	for _, covering := range r.covering {
		if ok && covering.audits && r.world.vocabulary.quotas[covering.quota] == undecided.Quota && !r.passed[covering.quota] {
			return covering.quota
		}
	}
	return -1
}

// pass goes on without a quota: nothing is reserved there.
func (r *request) pass(q int) {
	r.passed[q] = true
	r.world.counts.passed++
	if r.world.shape.calm && r.world.namespaces.newest[r.namespace] != nil {
		r.world.failf("request %d was not decided by quota %s", r.id, r.world.vocabulary.quotas[q])
	}
}

// isNamedIn reports whether the question names a quota.
func (r *request) isAskedOf(q int, uid types.UID) bool {
	return uid != "" && r.asked.quotas[q] == uid
}
