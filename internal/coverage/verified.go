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
	"sync"
	"time"
)

const (
	// verifiedFor is how long a namespace isn't read again after a live read.
	verifiedFor = 5 * time.Second
	// maxVerified bounds what is remembered.
	maxVerified = 10000
)

// verified remembers which version of a namespace a live read found.
type verified struct {
	// mu guards seen.
	mu sync.Mutex
	// namespace name -> what the last live read found
	seen map[string]verification
}

type verification struct {
	version string
	at      time.Time
}

func newVerified() *verified { return &verified{seen: map[string]verification{}} }

// holds tells whether a live read of a moment ago found this version.
func (v *verified) holds(name, version string, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	seen, known := v.seen[name]
	return known && seen.version == version && now.Sub(seen.at) < verifiedFor
}

func (v *verified) note(name, version string, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.seen) >= maxVerified {
		clear(v.seen) // they are read again, no more
	}
	v.seen[name] = verification{version: version, at: now}
}
