// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import "testing"

func TestWarningsFitIntoAnAnswer(t *testing.T) {
	if got := Warnings(make([]string, 40), "quotas have something to say"); len(got) != maxWarnings ||
		got[maxWarnings-1] != "26 more quotas have something to say" {
		t.Errorf("got %q", got)
	}
	if got := Warnings(make([]string, maxWarnings), "warnings"); len(got) != maxWarnings || got[maxWarnings-1] != "" {
		t.Errorf("got %q, want them all", got)
	}
	if got := Printable("a\nb\x00c\xff\uFFFD"); got != "a b c  " {
		t.Errorf("got %q", got)
	}
}
