// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newProcessCluster returns a cluster without a control plane, for processes alone.
func newProcessCluster(t *testing.T) *Cluster {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cluster")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	dog, err := startWatchdog(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dog.release(); err != nil {
			t.Error(err)
		}
	})
	return &Cluster{dir: dir, watchdog: dog, names: map[string]int{}}
}

// shell is a process that runs a script and is ready once the script has made
// the file ready in the cluster's directory.
func shell(t *testing.T, c *Cluster, script string) processSpec {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(c.Dir())))
	t.Cleanup(server.Close)
	return processSpec{
		name: "shell", path: "/bin/sh", args: []string{"-c", "cd " + shellQuote(c.Dir()) + "; " + script},
		readyURL: server.URL + "/ready", timeout: 20 * time.Second, grace: 20 * time.Second,
	}
}

func TestStartFails(t *testing.T) {
	tests := map[string]struct {
		script    string
		timeout   time.Duration
		wantError error
		wantText  string
	}{
		"the process ends before it is ready": {
			script: "echo bad flag >&2; exit 3", timeout: 20 * time.Second,
			wantError: ErrExited, wantText: "shell exited unexpectedly: exit status 3\n--- the end of shell.log:\nbad flag\n",
		},
		"the process does not become ready in time": {
			script: "echo still loading; while read -r line; do :; done <keep-open", timeout: 300 * time.Millisecond,
			wantError: context.DeadlineExceeded, wantText: "--- the end of shell.log:\nstill loading\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newProcessCluster(t)
			spec := shell(t, c, "mkfifo keep-open; "+tt.script)
			spec.timeout = tt.timeout
			_, err := c.startProcess(t.Context(), spec)
			if !errors.Is(err, tt.wantError) || !strings.HasSuffix(err.Error(), tt.wantText) {
				t.Errorf("got error %v, want %v, ending in %q", err, tt.wantError, tt.wantText)
			}
			if left := mustPIDs(t, c.Dir()); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

func TestStartNamesAMissingBinary(t *testing.T) {
	c := newProcessCluster(t)
	_, err := c.startProcess(t.Context(), processSpec{name: "operator", path: "/does/not/exist"})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v, want %v", err, os.ErrNotExist)
	}
}

func TestStop(t *testing.T) {
	const waitForever = "mkfifo keep-open; touch ready; while :; do read -r line <keep-open; done"
	tests := map[string]struct {
		script string
		grace  time.Duration
		first  func(*Process) error
		want   string
	}{
		"a process that obeys SIGTERM":            {script: waitForever, grace: 20 * time.Second},
		"a process that was killed before":        {script: waitForever, grace: 20 * time.Second, first: (*Process).Kill},
		"a process that was stopped before":       {script: waitForever, grace: 20 * time.Second, first: (*Process).Stop},
		"a process that ignores SIGTERM":          {script: "trap '' TERM; echo deaf; " + waitForever, grace: 100 * time.Millisecond, want: "shell did not stop within 100ms of SIGTERM and was killed\n--- the end of shell.log:\ndeaf\n"},
		"a process that has ended without a word": {script: "touch ready; read -r line <die; echo panic; exit 2", grace: 20 * time.Second, first: die, want: "shell exited unexpectedly: exit status 2\n--- the end of shell.log:\npanic\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newProcessCluster(t)
			spec := shell(t, c, "mkfifo die; "+tt.script)
			spec.grace = tt.grace
			p, err := c.startProcess(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if tt.first != nil {
				if err := tt.first(p); err != nil {
					t.Fatal(err)
				}
			}
			var got string
			if err := p.Stop(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("Stop returned %q, want %q", got, tt.want)
			}
			if left := mustPIDs(t, c.Dir()); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

// die lets the process end by itself, and waits for it.
func die(p *Process) error {
	if err := os.WriteFile(filepath.Join(filepath.Dir(p.Log()), "die"), []byte("now\n"), 0); err != nil {
		return err
	}
	<-p.Done()
	return nil
}

func TestConsumptionGrows(t *testing.T) {
	c := newProcessCluster(t)
	p, err := c.startProcess(t.Context(), shell(t, c, `touch ready; while :; do :; done`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		used, err := p.Consumption()
		if err != nil {
			t.Fatal(err)
		}
		if used.CPU >= 50*time.Millisecond && used.Memory > 0 {
			return
		}
	}
	t.Error("a process that is busy has used no CPU")
}
