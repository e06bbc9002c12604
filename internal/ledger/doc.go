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

// Package ledger is the arithmetic of a shared quota: what is used, what is
// reserved, and whether one more charge fits.
//
// It is a pure state machine. Reserve, Release, Settle and Drop turn one State
// into the next through a Draft; nothing here knows a clock, a client, a
// context, a goroutine or a log.
//
// Invariant: for every resource, what lives in the selected namespaces is at
// most Used plus what is reserved. Three rules keep it:
//
//   - a reservation is made before its object can be persisted;
//   - it is removed only together with a count that includes its object, or
//     when its object is known never to come or to be gone (Seen, Drop,
//     Release);
//   - a count replaces Used only when it is at least as new as the one before.
package ledger
