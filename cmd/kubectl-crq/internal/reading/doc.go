// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reading reads the input of commands: manifests, and from the cluster whatever says
// whether they fit: the limits of namespaces, the objects that exist already, and what admission
// goes by. It also follows quotas by a watch, and reports why a quota selects a namespace or not.
//
// Manifests are read as kubectl apply does: from files, directories, URLs, standard input and
// kustomizations, also of kinds that the cluster doesn't serve yet.
//
// It asks with the rights of the user who runs the command, and writes nothing. If the user may
// not read something and the answer can do without it, the answer says so.
package reading
