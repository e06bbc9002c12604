// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"math"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want uint64
	}{
		"a version":                          {text: "4711", want: 4711},
		"the largest":                        {text: "18446744073709551615", want: math.MaxUint64},
		"none is older than every write":     {text: ""},
		"so is what isn't a number":          {text: "abc"},
		"so is a negative one":               {text: "-1"},
		"so is one that is too large":        {text: "18446744073709551616"},
		"so is a number in another notation": {text: "0x10"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ParseVersion(test.text); got != test.want {
				t.Errorf("ParseVersion(%q): got %d, want %d", test.text, got, test.want)
			}
		})
	}
}
