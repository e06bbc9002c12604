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

// Package load is what people and controllers do to a cluster at the limit of
// their quotas: clients that create, delete, update and resize objects of
// their own, in many namespaces at once, each with a randomness of its own.
//
// Every call has a deadline and is entered in a Tally with how it ended. What a
// client may meet is written down in Outcome; what it may meet only while
// something is broken is held against the Disruptions of that time.
//
// The package doesn't judge quotas: it never adds up what lives.
package load
