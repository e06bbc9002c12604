// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxQuantity is longer than any quantity that somebody means.
const maxQuantity = 64

// Kubernetes writes a number out to read it: for 1e999999999 that takes forever.
var hasLargeExponent = regexp.MustCompile(`[eE][+-]?\d{4}`).MatchString //nolint:gochecknoglobals // compiled once

// noQuantities names the limits that can't be read: what reads them all doesn't
// say which.
func noQuantities(left map[string]any) []string {
	var bad []string
	for _, path := range slices.Sorted(maps.Keys(left)) {
		above := path[:max(strings.LastIndexAny(path, ".["), 0)]
		if quoted := strings.LastIndex(path, `["`); quoted >= 0 && strings.HasSuffix(path, `"]`) {
			above = path[:quoted]
		}
		if !strings.HasPrefix(path, "spec.") || !strings.HasSuffix(above, ".hard") {
			continue
		}
		if written, isText := left[path].(string); isText && !isQuantity(written) {
			bad = append(bad, noQuantity(path, written))
		}
	}
	return bad
}

func isQuantity(written string) bool {
	if len(written) > maxQuantity || hasLargeExponent(written) {
		return false
	}
	_, err := resource.ParseQuantity(written)
	return err == nil
}
