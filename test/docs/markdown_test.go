// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Kinds of blocks.
const (
	manifests = "yaml"
	shell     = "sh"
	console   = "console"
	prose     = "text"
	additions = "go"
	// hidden is a comment that holds commands.
	hidden = "hidden"
)

// block is a part of a page that something is done with.
type block struct {
	kind string
	// line of the page on which it begins.
	line int
	text string
	// unrun is why it isn't run; empty where it is.
	unrun string
}

// command is a command line, and what it must come to.
type command struct {
	line string
	// output is what the page shows of it; empty for whatever comes.
	output string
}

var (
	setupComment = regexp.MustCompile(`(?s)^<!--\s*test:\s*(.*?)\s*-->\s*$`)
	unrunComment = regexp.MustCompile(`(?s)^<!--\s*not run:\s*(.*?)\s*-->\s*$`)
)

// parse returns the blocks of a page.
func parse(page []byte) ([]block, error) {
	var blocks []block
	unrun := ""
	walk := func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.HTMLBlock:
			comment := content(node, page)
			if node.HasClosure() {
				comment += string(node.ClosureLine.Value(page))
			}
			if found := setupComment.FindStringSubmatch(comment); found != nil {
				blocks = append(blocks, block{kind: hidden, line: lineOf(node, page), text: found[1]})
			}
			if found := unrunComment.FindStringSubmatch(comment); found != nil {
				unrun = found[1]
			}
		case *ast.CodeBlock:
			return ast.WalkStop, fmt.Errorf("line %d: an indented block, which has no language: fence it", lineOf(node, page))
		case *ast.FencedCodeBlock:
			fenced := block{kind: string(node.Language(page)), line: lineOf(node, page), text: content(node, page), unrun: unrun}
			if !slices.Contains([]string{manifests, shell, console, prose, additions}, fenced.kind) {
				return ast.WalkStop, fmt.Errorf("line %d: a block of language %q: want yaml, sh, console, text or go", fenced.line, fenced.kind)
			}
			blocks, unrun = append(blocks, fenced), ""
		}
		return ast.WalkContinue, nil
	}
	err := ast.Walk(goldmark.New().Parser().Parse(text.NewReader(page)), walk)
	return blocks, err
}

func content(node ast.Node, page []byte) string {
	var content strings.Builder
	for i := range node.Lines().Len() {
		line := node.Lines().At(i)
		content.Write(line.Value(page))
	}
	return content.String()
}

func lineOf(node ast.Node, page []byte) int {
	if node.Lines().Len() == 0 {
		return 0
	}
	return 1 + strings.Count(string(page[:node.Lines().At(0).Start]), "\n")
}

var fileName = regexp.MustCompile(`^# ([a-z0-9-]+\.yaml)\n`)

// file returns the name of the file that a yaml block is to be written to; empty
// for none.
func (b block) file() string {
	if found := fileName.FindStringSubmatch(b.text); found != nil {
		return found[1]
	}
	return ""
}

// commands returns the commands of a block. A line that ends in a backslash is
// continued.
func (b block) commands() []command {
	var commands []command
	for line := range strings.SplitSeq(strings.ReplaceAll(b.text, "\\\n", " "), "\n") {
		typed, isCommand := line, strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#")
		if b.kind == console {
			typed, isCommand = strings.CutPrefix(line, "$ ")
		}
		switch {
		case isCommand:
			commands = append(commands, command{line: typed})
		case b.kind == console && len(commands) > 0:
			commands[len(commands)-1].output += line + "\n"
		}
	}
	return commands
}

var (
	// Ages in a page are seconds and minutes: 500m would be an amount of CPU.
	age   = regexp.MustCompile(`\b(\dm)?\d{1,3}s\b|\b\dm\b|<unknown>`)
	space = regexp.MustCompile(`[ \t]+`)
)

// same tells whether a command came to what the page shows.
func same(shown, output string) bool {
	pattern := regexp.QuoteMeta(normal(shown))
	pattern = strings.ReplaceAll(pattern, "…", `(?s:.*?)`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(normal(output))
}

// normal has every run of blanks as one, and every age as AGE.
func normal(output string) string {
	output = age.ReplaceAllString(output, "AGE")
	var lines []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(space.ReplaceAllString(line, " ")); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// fails tells whether the page shows that a command is refused, or answers no.
func (c command) fails() bool {
	return regexp.MustCompile(`(?i)^(error|warning: .*\nerror|the \w+ "[^"]+" is invalid|it doesn't fit|\S+/\S+ lacks )`).MatchString(c.output)
}

// reads tells whether a command may be repeated until its output is as shown.
func (c command) reads() bool {
	return regexp.MustCompile(`^kubectl (-n \S+ )?(get|describe|crq|auth|events)\b`).MatchString(c.line)
}
