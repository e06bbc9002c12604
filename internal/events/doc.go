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

// Package events says in which words people are told of what happens to a quota:
// one constructor for each event, on the quota for who administers it, and on a
// namespace's view of it for who owns that. What stands on a view names no other
// namespace.
//
// It doesn't know clients, nor when something is to be told; Recent says of what
// happens often whether it was told lately.
//
// A recorder takes two events for one that differ in their notes alone, and shows
// the first one's note. So what an event is about stands in its reason, in the
// path of its object, which names the resource, and in its related object, which
// is the namespace.
package events
