// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

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
