// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"unicode/utf8"
)

// wrap breaks a text into lines for the terminal, each after the indent. Without a terminal it is one line. A word
// is never broken: it may be a name, or part of a command.
func (s Style) wrap(text, indent string) string {
	if s.Width == 0 {
		return indent + text + "\n"
	}
	var wrapped strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		width := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			wrapped.WriteString(indent)
			column = len(indent)
		case column+1+width > s.Width:
			wrapped.WriteString("\n" + indent)
			column = len(indent)
		default:
			wrapped.WriteString(" ")
			column++
		}
		wrapped.WriteString(word)
		column += width
	}
	return wrapped.String() + "\n"
}
