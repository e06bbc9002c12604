// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

const (
	// firstPause and longestPause bound how long an owner that was woken isn't woken again. The pause
	// doubles each time, because each attempt that fails lengthens its controller's own.
	firstPause, longestPause = time.Second, time.Minute
	// mostUnheard is how often an owner is woken of which nothing is heard.
	mostUnheard = 5
	// promiseLife is for how long room is kept for an owner that was woken and doesn't try. The controller
	// of Jobs waits a second before it acts on a change.
	promiseLife = 5 * time.Second
	// promiseQuiet is for how long no promise must have been kept before one ends: a controller that is
	// busy with many owners, or may make few requests, comes to the last of them late. But none is kept
	// for longer than longestPromise.
	promiseQuiet, longestPromise = 3 * time.Second, time.Minute
	// newsDelay is how late news of a grant comes from another replica at most, as a rule: a replica that remembers as
	// much as it may publishes it every three to four seconds.
	newsDelay = 5 * time.Second
	// chargeDelay is how late an object is charged of which there was news. If something else was deleted
	// meanwhile, that it was charged can't be seen.
	chargeDelay = time.Second
	// distrustLife is how long promises in a namespace keep no room from others, after a promise there that wasn't kept
	// in full.
	distrustLife = 5 * time.Minute
	// longestRest bounds for how long an owner that couldn't be woken isn't woken again.
	longestRest = 5 * time.Minute
	// againSoon is how soon to plan again if fewer may be woken than fit.
	againSoon = 50 * time.Millisecond
)

// Free is the room that a quota has.
type Free struct {
	// Hard is the limit, Surge the room above it for owners whose objects replace others, and Charged the used and reserved
	// amounts.
	Hard, Surge, Charged corev1.ResourceList
	// Limits reports whether the quota still limits a namespace. If it doesn't, everything fits there.
	Limits func(namespace string) bool
}

// Room plans the wakes of one quota's owners. It isn't for concurrent use.
//
// Amounts that are promised to woken owners are no room for others, unless a promise in their namespace wasn't kept a
// short while ago. A promise is kept if its owner is granted an object. That news may come late, from another replica,
// when the charged amounts have grown already. So growth counts as promises that were kept. If no news comes, it is
// applied to the oldest ones, because the owner of the object doesn't matter: either the owner has its room, or another
// object took it. A promise that isn't kept ends after some seconds.
//
// The news may also come first, because grants from escrow aren't charged before they are counted.
type Room struct {
	// charged is the charged amount at the last look.
	charged  corev1.ResourceList
	promises []promise
	// growth is by how much that has grown of late, but for objects of which there was news.
	growth []growth
	// owed is of objects of which there was news of late, and that isn't charged yet.
	owed []growth
	// progress is when a promise was kept last, or an owner refused that had one.
	progress time.Time
	// key -> how it was woken
	woken map[Key]*woken
	// namespace -> when its distrust ends. Until then its promises keep room only from its own other owners: a promise
	// ended there that wasn't kept, so the controllers of its owners may never try.
	distrusted map[string]time.Time
}

// woken is the memory of an owner that was woken and still waits.
type woken struct {
	at, next time.Time
	// last is when it had been refused last by then.
	last  time.Time
	pause time.Duration
	// lacks is how many objects it lacked when it was woken.
	lacks int64
	// heard: it was refused again after it was woken.
	heard bool
	// unheard is how often in a row it was woken, and nothing was heard of it.
	unheard int
	// failed is how often in a row it couldn't be woken.
	failed int
}

// Plan has the next actions for the owners of a quota.
type Plan struct {
	// Wake has the owners to wake now, in this order.
	Wake []Record
	// Forget are owners of which nothing is heard however often they are woken.
	Forget []Key
	// RefusedAgain is how many were woken and refused again since the last plan.
	RefusedAgain int
	// Next is how soon to plan again, even if nothing changes; zero if that isn't necessary.
	Next time.Duration
}

