// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

// gap is how many spaces stand between two columns.
const gap = 3

// heading is the heading of a column: words with single spaces between them.
var heading = regexp.MustCompile(`\S+( \S+)*`)

// foldTable returns a table, as kubectl get prints it, with the cells of its
// widest columns folded so that it fits the width. Text that is no table, or
// fits, is returned as it is.
func foldTable(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	starts := columns(lines)
	widest := 0
	for _, line := range lines {
		widest = max(widest, len(line))
	}
	if len(lines) < 2 || len(starts) < 2 || widest <= width {
		return text
	}
	var rows [][]string
	for _, line := range lines {
		rows = append(rows, cells(line, starts))
	}
	widths := shrink(rows, width)
	var folded strings.Builder
	for _, row := range rows {
		writeRow(&folded, row, widths)
	}
	return folded.String()
}

// columns returns where the columns of a table begin, or nil if the lines are
// none: some line has text where another column would begin.
func columns(lines []string) []int {
	var starts []int
	for _, at := range heading.FindAllStringIndex(lines[0], -1) {
		starts = append(starts, at[0])
	}
	for _, line := range lines {
		for _, start := range starts {
			if start > 0 && start < len(line) && line[start-1] != ' ' {
				return nil
			}
		}
	}
	return starts
}

func cells(line string, starts []int) []string {
	var row []string
	for i, start := range starts {
		end := len(line)
		if i+1 < len(starts) {
			end = min(end, starts[i+1])
		}
		row = append(row, strings.TrimSpace(line[min(start, end):end]))
	}
	return row
}

// shrink returns the columns' widths: as wide as their cells, but the widest ones
// all of one width, with which the table fits.
func shrink(rows [][]string, width int) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for limit := width; limit > 0; limit-- {
		total := gap * (len(widths) - 1)
		for i := range widths {
			widths[i] = min(widths[i], limit)
			total += widths[i]
		}
		if total <= width {
			break
		}
	}
	return widths
}

// writeRow writes as many lines as the longest cell needs.
func writeRow(to *strings.Builder, row []string, widths []int) {
	var folded [][]string
	height := 0
	for i, cell := range row {
		folded = append(folded, strings.Split(fold(cell, "", widths[i]), "\n"))
		height = max(height, len(folded[i]))
	}
	for y := range height {
		var line strings.Builder
		for i, parts := range folded {
			part := ""
			if y < len(parts) {
				part = parts[y]
			}
			line.WriteString(part + strings.Repeat(" ", max(0, widths[i]-len(part))+gap))
		}
		to.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
