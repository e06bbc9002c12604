// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"strings"
	"testing"
)

func TestALongNameBecomesADigest(t *testing.T) {
	for name, test := range map[string]struct {
		name   string
		digest bool
	}{
		"a name":             {name: "web-1"},
		"none":               {},
		"one of any bytes":   {name: "\xff:\n"},
		"the longest":        {name: strings.Repeat("a", 253)},
		"one that is longer": {name: strings.Repeat("a", 254), digest: true},
		"a megabyte":         {name: strings.Repeat("a", 1<<20), digest: true},
	} {
		t.Run(name, func(t *testing.T) {
			short := ShortName(test.name)
			if IsShortened(short) != test.digest || (short == test.name) == test.digest || len(short) > longest {
				t.Errorf("got %q", short)
			}
			if ShortName(short) != short {
				t.Errorf("want %q to stay as it is, got %q", short, ShortName(short))
			}
		})
	}
	if ShortName(strings.Repeat("a", 300)) == ShortName(strings.Repeat("a", 301)) {
		t.Error("want two names not to share a digest")
	}
}
