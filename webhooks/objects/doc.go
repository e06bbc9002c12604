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

// Package objects is the webhook that enforces quotas: it is asked about every
// object whose creation or change some quota may limit, charges all quotas that
// cover the object's namespace, or none, and answers.
//
// Whatever goes wrong, the answer is a refusal: what isn't granted is not
// admitted.
package objects
