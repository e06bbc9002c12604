// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import "time"

// Options bound the work of a Machine.
type Options struct {
	// Pace is the time between two batches under load. A batch is due sooner
	// when as many charges wait as the last one had.
	Pace time.Duration
	// PaceEach is the least pause before a batch, for each charge of the batch before it
	// beyond the first. All together are half the Pace at most.
	PaceEach time.Duration
	// Patience is how long at most a charge that doesn't fit waits for room
	// before it is denied: the count includes deletions only after a moment.
	Patience time.Duration
	// MaxWaiting bounds the queued and parked entries of one quota. The batch under way comes on top of that.
	MaxWaiting int
	// Escrow bounds the grants without a write.
	Escrow EscrowOptions
}

const (
	// contendedFor is how long after another replica's write this one still leaves pauses
	// for it.
	contendedFor = 10 * time.Second
	// maxTurn bounds the pause that is left to other replicas.
	maxTurn = 200 * time.Millisecond
	// lazyPaces is how many paces a settle that may wait does so. Each write of a
	// leader that only counts may cost a busy replica a conflict.
	lazyPaces = 4
	// freedPaces is how many paces a settle waits that frees something far from every limit, which helps only charges
	// for more than a part of it: less than a charge's Patience.
	freedPaces = 2
	// idlePaces is how many paces a settle waits that changes no answer: far from every limit.
	idlePaces = 25
	// specFor is how long the version of the spec that was read serves for denials by that same version: less than the two
	// seconds in which a change of a quota binds.
	specFor = time.Second
	// weighEvery is how often at most it is found out whether a settle may wait.
	weighEvery = 5 * time.Millisecond
	// weighIdly is the same while every limit is far.
	weighIdly = 100 * time.Millisecond
	// behindEvery is how often a count is looked at that was behind the ledger.
	behindEvery = time.Second
	// blankFor is how long a settle without an amount is put off. The first count needs a write anyway.
	blankFor = 4 * time.Second
	// untakenFor is how long the ledger does not take the count before that is reported.
	untakenFor = 5 * time.Second
	// leastCrowd is how many charges that wait halve the patience of one more, if none that waited was granted of late.
	leastCrowd = 10
	// reliefFor is how long a charge that waited and was granted counts as one of late, at least.
	reliefFor = 5 * time.Second
)