// NewRoom makes a Room in which nothing is promised.
func NewRoom() *Room { return &Room{woken: map[Key]*woken{}, distrusted: map[string]time.Time{}} }

// Plan returns the waiting owners, in the order of their first refusals, that are woken now: as many as fit, at most so
// many. An owner that was woken before comes after the owners that have waited since then.
func (r *Room) Plan(now time.Time, waiting []Record, free Free, most int) Plan {
	var plan Plan
	r.grow(now, free.Charged)
	r.forget(now, waiting)
	for i := range waiting {
		plan.RefusedAgain += r.hear(now, &waiting[i])
	}
	r.settle(now)
	planned := planning{now: now, free: free, left: r.left(free), own: r.promisedIn(), promised: r.promisedUntil(), most: most}
	for _, record := range r.inTurn(waiting) {
		r.consider(record, &planned, &plan)
	}
	if !planned.next.IsZero() {
		plan.Next = max(planned.next.Sub(now), time.Millisecond)
	}
	return plan
}

// planning is the state of one plan.
type planning struct {
	now  time.Time
	free Free
	left corev1.ResourceList
	// own are the promised amounts in distrusted namespaces. namespace -> amounts
	own map[string]corev1.ResourceList
	// key -> until when something is promised
	promised map[Key]time.Time
	most     int
	// unpromised is the part of the limit that isn't charged; nil until it is
	// needed.
	unpromised corev1.ResourceList
	// next is when something more may be woken, if nothing changes; zero for never.
	next time.Time
}

// fits reports whether an owner's object fits into the room that is left for its
// namespace.
func (p *planning) fits(record *Record) bool {
	left := p.left
	if own := p.own[record.Namespace]; len(own) > 0 {
		left = subtract(left, own)
	}
	return fits(record.Requested, p.free.with(record, left), p.free.Hard)
}

// with returns the amounts that are left for an owner: also surge, if its objects replace others.
func (f Free) with(record *Record, left corev1.ResourceList) corev1.ResourceList {
	if !record.Replaces || len(f.Surge) == 0 {
		return left
	}
	return quota.Add(left, f.Surge)
}

func (p *planning) soon(at time.Time) {
	if p.next.IsZero() || at.Before(p.next) {
		p.next = at
	}
}

// consider wakes an owner if it fits and has its turn.
func (r *Room) consider(record Record, planned *planning, plan *Plan) {
	limited := planned.free.Limits(record.Namespace)
	known := r.woken[record.Key()]
	ends, promised := planned.promised[record.Key()]
	switch {
	case promised: // its controller has yet to try
		planned.soon(ends)
	case known != nil && known.unheard >= mostUnheard && !planned.now.Before(known.next):
		plan.Forget = append(plan.Forget, record.Key())
	case limited && !planned.fits(&record):
		r.after(record, planned)
	case known != nil && planned.now.Before(known.next):
		planned.soon(known.next)
	case len(plan.Wake) >= planned.most:
		planned.soon(planned.now.Add(againSoon))
	default:
		plan.Wake = append(plan.Wake, record)
		amount := times(record.Requested, r.wake(planned.now, record))
		if limited {
			r.promise(record, amount, planned)
		}
	}
}

// after notes when a promise ends, if an owner would fit then.
func (r *Room) after(record Record, planned *planning) {
	if len(r.promises)+len(r.owed) == 0 {
		return
	}
	if planned.unpromised == nil {
		planned.unpromised = subtract(planned.free.Hard, planned.free.Charged)
	}
	if !fits(record.Requested, planned.free.with(&record, planned.unpromised), planned.free.Hard) {
		return
	}
	for i := range r.promises {
		planned.soon(r.ends(&r.promises[i]))
	}
	for i := range r.owed {
		planned.soon(r.owed[i].at.Add(chargeDelay))
	}
}

