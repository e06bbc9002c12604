// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"unicode/utf8"
)

// gap is between columns, as in kubectl's own tables.
const gap = 3

// cell is one field of a table. The writer of kubectl's tables would count what
// switches colours on and off as part of a column's width.
type cell struct {
	painted string
	// width is in columns of the terminal.
	width int
}

func plain(text string) cell {
	text = Visible(text)
	return cell{painted: text, width: utf8.RuneCountInString(text)}
}

func plains(texts ...string) []cell {
	cells := make([]cell, 0, len(texts))
	for _, text := range texts {
		cells = append(cells, plain(text))
	}
	return cells
}

func (s Style) cell(in colour, text string) cell {
	return cell{painted: s.paint(in, text), width: utf8.RuneCountInString(text)}
}

// table is rows of the same number of cells; the first is the heading.
type table struct{ rows [][]cell }

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// widths are those of the columns.
func (t *table) widths() []int {
	if len(t.rows) == 0 {
		return nil
	}
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, field := range row {
			widths[i] = max(widths[i], field.width)
		}
	}
	return widths
}

// width is that of the longest line.
func (t *table) width() int {
	total := -gap
	for _, width := range t.widths() {
		total += width + gap
	}
	return max(0, total)
}

// text has nothing at the end of a line that can't be seen.
func (t *table) text(indent string) string {
	var text strings.Builder
	widths := t.widths()
	for _, row := range t.rows {
		text.WriteString(indent)
		pending := 0
		for i, field := range row {
			if field.width > 0 {
				text.WriteString(strings.Repeat(" ", pending) + field.painted)
				pending = 0
			}
			pending += widths[i] - field.width + gap
		}
		text.WriteByte('\n')
	}
	return text.String()
}
