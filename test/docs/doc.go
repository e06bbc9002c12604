// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs runs what README.md and docs/ tell people to type, on a real API
// server with the operator installed, block by block in the order of the page.
// What it understands of Markdown is this:
//
//   - a yaml block is applied. If its first line is a comment with a file's name,
//     as in "# quota.yaml", it is written to that file for the commands to come
//     instead, and must pass a dry run;
//   - each command of an sh block must succeed. One that names config/ or test/docs/
//     runs in the repository; make's targets are looked up, not run;
//   - in a console block, a line that begins with "$ " is a command and what follows
//     its output: word for word but for white space and ages, and "…" for anything.
//     If the output begins with an error or with the answer no, so must the
//     command's, and it must fail. What reads is tried again for a while, for what
//     people read follows a moment later;
//   - a go block has lines for files of the repository. A comment "// FILE: TEXT" says that they go behind the line with
//     that text, which is there once; "// FILE:", at the end of the file, which may be new. TestAdditions builds and
//     tests the repository with all of them;
//   - a text block is read by people alone. No other block is allowed;
//   - a comment <!-- test: COMMANDS --> runs commands that people don't see, and
//     <!-- not run: WHY --> lets the block that follows it be; a file that it
//     names is written all the same.
//
// Links are checked too, of all pages that git knows: files and anchors that they
// name are there.
//
// Each page has a working directory of its own, and what it made is deleted after it.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e.
package docs
