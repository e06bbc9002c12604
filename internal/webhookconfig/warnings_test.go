// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"testing"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

func TestWarningsFitIntoAnAnswer(t *testing.T) {
	if got := Warnings(make([]string, 40), outcomes.MoreFindings); len(got) != maxWarnings ||
		got[maxWarnings-1] != outcomes.MoreFindings.Text(26) {
		t.Errorf("got %q", got)
	}
	if got := Warnings(make([]string, maxWarnings), outcomes.MoreWarnings); len(got) != maxWarnings || got[maxWarnings-1] != "" {
		t.Errorf("got %q, want them all", got)
	}
	if got := Printable("a\nb\x00c\xff\uFFFD"); got != "a b c  " {
		t.Errorf("got %q", got)
	}
}
