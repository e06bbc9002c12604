// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// splitWords splits a command as a shell does, if it knew nothing but single
// quotes and lines that are continued after a backslash.
func splitWords(command string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	for i, part := range strings.Split(command, "'") {
		if quoted := i%2 == 1; quoted {
			inWord = true
			word.WriteString(part)
			continue
		}
		for _, char := range strings.ReplaceAll(part, "\\\n", " ") {
			if char != ' ' {
				inWord = true
				word.WriteRune(char)
				continue
			}
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		}
	}
	if strings.Count(command, "'")%2 == 1 {
		return nil, fmt.Errorf("a quote is left open in: %s", command)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
