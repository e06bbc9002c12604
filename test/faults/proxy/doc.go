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

// Package proxy stands between one replica of the operator and the API server,
// and does to the replica's calls what networks, other writers and a busy
// etcd do: conflicts, lost replies, failures, delays, broken and late watches.
//
// It serves plain HTTP on loopback and calls the API server as admin. Nothing
// is made up that a real API server couldn't answer: a conflict is provoked by
// another write, and what is called lost was really written. What happens to
// which call is drawn from a seed; calls are concurrent, so that the same seed
// makes for the same mixture, not for the same sequence.
package proxy
