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

// Package issuing says when the webhook's certificate and its authority are to
// be renewed, and renews them. It knows the content of a Secret, and neither
// clients nor the clock.
//
// cert-controller, which others use for this, makes RSA keys alone, needs the Secret to exist
// and to be mounted, reads every Secret of the namespace, gives its calls no deadline, and has
// the old authority trusted no longer from the moment that there is another.
package issuing
