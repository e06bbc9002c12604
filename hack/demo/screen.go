// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	width = 100

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

// say prints a paragraph of the story, broken at spaces.
func (s *screen) say(text string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			s.print("", "\n"+line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	s.print("", "\n"+line+"\n")
}

// command prints a command as it is typed.
func (s *screen) command(text string) {
	s.print(cyan, "\n$ "+text+"\n")
}

// output prints what a command printed.
func (s *screen) output(text string) {
	s.print("", strings.TrimSuffix(text, "\n")+"\n")
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
