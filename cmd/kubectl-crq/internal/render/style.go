// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

// Style is what the text is written for. The zero Style is for a file or a pipe.
type Style struct {
	// Width is how many columns the terminal has; 0 where there is none.
	Width int
	// Colour lets the text have colours.
	Colour bool
	// Blocks lets a trend be drawn with blocks, which only a terminal of UTF-8 can show.
	Blocks bool
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
