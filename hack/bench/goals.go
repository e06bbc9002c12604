// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// target is what a figure is to be, as people write it: "≥ 0.9" or "≤ 5". Every figure keeps the empty one.
type target string

func (t target) kept(value float64) (bool, error) {
	if t == "" {
		return true, nil
	}
	sign, text, _ := strings.Cut(string(t), " ")
	bound, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && sign == "≥":
		return value >= bound, nil
	case err == nil && sign == "≤":
		return value <= bound, nil
	}
	return false, fmt.Errorf("target %q: want ≥ or ≤, and a number", t)
}

// goal is a row of the table of targets: what was measured, and what is wanted.
type goal struct {
	What   string  `json:"what"`
	Value  float64 `json:"value"`
	Target target  `json:"target"`
	// Rounds are the values of each round, where there are any.
	Rounds []float64 `json:"rounds,omitempty"`
}

// spread tells how much the rounds differ.
func (g goal) spread() string {
	if len(g.Rounds) < 2 {
		return ""
	}
	return short(slices.Min(g.Rounds)) + " to " + short(slices.Max(g.Rounds))
}

// table has the goals in Markdown. Those that were missed are bold.
func table(goals []goal) (string, error) {
	text := &strings.Builder{}
	fmt.Fprintln(text, "| what | measured | least and most of the rounds | target |")
	fmt.Fprintln(text, "| --- | --- | --- | --- |")
	for _, g := range goals {
		value := short(g.Value)
		kept, err := g.Target.kept(g.Value)
		if err != nil {
			return "", fmt.Errorf("%s: %w", g.What, err)
		}
		if !kept {
			value = "**" + g.missed(value) + "**"
		}
		fmt.Fprintf(text, "| %s | %s | %s | %s |\n", g.What, value, g.spread(), g.Target)
	}
	return text.String(), nil
}

// missed returns the value that misses its target, from its short text: with as many more digits as show that.
func (g goal) missed(text string) string {
	for digits := 3; ; digits++ {
		rounded, err := strconv.ParseFloat(text, 64)
		if kept, _ := g.Target.kept(rounded); err != nil || !kept {
			return text
		}
		text = strconv.FormatFloat(g.Value, 'f', digits, 64)
	}
}

// short has as many digits as are worth reading.
func short(value float64) string {
	switch {
	case value >= 100 || value <= -100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10 || value <= -10:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.2f", value)
}