// wake notes that an owner is woken, and returns how many objects it lacks as far as is known: at least one.
func (r *Room) wake(now time.Time, record Record) (lacks int64) {
	known := r.woken[record.Key()]
	if known == nil {
		known = &woken{pause: firstPause / 2, lacks: 1}
		r.woken[record.Key()] = known
	}
	known.at, known.last, known.heard = now, record.Last, false
	known.unheard++
	known.pause = min(2*known.pause, longestPause)
	known.next = now.Add(max(known.pause, promiseLife)) // if it isn't refused
	return known.lacks
}

// Answered notes how many objects an owner lacks that was just woken: so many are promised to it.
func (r *Room) Answered(record Record, lacks int64) {
	if known := r.woken[record.Key()]; known != nil {
		known.failed = 0
	}
	if lacks <= 0 {
		r.release(record.Key())
		return
	}
	known := r.woken[record.Key()]
	if known == nil {
		return // its shortage was granted before the answer came
	}
	more := lacks - known.lacks
	known.lacks = lacks
	for i := range r.promises {
		promised := &r.promises[i]
		if promised.owner == record.Key() && more != 0 {
			promised.amount = quota.Add(promised.amount, times(record.Requested, more))
		}
	}
}

// Failed notes that an owner wasn't woken after all: nothing is promised to it, and it has its turn
// again after a pause that doubles. It isn't forgotten, because it waits.
func (r *Room) Failed(now time.Time, key Key) {
	r.release(key)
	if known := r.woken[key]; known != nil {
		known.unheard--
		known.next = now.Add(min(promiseLife<<min(known.failed, 10), longestRest))
		known.failed++
	}
}

// hear notes that an owner was refused again after it was woken: nothing is promised to it any more, and
// it pauses from then on. It returns how often it was. Another replica's clock may say that this was before
// it was woken, so only the replica's own times are compared.
func (r *Room) hear(now time.Time, record *Record) int {
	known := r.woken[record.Key()]
	if known == nil {
		return r.hearOfTheRest(now, record.Key())
	}
	if known.heard || !record.Last.After(known.last) {
		return 0
	}
	known.heard, known.unheard = true, 0
	known.next = now.Add(known.pause)
	r.progress = now
	r.release(record.Key())
	return 1
}

// hearOfTheRest notes that an owner was refused an object after it had been granted some of the promised ones. It
// returns how often it was.
func (r *Room) hearOfTheRest(now time.Time, owner Key) int {
	if !slices.ContainsFunc(r.promises, func(promised promise) bool { return promised.owner == owner }) {
		return 0
	}
	r.progress = now
	r.release(owner)
	return 1
}

// forget drops the memory of owners that wait no longer. Amounts promised to them stay promised, for the rest of their
// objects.
func (r *Room) forget(now time.Time, waiting []Record) {
	if len(r.woken) == 0 && len(r.promises) == 0 {
		return
	}
	still := make(map[Key]bool, len(waiting))
	for i := range waiting {
		still[waiting[i].Key()] = true
	}
	for key := range r.woken {
		if !still[key] {
			delete(r.woken, key)
		}
	}
	for i := range r.promises {
		if promised := &r.promises[i]; !promised.heard && !still[promised.owner] {
			promised.heard = true
			promised.amount = remainder(promised.amount, promised.one)
			if rest := apply(r.growth, promised.one); len(rest) > 0 {
				r.owed = append(r.owed, growth{amount: rest, at: now})
			}
		}
	}
}

// inTurn orders the waiting owners: by their first refusal, or by when they were woken last if that is later.
func (r *Room) inTurn(waiting []Record) []Record {
	turn := func(record *Record) time.Time {
		if known := r.woken[record.Key()]; known != nil && known.at.After(record.Since) {
			return known.at
		}
		return record.Since
	}
	return slices.SortedStableFunc(slices.Values(waiting), func(a, b Record) int { return turn(&a).Compare(turn(&b)) })
}
