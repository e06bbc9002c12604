// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machine is all enforcement of one quota in one process, as a pure state machine: Step takes an event and
// returns effects.
//
// It has no clock, client, context, goroutine, lock or log. Package driver adds these around it, once. So each event in
// a cluster can be simulated, step by step, with several machines in one goroutine.
//
//	events                                    effects
//	Charge · Edit · Cancel   callers          Answer
//	Counted · Observed       the count        Observe
//	Seen · Gone              the watch        Load · Swap      one call at a time
//	Replaced                 Group.Replace
//	Loaded · Swapped         the store        WakeAt
//	Tick · Return · End      time             Committed · Conflicted · Failed · Impossible
//
//	                        due                      judged                       written
//	queue ──────────────► batch ──► (Load) ──► (Observe) ──► Swap ────────────► Answer
//	  ▲                     ▲          ▲                       │ conflict, lost   │ denied, and patient
//	  │ arrives             │          └───────────────────────┘                  ▼
//	  │                     └──────────── has room again ───────────────────── parked ◄── arrives, and doesn't fit
//
// Charges and edits that wait form a batch. A batch is judged in order on the newest ledger known, written with one
// compare-and-swap, and only then answered. While one write is under way, the next batch gathers. A charge that does
// not fit is parked for a moment, without a batch if that is known when it arrives, and judged with every batch that may
// have room for it, because the count includes deletions only after a moment. Changes of the count are settled in the
// same writes.
//
// After the count or the ledger has changed, the machine weighs a settle: it asks for the count, and computes the
// changes that a settle by it would make. If there are none, it doesn't settle. If used + reserved would stay as they
// are, the settle may wait for other changes, to share a write with them. If nothing that the quota limits is counted
// yet, the settle waits for a first count, for some seconds. Otherwise it makes a batch due.
//
// Invariants:
//
//   - nothing is granted before the write that reserves it has succeeded;
//   - nothing is denied on a state that was read before the charge arrived, nor
//     because of another charge whose write has not succeeded;
//   - nothing is denied by a spec that was replaced more than a second before that state was read;
//   - if there is no ledger, or it was edited, everything is undecided and nothing is written, because the charges in
//     flight are not known;
//   - each charge is answered once, unless its caller gave up: then it is released;
//   - at most one call is under way, and an event that no call can have caused changes
//     nothing and is reported.
package machine
