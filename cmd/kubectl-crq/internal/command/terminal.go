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

package command

import (
	"os"

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
	return render.Style{Width: width, Colour: printers.AllowsColorOutput(e.streams.Out)}
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
