// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// promise is room that is kept for an owner that was woken.
type promise struct {
	owner Key
	// one is the cost of one object, and amount the promised amount.
	one, amount corev1.ResourceList
	made        time.Time
	// heard: the owner was granted an object.
	heard bool
}

// growth is an increase of the charged amounts at a time.
type growth struct {
	amount corev1.ResourceList
	at     time.Time
}

// ends returns when a promise ends that isn't kept.
func (r *Room) ends(promised *promise) time.Time {
	ends := promised.made.Add(promiseLife)
	if later := r.progress.Add(promiseQuiet); later.After(ends) {
		ends = later
	}
	if longest := promised.made.Add(longestPromise); longest.Before(ends) {
		ends = longest
	}
	return ends
}

// promise keeps room for an owner that is woken.
func (r *Room) promise(record Record, amount corev1.ResourceList, planned *planning) {
	r.promises = append(r.promises, promise{owner: record.Key(), one: record.Requested, amount: amount, made: planned.now})
	if r.trusts(record.Namespace) {
		take(planned.left, amount)
		return
	}
	planned.own[record.Namespace] = quota.Add(planned.own[record.Namespace], amount)
}

// trusts reports whether promises in a namespace keep room from others.
func (r *Room) trusts(namespace string) bool {
	_, distrusted := r.distrusted[namespace]
	return !distrusted
}

// promisedUntil returns until when something is promised to each owner.
func (r *Room) promisedUntil() map[Key]time.Time {
	until := make(map[Key]time.Time, len(r.promises))
	for i := range r.promises {
		until[r.promises[i].owner] = r.ends(&r.promises[i])
	}
	return until
}

// apply takes an amount from the growths, and returns the rest of the amount.
func apply(all []growth, amount corev1.ResourceList) (rest corev1.ResourceList) {
	for i := range all {
		was := all[i].amount
		all[i].amount = remainder(was, amount)
		amount = remainder(amount, was)
	}
	return amount
}

// grow notes an increase of the charged amounts.
func (r *Room) grow(now time.Time, charged corev1.ResourceList) {
	if len(r.promises) > 0 || len(r.owed) > 0 {
		if grown := remainder(quota.Mask(charged, quota.ResourceNames(r.charged)), r.charged); len(grown) > 0 {
			r.progress = now
			if rest := apply(r.owed, grown); len(rest) > 0 {
				r.growth = append(r.growth, growth{amount: rest, at: now})
			}
		}
	}
	r.charged = charged
}

// settle applies growth of which no news came to the oldest promises, and ends promises that are kept or too old.
func (r *Room) settle(now time.Time) {
	recent := r.growth[:0]
	for _, one := range r.growth {
		if now.Sub(one.at) < newsDelay {
			recent = append(recent, one)
			continue
		}
		for i := range r.promises {
			was := r.promises[i].amount
			r.promises[i].amount = remainder(was, one.amount)
			one.amount = remainder(one.amount, was)
		}
	}
	r.growth = recent
	r.owed = slices.DeleteFunc(r.owed, func(one growth) bool { return len(one.amount) == 0 || now.Sub(one.at) >= chargeDelay })
	maps.DeleteFunc(r.distrusted, func(_ string, until time.Time) bool { return !now.Before(until) })
	r.promises = slices.DeleteFunc(r.promises, func(promised promise) bool {
		isKept := len(promised.amount) == 0
		isOver := isKept || !now.Before(r.ends(&promised))
		if isOver && (!promised.heard || !isKept) { // if growth ended it, another object came
			r.distrusted[promised.owner.Namespace] = now.Add(distrustLife)
		}
		return isOver
	})
}

// outstanding is the sum of promises that keep room from all and aren't kept yet.
func (r *Room) outstanding() corev1.ResourceList {
	var promised corev1.ResourceList
	for i := range r.promises {
		if r.trusts(r.promises[i].owner.Namespace) {
			promised = quota.Add(promised, r.promises[i].amount)
		}
	}
	for i := range r.growth {
		promised = remainder(promised, r.growth[i].amount)
	}
	return promised
}

// promisedIn returns the promised amounts in each distrusted namespace.
func (r *Room) promisedIn() map[string]corev1.ResourceList {
	promised := map[string]corev1.ResourceList{}
	for i := range r.promises {
		if namespace := r.promises[i].owner.Namespace; !r.trusts(namespace) {
			promised[namespace] = quota.Add(promised[namespace], r.promises[i].amount)
		}
	}
	return promised
}

func (r *Room) release(owner Key) {
	r.promises = slices.DeleteFunc(r.promises, func(promised promise) bool { return promised.owner == owner })
}

// left is the part of the limit that is neither charged nor promised.
func (r *Room) left(free Free) corev1.ResourceList {
	left := subtract(free.Hard, free.Charged)
	take(left, r.outstanding())
	for i := range r.owed {
		take(left, r.owed[i].amount)
	}
	return left
}
