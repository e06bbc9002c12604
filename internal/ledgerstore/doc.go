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

// Package ledgerstore keeps ledgers in QuotaLedger objects.
//
// It implements the Store of package driver with compare-and-swap on
// resourceVersion, and owns the encoding of reservations: one short string
// each, for the API server pays for structure at every write. It doesn't know
// why a charge was made or who waits for it.
//
// Invariants:
//
//   - An encoding that this release doesn't know is an error.
//   - A ledger that isn't as a Store wrote it is an edited one, which grants nothing.
//   - So is a ledger that can't be read. If that is so of single reservations alone,
//     it grants nothing until Recovery of package usage has stored it without them.
package ledgerstore
