// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
)

// helperEnv makes the test binary the program that is killed in
// TestNothingOutlivesTheProgram.
const helperEnv = "HARNESS_TEST_HELPER"

// The tests may collect garbage otherwise: .ci/run does.
func TestTheOperatorCollectsGarbageAsInACluster(t *testing.T) {
	t.Setenv("GOGC", "400")
	cmd := exec.Command("env")
	cmd.Env = operatorEnv()
	printed, err := cmd.Output()
	if err != nil || !strings.Contains("\n"+string(printed), "\nGOGC=\n") {
		t.Errorf("%v, and it has %s", err, printed)
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		startAndHang()
	}
	os.Exit(m.Run())
}

func TestInterruptedStartLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := Start(ctx, Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start returned %v, want %v", err, context.DeadlineExceeded)
	}
	left, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestNothingOutlivesTheProgram(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx := testContext(t, 2*time.Minute)
	var stderr bytes.Buffer
	program := exec.CommandContext(ctx, os.Args[0])
	program.Env = append(os.Environ(), helperEnv+"=1")
	program.Stderr = &stderr
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	dir, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = program.Wait()
		t.Fatalf("the program did not start its cluster: %v\n%s", err, &stderr)
	}
	dir = strings.TrimSpace(dir)
	pids := mustPIDs(t, dir)
	if len(pids) != 2 {
		t.Errorf("%d processes run, want etcd and kube-apiserver: %v", len(pids), pids)
	}

	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait() // It was killed: that is its error.
	wantGone(t, dir, pids)
}

// startAndHang is the program of TestNothingOutlivesTheProgram.
func startAndHang() {
	c, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.Dir())
	select {}
}

func testContext(t *testing.T, timeout time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// mustPIDs returns the processes that run in the cluster's directory, name -> id.
func mustPIDs(t *testing.T, dir string) map[string]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "pids", "*"))
	if err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
		if err != nil {
			t.Fatal(err)
		}
		if !alive(pid) {
			t.Errorf("%s does not run", file)
		}
		pids[filepath.Base(file)] = pid
	}
	return pids
}

func wantGone(t *testing.T, dir string, pids map[string]int) {
	t.Helper()
	want := map[string]bool{}
	for name := range pids {
		want[name] = false
	}
	got := map[string]bool{}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		for name, pid := range pids {
			got[name] = alive(pid)
		}
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist) && cmp.Equal(want, got), nil
	})
	if err != nil {
		t.Errorf("left behind: %s, and of the processes (-want,+got):\n%s", dir, cmp.Diff(want, got))
	}
}

// alive tells whether the process runs. One that has ended and that nobody has
// waited for yet doesn't.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(string(state), "Z")
}
