// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Figures come from results alone, and words from the template.
func TestThePageIsWhatItsTemplateRenders(t *testing.T) {
	got, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := renderPage("results")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("docs/benchmarks.md: run go run ./hack/bench page (-want,+got):\n%s", diff)
	}
}

func TestAMissedGoalIsBold(t *testing.T) {
	got, err := table([]goal{
		{What: "kept", Value: 0.95, Target: "≥ 0.95", Rounds: []float64{0.9, 1}},
		{What: "missed", Value: 0.949, Target: "≥ 0.95"},
		{What: "missed by little", Value: 0.94996, Target: "≥ 0.95"},
		{What: "too much", Value: 12.34, Target: "≤ 12"},
		{What: "without a target", Value: -123.4},
	})
	want := `| what | measured | least and most of the rounds | target |
| --- | --- | --- | --- |
| kept | 0.95 | 0.90 to 1.00 | ≥ 0.95 |
| missed | **0.949** |  | ≥ 0.95 |
| missed by little | **0.94996** |  | ≥ 0.95 |
| too much | **12.3** |  | ≤ 12 |
| without a target | -123 |  |  |
`
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want,+got):\n%s", err, diff)
	}
}

func TestATargetThatCannotBeReadIsAnError(t *testing.T) {
	for _, wrong := range []target{"0.9", "≥0.9", "≥ much", "> 1"} {
		if text, err := table([]goal{{What: "rate", Target: wrong}}); err == nil {
			t.Errorf("%q: got %s", wrong, text)
		}
	}
}

func TestThePageFailsForWhatWasNotMeasured(t *testing.T) {
	shown := &page{}
	shown.Pods.add(one, double, turn{figures: figures{rate: 7}})
	if got, err := shown.Of(one, double, "requests/s"); got != "7" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := shown.Of(one, double, "refused"); got != "0" || err != nil {
		t.Errorf("a figure that is zero: got %q, %v", got, err)
	}
	_, err1 := shown.Of(one, native, "requests/s")
	_, err2 := shown.Of(one, double, "requests")
	_, err3 := shown.Reached("1 client: speed")
	_, err4 := shown.Figures(many)
	for i, err := range []error{err1, err2, err3, err4} {
		if err == nil {
			t.Errorf("call %d: want an error", i)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pods.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := renderPage(dir); err == nil {
		t.Errorf("no figures: got %s", text)
	}
}

func TestATableIsMarkdown(t *testing.T) {
	rows := [][]string{{"operator", "1.2"}, {"native", ""}}
	got := sheet{Title: "Seconds until pods come", Columns: []string{"", "p50"}, Rows: rows}.String()
	want := "Seconds until pods come:\n\n| | p50 |\n| --- | --- |\n| operator | 1.2 |\n| native | |\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

// What only some scenarios or variants, or few seconds, have shown must not replace the figures of the page.
func TestOnlyACompleteRunIsStored(t *testing.T) {
	for name, test := range map[string]struct {
		args     []string
		complete bool
		want     string
	}{
		"complete":          {complete: true, want: resultsDir + "/pods.json"},
		"more rounds":       {args: []string{"-rounds", "9"}, complete: true, want: resultsDir + "/pods.json"},
		"that failed":       {},
		"some scenarios":    {args: []string{"-only", "client"}, complete: true},
		"some variants":     {args: []string{"-variants", "operator"}, complete: true},
		"of two builds":     {args: []string{"-compare", "other"}, complete: true},
		"short":             {args: []string{"-short"}, complete: true},
		"to another file":   {args: []string{"-short", "-json", "mine.json"}, complete: true, want: "mine.json"},
		"partly, to a file": {args: []string{"-json", "mine.json"}, want: "mine.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("BENCH_JSON", "")
			t.Chdir(t.TempDir())
			if err := os.MkdirAll(resultsDir, 0o755); err != nil {
				t.Fatal(err)
			}
			o := parsePods(test.args)
			if err := o.store(&results{}, test.complete); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{resultsDir + "/pods.json", "mine.json"} {
				if _, err := os.Stat(file); (err == nil) != (file == test.want) {
					t.Errorf("%s: want %q written, got %v", file, test.want, err)
				}
			}
		})
	}
}
