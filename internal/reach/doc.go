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

// Package reach says what the webhook has to be called for: the rules and
// entries of a ValidatingWebhookConfiguration that cover what quotas limit, and
// whether a given configuration covers it.
//
// The path of an entry has two things to say. Of one that enforces, it is a
// Question: which quotas the entry was generated from, and from which specs of
// theirs. Of the one for probes, it is the Edition: which write of the
// configuration it is. Proofs concludes from the editions that the API server is
// seen to ask by, whether it asks about all that a quota limits.
//
// Others may edit the configuration. Find and Cover tell what they only add, and whether
// that takes a namespace out; Changes says who edited what; a Brake paces the repairs.
//
// Invariants:
//
//   - An entry's Epoch is a resourceVersion at which all specs that it was
//     generated from were there, and it never falls.
//   - No two writes of the configuration are of the same Edition.
//   - A quota is Proved only if the API server was seen to ask by a configuration
//     that covers its present spec, and no configuration since has failed to.
package reach
