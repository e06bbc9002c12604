// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledgerstore

import "strings"

// This file replaces internal/ledgerstore/release.go in the builds that stand for the release
// after this one, and for the one after that: encoding 3 is read and 2 is written; with -X of
// raised, 3 is written too.

const newest int32 = 3

// raised is not empty where written is raised.
var raised string //nolint:gochecknoglobals // the linker sets nothing else

var written = map[bool]int32{false: 2, true: 3}[raised != ""] //nolint:gochecknoglobals // as raised

// formatOf returns how records are encoded. Encoding 3 has the name before the
// namespace: a release that takes it for 2 looks for another object.
func formatOf(encoding int32) format {
	if encoding < newest {
		return format{encode: encodeRecord, decode: decodeRecord}
	}
	return format{
		encode: func(from record) string { return swapped(encodeRecord(from)) },
		decode: func(text string) (record, error) { return decodeRecord(swapped(text)) },
	}
}

func swapped(text string) string {
	part := strings.Split(text, " ")
	if len(part) == fields {
		part[4], part[5] = part[5], part[4]
	}
	return strings.Join(part, " ")
}
