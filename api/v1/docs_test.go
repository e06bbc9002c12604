// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// section is one heading of a document, and what stands below it.
type section struct {
	level         int
	heading, text string
}

func sectionsOf(t *testing.T, path string) []section {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var sections []section
	for line := range strings.Lines(string(content)) {
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			sections = append(sections, section{level: len(line) - len(heading), heading: strings.TrimSpace(heading)})
		} else if len(sections) > 0 {
			sections[len(sections)-1].text += line
		}
	}
	return sections
}

// headings returns the headings of one level, sorted, each once.
func headings(sections []section, level int) []string {
	var found []string
	for _, section := range sections {
		if section.level == level {
			found = append(found, section.heading)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// constants returns the strings that this package's source declares in the groups
// whose comments begin so, sorted. A constant may be another one's value.
func constants(t *testing.T, comment string) []string {
	t.Helper()
	var found []string
	values := map[string]string{}
	for _, path := range []string{"clusterresourcequota_types.go", "localresourcequota_types.go", "quotaledger_types.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				value := valueOf(t, spec.(*ast.ValueSpec), values)
				if strings.HasPrefix(group.Doc.Text(), comment) {
					found = append(found, value)
				}
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("no group of constants begins with %q", comment)
	}
	slices.Sort(found)
	return found
}

func valueOf(t *testing.T, spec *ast.ValueSpec, values map[string]string) string {
	t.Helper()
	var value string
	switch expression := spec.Values[0].(type) {
	case *ast.BasicLit:
		unquoted, err := strconv.Unquote(expression.Value)
		if err != nil {
			t.Fatal(err)
		}
		value = unquoted
	case *ast.Ident:
		value = values[expression.Name]
	}
	if value == "" || len(spec.Names) != 1 {
		t.Fatalf("can't read the constant %s", spec.Names[0])
	}
	values[spec.Names[0].Name] = value
	return value
}

// The page has a section for each condition with one for each of its reasons, and then one with a table of the events.
const (
	conditionsDoc = "../../docs/conditions.md"
	eventsHeading = "Events"
)

func TestEveryConditionAndReasonIsDocumented(t *testing.T) {
	sections := sectionsOf(t, conditionsDoc)
	types := slices.DeleteFunc(headings(sections, 2), func(heading string) bool { return heading == eventsHeading })
	if diff := cmp.Diff(constants(t, "Types of the conditions"), types); diff != "" {
		t.Errorf("conditions (-declared,+documented):\n%s", diff)
	}
	if diff := cmp.Diff(constants(t, "Reasons of the conditions"), headings(sections, 3)); diff != "" {
		t.Errorf("reasons (-declared,+documented):\n%s", diff)
	}
}

// Each reason of a condition says what it means, what the operator does, and what to do.
func TestEveryReasonSaysWhatToDoNext(t *testing.T) {
	for _, section := range sectionsOf(t, conditionsDoc) {
		if section.level != 3 {
			continue
		}
		meaning, rest, _ := strings.Cut(section.text, "**Meanwhile** ")
		before, next, _ := strings.Cut(rest, "**Next** ")
		if len(strings.TrimSpace(meaning+before)) < 20 || strings.TrimSpace(before) == "" || strings.TrimSpace(next) == "" {
			t.Errorf("%s: want what it means, what happens meanwhile and what to do next, got %q", section.heading, section.text)
		}
	}
}

func TestEveryReasonOfAnEventIsDocumented(t *testing.T) {
	declared := append(constants(t, "Reasons of the events"), constants(t, "Levels")...)
	slices.Sort(declared)
	var documented []string
	for _, section := range sectionsOf(t, conditionsDoc) {
		if section.heading != eventsHeading {
			continue
		}
		for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]+) \\| ([^|]+) \\|$").FindAllStringSubmatch(section.text, -1) {
			documented = append(documented, row[1])
		}
	}
	slices.Sort(documented)
	if diff := cmp.Diff(slices.Compact(declared), documented); diff != "" {
		t.Errorf("reasons (-declared,+documented):\n%s", diff)
	}
}
