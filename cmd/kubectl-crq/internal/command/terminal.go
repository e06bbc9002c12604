// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"os"
	"strings"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// fallbackWidth is that of a terminal which doesn't say how wide it is.
const fallbackWidth = 80

// style looks at what the output is: a terminal has a width and, unless NO_COLOR or
// TERM=dumb forbid it, colours; anything else has neither.
func (e *environment) style() render.Style {
	if !e.onTerminal() {
		return render.Style{}
	}
	width, _ := e.size()
	return render.Style{Width: width, Colour: printers.AllowsColorOutput(e.streams.Out), Blocks: isUTF8(os.Getenv)}
}

// isUTF8 reports whether the locale of characters is one of UTF-8. The first variable that is set decides.
func isUTF8(variable func(string) string) bool {
	locale := strings.ToUpper(cmp.Or(variable("LC_ALL"), variable("LC_CTYPE"), variable("LANG")))
	return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
}

func (e *environment) onTerminal() bool {
	return os.Getenv("TERM") != "dumb" && printers.IsTerminal(e.streams.Out)
}

// size returns the terminal's columns and lines; no lines where it doesn't say.
func (e *environment) size() (columns, lines int) {
	file, ok := e.streams.Out.(*os.File)
	if !ok {
		return fallbackWidth, 0
	}
	columns, lines, err := term.GetSize(int(file.Fd()))
	if err != nil || columns == 0 {
		return fallbackWidth, 0
	}
	return columns, lines
}
