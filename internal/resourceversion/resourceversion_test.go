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

package resourceversion

import (
	"math"
	"testing"
)

func TestParse(t *testing.T) {
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
			if got := Parse(test.text); got != test.want {
				t.Errorf("Parse(%q): got %d, want %d", test.text, got, test.want)
			}
		})
	}
}
