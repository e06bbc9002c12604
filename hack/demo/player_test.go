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
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// fakeShell gives one result after the other, and the last one from then on.
type fakeShell struct {
	results []harness.KubectlResult
	lines   []string
}

func (f *fakeShell) run(ctx context.Context, line string) (harness.KubectlResult, error) {
	result := f.results[min(len(f.lines), len(f.results)-1)]
	f.lines = append(f.lines, line)
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
			results: []harness.KubectlResult{created}, step: step{says: []string{`pod/\w created`}, hides: []string{"pod/b"}}, wantCalls: 1,
		},
		"a step that does not is not repeated": {
			results:   []harness.KubectlResult{forbidden, created},
			wantCalls: 1,
			wantError: "step 1 did not come out as told: the exit code should be 0, but is 1\n  command: kubectl create\n",
		},
		"a refusal": {
			results: []harness.KubectlResult{forbidden}, step: step{fails: true, says: []string{"exceeded"}}, wantCalls: 1,
		},
		"a refusal that does not come": {
			results: []harness.KubectlResult{created}, step: step{fails: true}, wantCalls: 1, wantError: "the exit code should be 1, but is 0",
		},
		"what should be said": {
			results: []harness.KubectlResult{created}, step: step{says: []string{"pod/a", "pod/b"}}, wantCalls: 1, wantError: `should say "pod/b"`,
		},
		"what should not be said": {
			results: []harness.KubectlResult{created}, step: step{hides: []string{"pod/b", "pod/a"}}, wantCalls: 1, wantError: `should not say "pod/a"`,
		},
		"a step with time is repeated until it comes out as told": {
			results: []harness.KubectlResult{forbidden, forbidden, created}, step: step{repeat: true}, wantCalls: 3,
		},
		"a step with time fails when the time is over": {
			results: []harness.KubectlResult{forbidden}, step: step{repeat: true}, wantCalls: int(soon/repeatInterval) + 2, wantError: "should be 0",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := &fakeShell{results: tt.results}
				p := &player{shell: fake.run, out: &screen{out: io.Discard}}
				tt.step.run = "kubectl create"
				_, err := p.play(t.Context(), []chapter{{steps: []step{tt.step}}})
				if got := errorText(err); !strings.Contains(got, tt.wantError) || tt.wantError == "" && got != "" {
					t.Errorf("got error %q, want %q", got, tt.wantError)
				}
				if len(fake.lines) != tt.wantCalls {
					t.Errorf("%d commands were run, want %d", len(fake.lines), tt.wantCalls)
				}
			})
		})
	}
}

func TestPlayStopsWhenInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p := &player{shell: (&fakeShell{results: []harness.KubectlResult{forbidden}}).run, out: &screen{out: io.Discard}}
		if err := p.tell(ctx, &step{run: "kubectl create", repeat: true}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

// TestStoryCanBeTyped looks at every step without running it.
func TestStoryCanBeTyped(t *testing.T) {
	for _, chapter := range story() {
		for _, step := range chapter.steps {
			for _, file := range regexp.MustCompile(`[\w-]+\.yaml`).FindAllString(step.run, -1) {
				if _, err := manifests.ReadFile("manifests/" + file); err != nil {
					t.Errorf("%s: %v", step.run, err)
				}
			}
			for _, text := range append(step.says, step.hides...) {
				if _, err := regexp.Compile(text); err != nil {
					t.Errorf("%s: %v", step.run, err)
				}
			}
		}
	}
}

// TestInstalledFilesExist looks for what is installed before the story begins.
func TestInstalledFilesExist(t *testing.T) {
	for _, file := range installed {
		if _, err := os.Stat(filepath.Join("..", "..", "config", file)); err != nil {
			t.Error(err)
		}
	}
	p := &player{shell: (&fakeShell{results: []harness.KubectlResult{forbidden}}).run}
	err := p.install(t.Context(), "../../config")
	if want := "installing roles and policies: the exit code should be 0, but is 1\nError from server (Forbidden)"; !strings.Contains(errorText(err), want) {
		t.Errorf("got error %v, want %q", err, want)
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
		"output without an end of line gets one": {print: func(s *screen) { s.output("a\nb") }, want: "a\nb\n"},
		"colours surround the text":              {print: func(s *screen) { s.coloured = true; s.command("ls") }, want: cyan + "\n$ ls\n" + plain},
		"a chapter fills the line": {
			print: func(s *screen) { s.chapter(1, "Title") }, want: "\n== 1. Title " + strings.Repeat("=", 88) + "\n",
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

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
