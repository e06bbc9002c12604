// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Style describes the output that the text is written for. The zero Style is for a file or a pipe.
type Style struct {
	// Width is how many columns the terminal has; 0 if there is none.
	Width int
	// Colour lets the text have colours.
	Colour bool
}

// colour is the parameter of an ANSI escape sequence; none is empty.
type colour string

const (
	none   colour = ""
	bold   colour = "1"
	dim    colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
)

func (s Style) paint(in colour, text string) string {
	text = Visible(text)
	if !s.Colour || in == none || text == "" {
		return text
	}
	return "\x1b[" + string(in) + "m" + text + "\x1b[0m"
}

// gap is between columns, as in kubectl's own tables.
const gap = 3

// cell is one field of a table. The writer of kubectl's tables would count colour codes as part of a column's width.
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

// table starts a table with these headings.
func (s Style) table(headings ...string) *table {
	return &table{rows: [][]cell{s.headings(plains(headings...))}}
}

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

// notesText has a line for each note, below an empty one. A note about several objects is said once.
func notesText(notes []string, style Style) string {
	var text strings.Builder
	for i, note := range notes {
		if i == 0 {
			text.WriteByte('\n')
		}
		if !slices.Contains(notes[:i], note) {
			text.WriteString(style.wrap("Note: "+note, ""))
		}
	}
	return text.String()
}
