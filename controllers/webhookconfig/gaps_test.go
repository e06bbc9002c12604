// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// Objects may have been stored without a request while there was no count.
func TestALeaderHasWhatIsUncoveredCountedAnewBeforeItWrites(t *testing.T) {
	for name, test := range map[string]struct {
		before func(b *bench)
		want   bool
	}{
		"there is no configuration": {before: func(b *bench) { _ = b.server.Delete(b.t.Context(), b.configuration()) }, want: true},
		"a client edited it":        {before: func(b *bench) { b.edits(failsOpen) }, want: true},
		"a client edits it as it is written": {
			before: func(b *bench) {
				b.harm = failsOpen
				b.edits(failsOpen)
				b.reconciles()
				bubble.Sleep(repairEvery)
				b.reconciles()
			}, want: true,
		},
		"a client edited an entry that is not the quota's": {before: func(b *bench) { b.edits(func(c *configuration) { c.Webhooks[0].Rules = nil }) }},
		"it is as the leader before wrote it":              {before: func(*bench) {}},
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				b.settles()
				bubble.Sleep(time.Second)
				test.before(b)
				b.restart()
				b.forgets, b.forgetting = nil, time.Second
				writes := b.writes
				b.reconciles()
				if forgot := slices.Equal(b.forgets, []string{"team"}); forgot != test.want || b.proofs.Of("team", "uid", 1, bubble.Now()).Enforcement == webhookconfig.Proved {
					t.Errorf("forgot %v, want %t", b.forgets, test.want)
				}
				if test.want && b.writes != writes {
					t.Error("want nothing written before that")
				}
				bubble.Sleep(b.forgetting)
				b.settles()
				if test.want && b.writes == writes {
					t.Error("want it written after that")
				}
			}, teamQuota())
		})
	}
}

// For as long as use can't be forgotten, the first configuration waits. After that no quota would be enforced.
func TestTheFirstConfigurationWaitsALittleForWhatIsForgotten(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.unforgotten = errors.New("no answer")
		if wait := b.reconciles(); wait != forgetPatience || b.writes != 0 {
			t.Errorf("%d writes, and again after %s", b.writes, wait)
		}
		bubble.Sleep(forgetPatience - time.Second)
		if wait := b.reconciles(); wait != time.Second || b.writes != 0 {
			t.Errorf("%d writes, and again after %s", b.writes, wait)
		}
		bubble.Sleep(time.Second)
		b.reconciles()
		if b.writes != 1 {
			t.Errorf("%d writes after the patience is over", b.writes)
		}
		b.reconciles()
		b.unforgotten = nil
		b.reconciles()
		b.reconciles()
		if len(b.forgets) != 5 || !b.gaps.closed() {
			t.Errorf("%d attempts, want five, of which the last succeeds", len(b.forgets))
		}
	}, teamQuota())
}

// It waits for slow ledgers, too, and begins each once.
func TestTheFirstConfigurationComesOnceAllIsForgotten(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.forgetting = 2500 * time.Millisecond
		for range 3 {
			b.reconciles()
			if b.writes != 0 || len(b.forgets) != 1 {
				t.Errorf("%d writes, %d attempts", b.writes, len(b.forgets))
			}
			bubble.Sleep(time.Second)
		}
		b.reconciles()
		if b.writes != 1 || len(b.forgets) != 1 {
			t.Errorf("%d writes, %d attempts after that", b.writes, len(b.forgets))
		}
	}, teamQuota())
}

// While the leader counts, nothing keeps the configuration from being made again.
func TestADeletedConfigurationIsMadeBeforeUseIsForgotten(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.settles()
		bubble.Sleep(repairEvery)
		b.forgets, b.unforgotten = nil, errors.New("no answer")
		previous := b.configuration()
		if err := b.server.Delete(t.Context(), previous); err != nil {
			t.Fatal(err)
		}
		b.reconciles()
		got := b.proofs.Of("team", "uid", 1, bubble.Now())
		if got.Enforcement != webhookconfig.Edited || got.Edit != "somebody deleted the webhook configuration shared-quota" {
			t.Errorf("got %+v", got)
		}
		if b.writes != 2 || len(b.forgets) != 1 || b.configuration().UID == previous.UID {
			t.Errorf("%d writes, %v forgotten", b.writes, b.forgets)
		}
		b.unforgotten = nil
		b.settles()
		b.settles()
		if len(b.forgets) != 2 {
			t.Errorf("%d attempts, want another one", len(b.forgets))
		}
		gone := &configuration{ObjectMeta: metav1.ObjectMeta{Name: webhookconfig.ConfigurationName}}
		if err := b.server.Delete(t.Context(), gone); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}, teamQuota())
}
