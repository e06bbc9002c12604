// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"slices"
	"strings"
	"unicode"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const (
	// MaxWarning is how much of each warning the API server passes on, in bytes, if there are many.
	MaxWarning = 256
	// maxWarnings keeps all warnings together within the 4096 bytes that the API
	// server passes on.
	maxWarnings = 15
)

// Warnings leaves out warnings that the API server would not pass on, and says of how many more there are.
func Warnings(warnings []string, more *outcomes.Message) []string {
	if len(warnings) <= maxWarnings {
		return warnings
	}
	rest := len(warnings) - maxWarnings + 1
	return append(slices.Clone(warnings[:maxWarnings-1]), more.Text(rest))
}

// Printable removes characters that can't be in the header that carries a warning, because the API server would leave out
// the warning, and characters that would garble the line.
func Printable(text string) string {
	return strings.Map(func(letter rune) rune {
		if !unicode.IsPrint(letter) || letter == unicode.ReplacementChar {
			return ' '
		}
		return letter
	}, strings.ToValidUTF8(text, " "))
}
