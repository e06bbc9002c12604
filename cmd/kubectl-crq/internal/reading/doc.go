// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reading reads the input of commands: manifests, and from the cluster the facts that decide whether they fit:
// the limits of namespaces, the objects that exist already, and the objects that admission depends on. It also reports
// why a quota selects a namespace or not.
//
// Manifests are read as kubectl apply does: from files, directories, URLs, standard input and
// kustomizations, also of kinds that the cluster doesn't serve yet.
//
// It asks with the rights of the command's user, and writes nothing. If the user may not read something and the answer
// can do without it, the answer says so.
package reading
