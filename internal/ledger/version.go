// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import "strconv"

// ParseVersion returns a resourceVersion as a number; zero, which is older than every write, if it isn't one. The API
// server guarantees that those of its own and of custom resources are decimal numbers that grow with every write
// (k8s.io/apimachinery/pkg/util/resourceversion).
func ParseVersion(resourceVersion string) uint64 {
	number, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return number
}
