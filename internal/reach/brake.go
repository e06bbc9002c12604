// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"fmt"
	"time"
)

const (
	// firstPause and longestPause bound how long a repair waits in a fight.
	firstPause, longestPause = time.Second, 3 * time.Minute
	// calm is how long a repair has to last for the fight to be over: the next edit is
	// repaired at once. It is longer than longestPause, and than others usually take to
	// look at what they manage, which is up to three minutes.
	calm = 5 * time.Minute
	// shortestTrial is for how long a repair is not believed to last, whatever was before.
	shortestTrial = time.Second
)

// Brake paces the repairs of the configuration. In a fight, each repair is reverted, and
// waits for twice as long as the one before. The zero Brake has seen no edit.
type Brake struct {
	// edited is since when the configuration is not as it should be, because of somebody
	// else; zero while it is.
	edited time.Time
	// repaired is when an edit was last repaired; zero for never.
	repaired time.Time
	// pause is how long the present repair has to wait, and lasted how long the one before
	// had lasted when it was reverted.
	pause, lasted time.Duration
	// reverted is how many repairs were reverted since began, the first edit of the fight.
	reverted int
	began    time.Time
}

// Edited notes that somebody else has edited the configuration, unless that is known. It
// reports whether it wasn't.
func (b *Brake) Edited(now time.Time) bool {
	switch {
	case !b.edited.IsZero():
		return false
	case b.repaired.IsZero(), now.Sub(b.repaired) > calm:
		*b = Brake{edited: now, began: now}
	default:
		b.edited, b.lasted = now, now.Sub(b.repaired)
		b.pause = min(max(2*b.pause, firstPause), longestPause)
		b.reverted++
	}
	return true
}

// IsEdited reports whether there is an edit that is not repaired.
func (b *Brake) IsEdited() bool { return !b.edited.IsZero() }

// Repaired notes that the configuration was written as it should be.
func (b *Brake) Repaired(now time.Time) {
	if b.IsEdited() {
		b.edited, b.repaired = time.Time{}, now
	}
}

// Wait returns how long the repair has to wait.
func (b *Brake) Wait(now time.Time) time.Duration {
	if !b.IsEdited() {
		return 0
	}
	return max(0, b.edited.Add(b.pause).Sub(now))
}

// Trial returns how long the last repair must still last before it is believed. The trial is as long as the
// repair had waited, or twice as long as the one before it lasted, whichever is more; at least one second,
// and at most five minutes. So an editor that comes back regularly is taken for gone once at most.
func (b *Brake) Trial(now time.Time) time.Duration {
	if b.repaired.IsZero() || b.IsEdited() {
		return 0
	}
	return max(0, b.repaired.Add(b.trial()).Sub(now))
}

func (b *Brake) trial() time.Duration { return min(max(shortestTrial, b.pause, 2*b.lasted), calm) }

// Words says how the fight stands, and what was changed. What is said changes only with what
// others do, and with each repair.
func (b *Brake) Words(changes string) string {
	at := func(moment time.Time) string { return moment.UTC().Format(time.RFC3339) }
	text := "somebody else edited the webhook configuration " + ConfigurationName
	if b.reverted > 0 {
		times := "once"
		if b.reverted > 1 {
			times = fmt.Sprintf("%d times", b.reverted)
		}
		text = fmt.Sprintf("somebody else edits the webhook configuration %s against the operator, and reverted its repair %s since %s",
			ConfigurationName, times, at(b.began))
	}
	text += ": " + changes
	switch {
	case b.reverted == 0:
		return text
	case b.IsEdited():
		return text + "; the next repair is at " + at(b.edited.Add(b.pause))
	default:
		return text + "; the last repair counts once it has lasted until " + at(b.repaired.Add(b.trial()))
	}
}
