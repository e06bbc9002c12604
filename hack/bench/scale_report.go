// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// report is all that was measured.
type report struct {
	goals   []goal
	columns []*column
	// churn is the memory after each round.
	churn []memory
}

// column is what was measured in one world.
type column struct {
	title  string
	size   size
	start  *start
	native *counted
}

func (r *report) add(what string, value float64, wanted target) {
	r.goals = append(r.goals, goal{What: what, Value: value, Target: wanted})
}

// column returns that of a title, which it adds if it isn't there.
func (r *report) column(title string, s size) *column {
	for _, c := range r.columns {
		if c.title == title {
			return c
		}
	}
	r.columns = append(r.columns, &column{title: title, size: s})
	return r.columns[len(r.columns)-1]
}

// section is the report as it is shown and stored.
func (r *report) section() section {
	shown := newSection(r.goals)
	if len(r.columns) > 0 {
		shown.Tables = append(shown.Tables, r.counting())
	}
	if len(r.churn) > 0 {
		shown.Tables = append(shown.Tables, r.churned())
	}
	return shown
}

func newSection(goals []goal) section {
	return section{Machine: hardware(), Date: time.Now().Format(time.DateOnly), Goals: goals, Tables: []sheet{}}
}

// print prints the goals and the tables in Markdown.
func (s section) print(out io.Writer) error {
	text, err := table(s.Goals)
	for _, sheet := range s.Tables {
		text += "\n" + sheet.String()
	}
	_, writeErr := fmt.Fprintf(out, "\n%s\n", text)
	return errors.Join(err, writeErr)
}

// row is a line of the table of counting. It shows nothing of a column in which it wasn't measured.
type row struct {
	name, format string
	value        func(*column) float64
}

func ofStart(value func(*start) float64) func(*column) float64 {
	return func(c *column) float64 {
		if c.start == nil {
			return 0
		}
		return value(c.start)
	}
}

func ofNative(value func(*counted) float64) func(*column) float64 {
	return func(c *column) float64 {
		if c.native == nil {
			return 0
		}
		return value(c.native)
	}
}

func rows() []row {
	return []row{
		{"from the start until all quotas are Ready and Enforced, s", "%.1f", ofStart(func(s *start) float64 { return s.ready })},
		{"from the start to a complete count, s", "%.1f", ofStart(func(s *start) float64 { return s.counted })},
		{"the operator's CPU until then, s", "%.1f", ofStart(func(s *start) float64 { return s.cpu })},
		{"resident at the peak, MB", "%.0f", ofStart(func(s *start) float64 { return s.peak / 1e6 })},
		{"a deletion to the ledger, p50, ms", "%.1f", ofStart(func(s *start) float64 { return s.changes[0].deletion })},
		{"native ResourceQuota: from the start to a complete count, s", "%.1f", ofNative(func(n *counted) float64 { return n.seconds })},
		{"its CPU until then, s", "%.1f", ofNative(func(n *counted) float64 { return n.cpu })},
		{"its resident memory at the peak, MB", "%.0f", ofNative(func(n *counted) float64 { return n.peak / 1e6 })},
	}
}

// counting is the table of all worlds in which counting was measured.
func (r *report) counting() sheet {
	shown, sizes := sheet{Columns: []string{""}}, []string{"namespaces, quotas, pods"}
	for _, c := range r.columns {
		shown.Columns = append(shown.Columns, c.title)
		sizes = append(sizes, thousands(c.size.namespaces)+", "+thousands(c.size.quotas)+", "+thousands(c.size.pods))
	}
	shown.Rows = append(shown.Rows, sizes)
	for _, row := range rows() {
		cells, known := []string{row.name}, false
		for _, c := range r.columns {
			cell := ""
			if value := row.value(c); value != 0 {
				cell, known = fmt.Sprintf(row.format, value), true
			}
			cells = append(cells, cell)
		}
		if known {
			shown.Rows = append(shown.Rows, cells)
		}
	}
	return shown
}

// churned is the table of memory after each round.
func (r *report) churned() sheet {
	shown := sheet{
		Title: "Memory after namespaces and quotas have come and gone, each time under new names", Columns: []string{"times"},
		Rows: [][]string{{"resident, MB"}, {"live heap, MB"}},
	}
	for i, held := range r.churn {
		shown.Columns = append(shown.Columns, strconv.Itoa(i+1))
		for line, value := range []float64{held.resident, held.live} {
			shown.Rows[line] = append(shown.Rows[line], fmt.Sprintf("%.0f", value/1e6))
		}
	}
	return shown
}

// thousands is a number as people write it.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
