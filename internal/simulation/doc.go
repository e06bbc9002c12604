// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation simulates a cluster around the operator's machines. All of it is in
// tests, runs in one goroutine, and is decided by a seed.
//
// Real are the machines with the ledgers' arithmetic, the leader's count with its evaluators, and the
// front end's decisions (package admission) and its index of quotas and namespaces with its search.
// Modelled are:
//
//   - the API server: one order of revisions over namespaces, quotas, ledgers, objects and
//     the webhook configuration; its own views of namespaces and of the configuration, which
//     lag; compare-and-swap; deadlines of webhooks and requests;
//   - watches: each in order and late by any time, silent, or broken and listed again, as of
//     now or of a moment before;
//   - the driver of machines: calls that take effect and are answered apart, get lost before
//     or after, or take effect long after their caller has given up;
//   - the front end: live reads, several quotas, callers who leave; its look whether an object replaces another one, which
//     answers truthfully, fails, or takes too long;
//   - the leader: definitions, the making of ledgers, expiry and doubt with live looks, the webhook
//     configuration and recounts. Every call of these is a step of its own, and may be lost.
//     A deposed leader goes on with its knowledge;
//   - the webhook for quotas, which has a ledger bind before a limit is lowered, or a mode
//     becomes Deny;
//   - clients and administrators, who create, update, delete, relabel, lower, raise and
//     remove; objects about which the operator is not asked; requests that fail after admission;
//     users who delete or edit ledgers, or delete the configuration; administrators who put etcd
//     back to a backup; an API version that isn't served; crashes between any two steps; clocks that
//     are wrong by up to an hour, jump, or stand still.
//
// Not modelled are ledgers that are edited with a right checksum, entries that are not exact, warnings,
// quotas that admit requests that can't be decided, scopes, changes of selectors, forged requests, dry
// runs, and objects that are stored in a namespace after it was deleted.
//
// # The check
//
// The commit of a request must not take the living objects under a quota above its limit. That is
// checked if the API server asked about it by an entry that names the quota, and if the namespace
// has been the quota's from before the request began. The limit is the highest that was in force
// since the request began, so a lowered limit binds every request that begins after the edit was stored.
//
// One exception is made. The operator was not asked about use that was stored before the quota or
// before the namespace was the quota's, by an entry without the quota, or without any entry. Such
// use doesn't count for a request until the ledger that granted the request includes it. A ledger
// includes the use that had been counted when it was settled; or when the leader found nothing to
// settle in it, because equal use is known, too. The simulation notes how far a count had come. It
// doesn't believe the ledger's own account of that. Two bounds keep the exception narrow: that the
// request's own namespace is the quota's must have been known; and in a cluster that is left alone,
// a leader may know of use that the ledger lacks for 110 ms at most.
//
// A quota whose mode is Audit has no limit, and denies nothing unless its mode, or a fence, was
// another within a second before the request began, or since. A request that it can't decide is let pass, and counts as use
// about which the operator was not asked.
//
// In a cluster that is left alone, no request is denied room that has been free for 400 ms, and
// none is left undecided. Room is free if no living object has it, and it is not reserved for a
// request that has not been stored; a request that failed holds its room until it expires, as documented.
//
// No quota denies a request if the namespace had left it more than five seconds before.
//
// The quotas that a front end finds for a namespace must be as new as the question's epoch, and as
// the namespaces that it says to have seen.
//
// When everything stands still, used equals the amounts of the living objects, nothing is reserved and no fence stands.
//
// # Surge
//
// A quota may have surge, which edits raise, lower and remove, and some objects replace others. The request knows whether its
// object does; the operator learns it only by a look. It may take surge if it does, and if that was found out. All others
// are plain. Two limits are checked, each the highest that was in force since a request began: no commit may take the living
// objects above hard and surge, and none may make plain objects take surge.
//
// Objects are stored in another order than they are granted. With a limit of 10, a plain object may be granted as the tenth,
// and a replacement as the eleventh that is stored first. Then the commit of the plain one takes the living objects above
// hard, and nothing is wrong.
//
// But each object that lives has been charged since its grant, and a plain one is granted only if all that is charged is
// within hard. Take the plain object that was granted last, of those that live now. At its grant all of these were
// charged, but for replacements that were granted later. So the others are within the hard of that grant. This is checked at
// each commit, and for the plain object that is just stored, too. No more is true: the later replacements may take all of
// the surge, in any order.
//
// The order of grants is that of the versions of the ledger. Within one write it isn't known, so replacements that were granted in
// the same write count as later. A grant from escrow has the version on which it was judged: its room was charged
// within hard by then.
//
// In a cluster that is left alone, no replacement is denied room that hard and surge have had for 400 ms.
//
// A denial rests on a look at the spec's version that is a second old at most. So the fence of a lowered surge matters to a
// request that a quota denies, that is then proved to be a replacement, and that is charged to a quota whose edit this replica
// has not seen.
//
// # The parts
//
// TestSchedules, TestSurge, TestKeptSeeds and TestFresh run random schedules: a cluster comes up, is disturbed
// for 50 to 120 steps, comes to rest, and is worked with undisturbed. Half of them have a theme,
// which makes a rare coincidence likely. About 1000 of them take a second of one core.
// TestEveryOrder makes every order of up to twelve steps in small worlds, which have 80,000 states
// together. TestMutations puts defects into the operator, each of which must be found. A failure is
// shrunk and told line by line; SIMULATE_SEED replays it, and SIMULATE_MACHINES describes the events of each machine.
package simulation
