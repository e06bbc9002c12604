// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// fakeKubectl gives one result after the other, and the last one from then on.
type fakeKubectl struct {
	results []harness.KubectlResult
	called  [][]string
}

func (f *fakeKubectl) KubectlIn(ctx context.Context, _ string, _ io.Reader, args ...string) (harness.KubectlResult, error) {
	result := f.results[min(len(f.called), len(f.results)-1)]
	f.called = append(f.called, args)
	return result, ctx.Err()
}

var (
	created   = harness.KubectlResult{Stdout: "pod/a created\n"}
	forbidden = harness.KubectlResult{Stderr: "Error from server (Forbidden): exceeded quota\n", ExitCode: 1}
)

func TestPlay(t *testing.T) {
	tests := map[string]struct {
		results   []harness.KubectlResult
		step      step
		wantCalls int
		// wantError is what the error must contain; empty for none.
		wantError string
	}{
		"a step that comes out as told": {
			results:   []harness.KubectlResult{created},
			step:      step{run: "kubectl create", want: []check{succeeds}},
			wantCalls: 1,
		},
		"a step that does not is not repeated": {
			results:   []harness.KubectlResult{forbidden, created},
			step:      step{run: "kubectl create", want: []check{succeeds}},
			wantCalls: 1,
			wantError: "step 1 did not come out as told: should succeed, but its exit code is 1\n  command: kubectl create\n",
		},
		"a refusal that does not come": {
			results:   []harness.KubectlResult{created, forbidden},
			step:      step{run: "kubectl create", want: []check{refused}},
			wantCalls: 1,
			wantError: "should be refused, but it succeeded",
		},
		"a step with time is repeated until it does": {
			results:   []harness.KubectlResult{forbidden, forbidden, created},
			step:      step{run: "kubectl create", within: time.Minute, want: []check{succeeds}},
			wantCalls: 3,
		},
		"a step with time fails when the time is over": {
			results:   []harness.KubectlResult{forbidden},
			step:      step{run: "kubectl create", within: 10*repeatInterval - repeatInterval/2, want: []check{succeeds}},
			wantCalls: 11,
			wantError: "should succeed",
		},
		"a command that the player doesn't know": {
			step:      step{run: "rm -rf /", want: []check{succeeds}},
			wantError: "no such command: rm -rf /",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := &fakeKubectl{results: tt.results}
				p := &player{kubectl: fake, out: &screen{out: io.Discard}}
				_, err := p.play(t.Context(), []chapter{{steps: []step{tt.step}}})
				wantErrorText(t, err, tt.wantError)
				if len(fake.called) != tt.wantCalls {
					t.Errorf("kubectl was called %d times, want %d", len(fake.called), tt.wantCalls)
				}
			})
		})
	}
}

func TestPlayStopsWhenInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p := &player{kubectl: &fakeKubectl{results: []harness.KubectlResult{forbidden}}, out: &screen{out: io.Discard}}
		err := p.tell(ctx, step{run: "kubectl create", within: time.Hour, want: []check{succeeds}})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

