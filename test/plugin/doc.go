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

// Package plugin runs kubectl crq as people do: the real kubectl finds the built
// plugin in PATH, and a real API server and the real operator answer, to an
// administrator and to somebody who may view one namespace.
//
// What is printed is compared with files under testdata. Ages, times, UIDs and
// other names that are made up are replaced there, and columns stand two spaces
// apart. After a wanted change, write the files anew and read the difference:
//
//	KUBEBUILDER_ASSETS=$PWD/bin/k8s go test -count=1 ./test/plugin -update
package plugin
