// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

const ms = time.Millisecond

// at is a time so long after the last batch.
func at(after time.Duration) time.Time { return time.Unix(1000, 0).Add(after) }

func TestTheNextBatchIsDue(t *testing.T) {
	options := Options{Pace: 40 * ms, PaceEach: 2 * ms}
	for name, test := range map[string]struct {
		situation situation
		want      time.Time
	}{
		"never, if nothing waits":                                           {want: never},
		"at once for a lone client":                                         {situation: situation{charges: 1, lastCharges: 1}, want: at(0)},
		"at once for the first charge there ever is":                        {situation: situation{charges: 1}, want: at(0)},
		"a pace later, if fewer charges wait than the last batch had":       {situation: situation{charges: 2, lastCharges: 3}, want: at(40 * ms)},
		"after 2 ms for each charge of the last batch, if as many wait":     {situation: situation{charges: 4, lastCharges: 4}, want: at(6 * ms)},
		"half a pace later at most, after a batch of 50 charges":            {situation: situation{charges: 50, lastCharges: 50}, want: at(20 * ms)},
		"half a pace later for an edit":                                     {situation: situation{edits: 1}, want: at(20 * ms)},
		"half a pace later for a settle that must not wait":                 {situation: situation{settle: urgent}, want: at(20 * ms)},
		"four paces later for a settle that may":                            {situation: situation{settle: lazy}, want: at(160 * ms)},
		"with the charges, for a settle that may wait":                      {situation: situation{settle: lazy, charges: 1, lastCharges: 1}, want: at(0)},
		"at once for an edit that may make room for the parked":             {situation: situation{edits: 1, parked: true, patience: at(150 * ms)}, want: at(0)},
		"at once for a settle that may make room for the parked":            {situation: situation{settle: urgent, parked: true, patience: at(150 * ms)}, want: at(0)},
		"at the end of the patience of the parked":                          {situation: situation{parked: true, patience: at(150 * ms)}, want: at(150 * ms)},
		"at once for the parked, if another ledger was seen":                {situation: situation{parked: true, patience: at(150 * ms), fresher: true}, want: at(0)},
		"beside another replica a lone client doesn't wait either":          {situation: situation{charges: 1, lastCharges: 1, contended: true, lastWrite: 9 * ms}, want: at(0)},
		"beside another replica at half the pace":                           {situation: situation{charges: 2, lastCharges: 3, contended: true, lastWrite: 5 * ms}, want: at(80 * ms)},
		"beside another replica two writes later":                           {situation: situation{charges: 3, lastCharges: 3, contended: true, lastWrite: 50 * ms}, want: at(100 * ms)},
		"beside another replica no more than 200 ms later":                  {situation: situation{charges: 3, lastCharges: 3, contended: true, lastWrite: time.Second}, want: at(200 * ms)},
		"beside another replica an edit leaves it its turn":                 {situation: situation{edits: 1, lastCharges: 3, contended: true, lastWrite: 50 * ms}, want: at(100 * ms)},
		"beside another replica an urgent settle leaves it its turn":        {situation: situation{settle: urgent, contended: true, lastWrite: 50 * ms}, want: at(100 * ms)},
		"beside another replica a settle for the parked leaves it its turn": {situation: situation{settle: urgent, parked: true, patience: at(150 * ms), lastCharges: 1, contended: true, lastWrite: 9 * ms}, want: at(18 * ms)},
		"beside another replica a fresher ledger leaves it its turn":        {situation: situation{parked: true, patience: at(150 * ms), fresher: true, contended: true, lastWrite: 9 * ms}, want: at(18 * ms)},
	} {
		t.Run(name, func(t *testing.T) {
			test.situation.lastBatch = at(0)
			if got := options.nextBatch(test.situation); !got.Equal(test.want) {
				t.Errorf("got %s after the last batch, want %s", got.Sub(at(0)), test.want.Sub(at(0)))
			}
		})
	}
}

// Places that became free go to charges that wait. So a charge waits the shorter the more others do, but not while about as many
// are granted as wait.
func TestPatience(t *testing.T) {
	options := Options{Patience: 150 * ms, MaxWaiting: 1000}
	for name, test := range map[string]struct {
		parked, relieved int
		after            time.Duration
		want             time.Duration
	}{
		"whole, for a lone client":                   {want: 150 * ms},
		"half, if ten wait":                          {parked: 10, want: 75 * ms},
		"a sixth, if fifty wait":                     {parked: 50, want: 25 * ms},
		"nearly whole, if many were granted of late": {parked: 50, relieved: 990, want: 142857 * time.Microsecond},
		"the same five seconds later":                {parked: 50, relieved: 990, after: 5 * time.Second, want: 142857 * time.Microsecond},
		"a sixth again, if that is ten seconds past": {parked: 50, relieved: 990, after: 10 * time.Second, want: 25 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(options)
			m.now = at(0)
			for range test.parked {
				m.park(&entry{})
			}
			for range test.relieved {
				m.answer(&entry{parked: true, pending: ledger.Granted{}})
			}
			m.answer(&entry{parked: true, pending: ledger.Denied{}})
			m.answer(&entry{pending: ledger.Granted{}})
			m.now = at(test.after)
			if got := m.Patience().Truncate(time.Microsecond); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