func TestChecks(t *testing.T) {
	tests := map[string]struct {
		check  check
		result harness.KubectlResult
		// want is the complaint; empty for none.
		want string
	}{
		"succeeds":              {check: succeeds, result: created},
		"succeeds, but doesn't": {check: succeeds, result: forbidden, want: "should succeed, but its exit code is 1"},
		"refused":               {check: refused, result: forbidden},
		"refused by a webhook, as other commands print it": {
			check:  refused,
			result: harness.KubectlResult{ExitCode: 1, Stderr: "error: failed to create service: admission webhook \"x\" denied the request: no\n"},
		},
		"refused by a policy": {
			check:  refused,
			result: harness.KubectlResult{ExitCode: 1, Stderr: "error: failed to create quota: resourcequotas \"mine\" is forbidden: no\n"},
		},
		"refused, but isn't":              {check: refused, result: created, want: "should be refused, but it succeeded"},
		"refused, but failed another way": {check: refused, result: harness.KubectlResult{ExitCode: 1, Stderr: "timeout"}, want: "should be refused, but it failed in another way"},
		"answers no":                      {check: answersNo, result: harness.KubectlResult{ExitCode: 1}},
		"answers no, but it succeeds":     {check: answersNo, result: created, want: "should exit with code 1, but its exit code is 0"},
		"answers no, but can't tell":      {check: answersNo, result: harness.KubectlResult{ExitCode: 2}, want: "should exit with code 1, but its exit code is 2"},
		"says":                            {check: says("pod/a", "created"), result: created},
		"says, on stderr":                 {check: says("exceeded"), result: forbidden},
		"says, but only one of two":       {check: says("pod/a", "pod/b"), result: created, want: `should say "pod/b"`},
		"does not say":                    {check: doesNotSay("pod/b"), result: created},
		"does not say, but does":          {check: doesNotSay("pod/b", "pod/a"), result: created, want: `should not say "pod/a"`},
		"matches":                         {check: matches(`^pod/\w created\n$`), result: created},
		"matches, but doesn't":            {check: matches(`^pod$`), result: created, want: "should match ^pod$"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got string
			if err := tt.check(tt.result); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestStoryCanBeTyped looks at every command without running it.
func TestStoryCanBeTyped(t *testing.T) {
	for _, chapter := range story() {
		for _, step := range chapter.steps {
			words, err := splitWords(step.run)
			if err != nil {
				t.Error(err)
				continue
			}
			wantManifests(t, words)
			wantFits(t, "$ "+step.run)
			if len(step.want) == 0 {
				t.Errorf("%s: nothing is checked", step.run)
			}
		}
	}
}

// TestInstalledFilesExist looks for what is installed before the story begins.
func TestInstalledFilesExist(t *testing.T) {
	fake := &fakeKubectl{results: []harness.KubectlResult{created}}
	p := &player{kubectl: fake, out: &screen{out: io.Discard}}
	if err := p.install(t.Context(), "../../config"); err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, word := range fake.called[0] {
		if !filepath.IsAbs(word) {
			continue
		}
		files++
		if _, err := os.Stat(word); err != nil {
			t.Error(err)
		}
	}
	if files != len(installed()) {
		t.Errorf("%d files are installed by absolute paths, want %d", files, len(installed()))
	}
}

func TestInstallTellsWhatFailed(t *testing.T) {
	p := &player{kubectl: &fakeKubectl{results: []harness.KubectlResult{forbidden}}, out: &screen{out: io.Discard}}
	err := p.install(t.Context(), "config")
	wantErrorText(t, err, "installing roles and policies: should succeed, but its exit code is 1\nError from server (Forbidden)")
}

// wantManifests fails the test if a command names a file that isn't there.
func wantManifests(t *testing.T, words []string) {
	t.Helper()
	for _, word := range words {
		if !strings.HasSuffix(word, ".yaml") {
			continue
		}
		if _, err := manifests.ReadFile("manifests/" + word); err != nil {
			t.Errorf("%v: %v", words, err)
		}
	}
}

// wantFits fails the test if the text doesn't fit the screen.
func wantFits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if len(strings.TrimSuffix(line, "\n")) > width {
			t.Errorf("wider than %d columns: %s", width, line)
		}
	}
}

func TestSplitWords(t *testing.T) {
	tests := map[string]struct {
		command   string
		want      []string
		wantError string
	}{
		"words":                       {command: "kubectl  get crq", want: []string{"kubectl", "get", "crq"}},
		"a quoted word":               {command: `patch -p '{"a": "b"}' now`, want: []string{"patch", "-p", `{"a": "b"}`, "now"}},
		"quotes within a word":        {command: `-o jsonpath='{a b}{"\n"}'`, want: []string{"-o", `jsonpath={a b}{"\n"}`}},
		"an empty word":               {command: "a '' b", want: []string{"a", "", "b"}},
		"a continued line":            {command: "get crq \\\n    -o yaml", want: []string{"get", "crq", "-o", "yaml"}},
		"a line break that is quoted": {command: "'a\\\nb'", want: []string{"a\\\nb"}},
		"an open quote":               {command: "it's", wantError: "a quote is left open"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := splitWords(tt.command)
			wantErrorText(t, err, tt.wantError)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("words (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestScreen(t *testing.T) {
	tests := map[string]struct {
		print func(*screen)
		want  string
	}{
		"a paragraph is broken at spaces": {
			print: func(s *screen) { s.say(strings.Repeat("word ", 20) + "end.") },
			want:  "\n" + strings.TrimSpace(strings.Repeat("word ", 20)) + "\nend.\n",
		},
		"output that fits is not changed": {
			print: func(s *screen) { s.output("NAME   AGE\na      1s\n") },
			want:  "NAME   AGE\na      1s\n",
		},
		"output without an end of line gets one": {
			print: func(s *screen) { s.output("a\nb") },
			want:  "a\nb\n",
		},
		"long output continues indented": {
			print: func(s *screen) { s.output(strings.Repeat("x", 99) + " yyy zzz\n") },
			want:  strings.Repeat("x", 99) + "\n        yyy zzz\n",
		},
		"long text in a table's last column continues below it": {
			print: func(s *screen) { s.output("TYPE    SAYS  " + strings.Repeat("word ", 18) + "end.\n") },
			want:  "TYPE    SAYS  " + strings.TrimSpace(strings.Repeat("word ", 17)) + "\n" + strings.Repeat(" ", 14) + "word end.\n",
		},
		"but not where that leaves no room": {
			print: func(s *screen) { s.output(strings.Repeat("x", 80) + "   long text at the right edge of the screen\n") },
			want:  strings.Repeat("x", 80) + "   long text at the\n        right edge of the screen\n",
		},
		"except for little text": {
			print: func(s *screen) { s.output(strings.Repeat("x", 80) + "   little text at the right\n") },
			want:  strings.Repeat("x", 80) + "   little text at\n" + strings.Repeat(" ", 83) + "the right\n",
		},
		"a table that is too wide has its cells folded": {
			print: func(s *screen) {
				s.output("NAME   USED" + strings.Repeat(" ", 76) + "AGE   HERE\n" +
					"a      " + strings.Repeat("word ", 16) + "1s    two words\n")
			},
			want: "NAME   USED" + strings.Repeat(" ", 74) + "AGE   HERE\n" +
				"a      " + strings.TrimSpace(strings.Repeat("word ", 15)) + "    1s    two words\n" +
				"       word\n",
		},
		"a word that is too long stays whole": {
			print: func(s *screen) { s.output("a " + strings.Repeat("x", 110) + " b") },
			want:  "a\n        " + strings.Repeat("x", 110) + "\n        b\n",
		},
		"colours surround the text": {
			print: func(s *screen) { s.coloured = true; s.command("ls") },
			want:  cyan + "\n$ ls\n" + plain,
		},
		"a chapter fills the line": {
			print: func(s *screen) { s.chapter(1, "Title") },
			want:  "\n== 1. Title " + strings.Repeat("=", 88) + "\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			tt.print(&screen{out: &out})
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("printed (-want,+got):\n%s", diff)
			}
		})
	}
}

// wantErrorText fails the test unless err contains text, or is nil where text is empty.
func wantErrorText(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case err == nil && text != "":
		t.Errorf("no error, want one that says %q", text)
	case err != nil && (text == "" || !strings.Contains(err.Error(), text)):
		t.Errorf("got error %q, want %q", err, text)
	}
}
