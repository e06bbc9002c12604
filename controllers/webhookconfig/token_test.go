// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

func TestTheTokenIsReplacedWhenItMayBeKnown(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		var token webhookconfig.Token
		want := func(why string, replaced bool, due time.Duration) {
			t.Helper()
			b.settles()
			again := b.reconciles()
			tokens := webhookconfig.Tokens(b.configuration())
			if len(tokens) != 1 || (tokens[0] != token) != replaced || again != due {
				t.Errorf("%s: got %v after %s, want it replaced: %t; again after %s, want %s", why, tokens, token, replaced, again, due)
			}
			token = tokens[0]
		}
		want("the first", true, time.Hour)
		want("nothing has happened", false, time.Hour)
		bubble.Sleep(time.Hour)
		want("an hour later", true, time.Hour)
		bubble.Sleep(20 * time.Second)
		b.Exposed()
		want("an outage, and it is young", false, 40*time.Second)
		bubble.Sleep(40 * time.Second)
		want("it is a minute old", true, time.Hour)
		b.bundle = []byte("another authority")
		want("the Secret was deleted", true, time.Hour)
		bubble.Sleep(10 * time.Minute)
		b.restart()
		want("another leads", true, time.Hour)

		bubble.Sleep(10 * time.Minute)
		b.Exposed()
		b.failure = apierrors.NewConflict(schema.GroupResource{}, webhookconfig.ConfigurationName, nil)
		want("somebody else writes", false, repairEvery)
		b.failure = nil
		want("nobody does any more", true, time.Hour)
	})
}
