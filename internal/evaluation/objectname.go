// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// longest is how many bytes a DNS subdomain has at most, which nearly all names are.
const longest = 253

// digested begins the digest of a name. No DNS subdomain has a colon.
const digested = "sha256:"

// ShortName returns a name of 253 bytes or less as it is, and the digest of a longer one.
func ShortName(name string) string {
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return digested + hex.EncodeToString(sum[:])
}

// IsShortened reports whether ShortName may have returned it for a longer name. An object may have
// been given such a name, too.
func IsShortened(name string) bool {
	return strings.HasPrefix(name, digested) && len(name) == len(digested)+hex.EncodedLen(sha256.Size)
}
