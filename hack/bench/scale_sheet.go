// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// section has figures that are shown as they are.
type section struct {
	Machine string  `json:"machine"`
	Date    string  `json:"date"`
	Goals   []goal  `json:"goals"`
	Tables  []sheet `json:"tables"`
}

// sheet is one table of them.
type sheet struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// String is the table in Markdown, below its title.
func (s sheet) String() string {
	text := &strings.Builder{}
	if s.Title != "" {
		fmt.Fprintf(text, "%s:\n\n", strings.TrimSuffix(s.Title, ":"))
	}
	lines := slices.Concat([][]string{s.Columns, slices.Repeat([]string{"---"}, len(s.Columns))}, s.Rows)
	for _, cells := range lines {
		text.WriteString("|")
		for _, cell := range cells {
			text.WriteString(strings.TrimSuffix(" "+cell, " ") + " |")
		}
		text.WriteString("\n")
	}
	return text.String()
}
