// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

//go:embed benchmarks.md.tmpl
var pageTemplate string

// runPage renders docs/benchmarks.md from the figures that the other commands have stored, so that none is copied by hand.
func runPage(args []string) int {
	flags := flag.NewFlagSet("bench page", flag.ExitOnError)
	from := flags.String("results", resultsDir, "directory of the figures")
	to := flags.String("page", "docs/benchmarks.md", "file to write the page to")
	_ = flags.Parse(args)
	text, err := renderPage(*from)
	if err != nil {
		return ended(err)
	}
	return ended(os.WriteFile(*to, []byte(text), 0o644))
}

// page is what the template shows. Its methods fail for what wasn't measured.
type page struct {
	Pods results
	// Scale and Wake are empty unless they were stored.
	Scale, Wake section
}

// section has figures that are shown as they are.
type section struct {
	Machine string  `json:"machine"`
	Date    string  `json:"date"`
	Goals   []goal  `json:"goals"`
	Tables  []sheet `json:"tables"`
}

// sheet is one table of them.
type sheet struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// renderPage returns the page for the figures in a directory.
func renderPage(from string) (string, error) {
	shown := &page{}
	for name, into := range map[string]any{"pods.json": &shown.Pods, "scale.json": &shown.Scale, "wake.json": &shown.Wake} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) && name != "pods.json" {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("reading figures: %w", err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			return "", fmt.Errorf("decoding %s: %w", name, err)
		}
	}
	parsed, err := template.New("benchmarks.md").Parse(pageTemplate)
	if err != nil {
		return "", fmt.Errorf("parsing the template: %w", err)
	}
	text := &strings.Builder{}
	if err := parsed.Execute(text, shown); err != nil {
		return "", fmt.Errorf("rendering the page: %w", err)
	}
	return text.String(), nil
}

// Targets is the table of all targets.
func (p *page) Targets() (string, error) {
	return table(slices.Concat(p.Pods.Goals, p.Scale.Goals))
}

// WakeTargets is the table of those of workloads that wait, which are measured apart.
func (p *page) WakeTargets() (string, error) { return table(p.Wake.Goals) }

// Reached is the value of a goal, with the least and most of the rounds.
func (p *page) Reached(what string) (string, error) {
	for _, g := range p.Pods.Goals {
		if g.What != what {
			continue
		}
		if spread := g.spread(); spread != "" {
			return short(g.Value) + " (" + spread + ")", nil
		}
		return short(g.Value), nil
	}
	return "", fmt.Errorf("no goal %q was measured", what)
}

// Of is a figure of a variant.
func (p *page) Of(scenario, variant, column string) (string, error) {
	found := p.Pods.find(scenario, variant)
	if found == nil {
		return "", fmt.Errorf("no variant %q of %q was measured", variant, scenario)
	}
	for _, c := range &columns {
		if c.name == column {
			return fmt.Sprintf(c.format, found.Figures[column]), nil
		}
	}
	return "", fmt.Errorf("no figure is named %q", column)
}

// Figures is a table of what the variants did in these scenarios.
func (p *page) Figures(scenarios ...string) (string, error) {
	shown := sheet{Columns: []string{"scenario", "variant"}}
	figures := []figure{rate, p50, p99, apiServerCPU, ownCPU, totalCPU, ownMemory}
	for _, f := range figures {
		shown.Columns = append(shown.Columns, columns[f].name)
	}
	for _, scenario := range scenarios {
		i := slices.IndexFunc(p.Pods.Scenarios, func(s *scenarioResult) bool { return s.Name == scenario })
		if i < 0 {
			return "", fmt.Errorf("no scenario %q was measured", scenario)
		}
		title := scenario
		for _, v := range p.Pods.Scenarios[i].Variants {
			row := []string{title, strings.TrimSuffix(v.Name, ", 2 replicas")}
			for _, f := range figures {
				row = append(row, v.cell(f))
			}
			shown.Rows, title = append(shown.Rows, row), ""
		}
	}
	return shown.String(), nil
}

// cell is a figure as it was stored; empty if it is zero.
func (v *variantResult) cell(f figure) string {
	value, ok := v.Figures[columns[f].name]
	if !ok {
		return ""
	}
	return fmt.Sprintf(columns[f].format, value)
}

// String is the table in Markdown, below its title.
func (s sheet) String() string {
	text := &strings.Builder{}
	if s.Title != "" {
		fmt.Fprintf(text, "%s:\n\n", strings.TrimSuffix(s.Title, ":"))
	}
	lines := slices.Concat([][]string{s.Columns, slices.Repeat([]string{"---"}, len(s.Columns))}, s.Rows)
	for _, cells := range lines {
		text.WriteString("|")
		for _, cell := range cells {
			text.WriteString(strings.TrimSuffix(" "+cell, " ") + " |")
		}
		text.WriteString("\n")
	}
	return text.String()
}
