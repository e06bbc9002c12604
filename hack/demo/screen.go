// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

const (
	width = 100
	// narrowest is the least room that a long text is folded in.
	narrowest = 50

	bold  = "\x1b[1m"
	green = "\x1b[32m"
	cyan  = "\x1b[36m"
	plain = "\x1b[0m"
)

// screen prints for a terminal of 100 columns.
type screen struct {
	out      io.Writer
	coloured bool
}

// newScreen uses colours where file is a terminal and NO_COLOR is not set.
func newScreen(file *os.File) *screen {
	info, err := file.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &screen{out: file, coloured: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// chapter prints the title of a chapter.
func (s *screen) chapter(number int, title string) {
	heading := fmt.Sprintf("== %d. %s ", number, title)
	s.print(bold, "\n"+heading+strings.Repeat("=", max(0, width-len(heading)))+"\n")
}

// say prints a paragraph of the story.
func (s *screen) say(text string) {
	s.print("", "\n"+fold(text, "", width)+"\n")
}

// command prints a command as it is typed.
func (s *screen) command(text string) {
	s.print(cyan, "\n$ "+text+"\n")
}

// output prints what a command printed. A table that is too wide has its cells
// folded; any other line that is too long is broken at spaces. Nothing else is
// changed.
func (s *screen) output(text string) {
	for line := range strings.Lines(foldTable(text)) {
		line = strings.TrimSuffix(line, "\n")
		s.print("", fold(line, strings.Repeat(" ", hanging(line)), width)+"\n")
	}
}

// lastColumn is what stands before the last column of a line.
var lastColumn = regexp.MustCompile(`^.*\S {2,}`)

// hanging returns how far a line's further lines are indented: to its last
// column, where there is room or little text, else not far.
func hanging(line string) int {
	at := len(lastColumn.FindString(line))
	room := width - at
	if at > 0 && (room >= narrowest || len(line)-at <= 2*room) {
		return at
	}
	return 8
}

// success prints how well it went.
func (s *screen) success(text string) {
	s.print(green, "\n"+text+"\n")
}

func (s *screen) print(colour, text string) {
	if s.coloured && colour != "" {
		text = colour + text + plain
	}
	_, _ = fmt.Fprint(s.out, text) // A screen that is gone is no reason to stop.
}

// fold breaks a line at spaces so that it fits a width, and begins each
// further line with indent. A word that is too long stays whole.
func fold(line, indent string, width int) string {
	var folded strings.Builder
	prefix := ""
	for len(prefix)+len(line) > width {
		at := strings.LastIndex(line[:width+1-len(prefix)], " ")
		if at <= 0 {
			at = strings.Index(line[1:], " ") + 1 // 0 if there is none
		}
		if at == 0 {
			break
		}
		folded.WriteString(prefix + strings.TrimRight(line[:at], " ") + "\n")
		prefix, line = indent, strings.TrimLeft(line[at:], " ")
	}
	return folded.String() + prefix + line
}
