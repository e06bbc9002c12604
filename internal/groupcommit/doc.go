/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package groupcommit turns many concurrent charges into few writes.
//
// Each quota has one committer: a queue and, while it isn't empty, one
// goroutine. What waits in the queue forms a batch; the batch is judged in
// order against the newest ledger, written with one compare-and-swap, and only
// then answered. While a write is under way the next batch gathers; with nobody
// waiting, a lone charge commits at once.
//
// A charge that doesn't fit is parked for a moment and judged with every batch
// meanwhile: what was just deleted takes a moment to be counted. Room goes to
// whoever has waited longest. When its patience is over, it is denied on a live
// read that all share who are denied with it.
//
// The package knows waiters, batches, retries, a clock and a Store. It knows no
// Kubernetes client and nothing of admission.
//
// Invariants:
//
//   - nothing is granted before the write that reserves it has succeeded;
//   - where there is no ledger, or one that somebody edited, everything is
//     undecided and nothing is written, for what is in flight isn't known;
//   - nothing is denied on a state that was read before the charge arrived, nor
//     because of another charge whose write has not succeeded;
//   - an answer is final: it is given once;
//   - a charge whose waiter gave up is released.
package groupcommit
