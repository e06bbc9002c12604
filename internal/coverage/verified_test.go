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

package coverage

import (
	"fmt"
	"testing"
	"time"
)

func TestAVerificationHoldsForItsVersionAndAMoment(t *testing.T) {
	v, now := newVerified(), time.Unix(1000, 0)
	v.note("team-a", "5", now)
	for name, test := range map[string]struct {
		namespace, version string
		after              time.Duration
		want               bool
	}{
		"the same version, at once":     {"team-a", "5", 0, true},
		"the same version, just before": {"team-a", "5", verifiedFor - 1, true},
		"the same version, too late":    {"team-a", "5", verifiedFor, false},
		"another version":               {"team-a", "6", 0, false},
		"another namespace":             {"team-b", "5", 0, false},
	} {
		if got := v.holds(test.namespace, test.version, now.Add(test.after)); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

func TestVerificationsAreBounded(t *testing.T) {
	v, now := newVerified(), time.Unix(1000, 0)
	for i := range maxVerified + 10 {
		v.note(fmt.Sprint(i), "1", now)
	}
	if len(v.seen) > maxVerified {
		t.Errorf("%d are remembered, want at most %d", len(v.seen), maxVerified)
	}
}
