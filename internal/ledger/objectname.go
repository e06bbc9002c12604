// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectname keeps the names of objects short.
//
// The API server stores some objects, such as Roles, under names of any length and of any
// characters. What is kept of an object goes by its name if that is as long as other
// names may be, and otherwise by a digest of it.
package objectname

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// longest is how many bytes a DNS subdomain has at most, which nearly all names are.
const longest = 253

// digested begins the digest of a name. No DNS subdomain has a colon.
const digested = "sha256:"

// Short returns a name of 253 bytes or less as it is, and the digest of a longer one.
func Short(name string) string {
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return digested + hex.EncodeToString(sum[:])
}

// IsDigest reports whether Short may have returned it for a longer name. An object may have
// been given such a name, too.
func IsDigest(name string) bool {
	return strings.HasPrefix(name, digested) && len(name) == len(digested)+hex.EncodedLen(sha256.Size)
}
