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

// Package balance adds up a quota: what its count and its ledger say together, with
// each object either in what is used or in what is reserved.
//
// Count and ledger change apart. An object is counted up to 160 ms before the
// ledger settles its reservation; if both were added as they are, the object would
// be there twice. So the ledger is settled by the count first, in a draft that
// nobody stores.
//
// The package knows counting and the ledger's arithmetic. It doesn't know where
// either comes from, who shows the figures, or when.
package balance
