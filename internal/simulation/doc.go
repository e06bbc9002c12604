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
//   - the front end: live reads, several quotas, callers who leave;
//   - the leader: definitions, the making of ledgers, expiry and doubt with live looks, the webhook
//     configuration and recounts. Every call of these is a step of its own, and may be lost.
//     A deposed leader goes on with what it knew;
//   - the webhook for quotas, which has a ledger bind before a limit is lowered, or a mode
//     becomes Deny;
//   - clients and administrators, who create, update, delete, relabel, lower, raise and
//     remove; objects that nobody is asked about; requests that fail after admission;
//     somebody who deletes or edits ledgers, or deletes the configuration; somebody who puts etcd
//     back to a backup; an API version that isn't served; crashes between any two steps; clocks that
//     are wrong by up to an hour, jump, or stand still.
//
// Not modelled are ledgers that are edited with a right checksum, entries that are not exact, warnings,
// quotas that admit requests while nobody can decide, scopes, changes of selectors, forged requests,
// dry runs, and objects that are stored in a namespace after it was deleted.
//
// # The check
//
// The commit of a request must not take what lives under a quota above its limit. That is
// checked if the API server asked about it by an entry that names the quota, and if the
// namespace has been the quota's from before the request began. The limit is the highest
// that was in force since the request began, so a lowered limit binds every request that
// begins after the edit was stored.
//
// One exception is made. Nobody was asked about what was stored before the quota or before
// the namespace was the quota's, by an entry without the quota, or without any entry. Such
// use doesn't count for a request until the ledger that granted it includes it. A ledger
// includes what had been counted when it was settled; or when the leader found nothing to
// settle in it, because equal use is known, too. How far a count had come is noted by the
// simulation, which doesn't believe what the ledger says of that. Two bounds keep the
// exception narrow: that the request's own namespace is the quota's must have been known;
// and in a cluster that is left alone, a leader may know of use that the ledger lacks for
// 110 ms at most.
//
// A quota whose mode is Audit has no limit, and denies nothing unless its mode, or a fence,
// was another since the request began. What it can't decide is let pass, and counts as use
// that nobody was asked about.
//
// In a cluster that is left alone, no request is denied what has been free for 400 ms, and
// none is left undecided. Free is what neither lives nor is reserved for a request that has
// not been stored; a request that failed holds its room until it expires, as documented.
//
// No quota denies a request if the namespace had left it more than five seconds before.
//
// What a front end finds of a namespace must be as new as the question's epoch, and as what it
// says to have seen of namespaces.
//
// When everything stands still, used equals what lives, nothing is reserved and no fence
// stands.
//
// # The parts
//
// TestSchedules, TestKeptSeeds and TestFresh run random schedules: a cluster comes up, is
// disturbed for 50 to 120 steps, comes to rest, and is worked with undisturbed. Half of them
// have a theme, which makes a rare coincidence likely. About 1000 of them take a second of
// one core. TestEveryOrder makes every order of up to twelve steps in small worlds, which
// have 80,000 states together. TestMutations puts defects into the operator, each of
// which must be found. A failure is shrunk and told line by line; SIMULATE_SEED replays it,
// and SIMULATE_MACHINES tells what each machine was told.
package simulation
