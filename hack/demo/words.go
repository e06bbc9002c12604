/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
