// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
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

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		startAndHang()
	}
	if os.Getenv(inNamespaceEnv) != "" {
		os.Exit(InNamespace(lookAround))
	}
	os.Exit(m.Run())
}

func TestClusterServesUntilStopped(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx := testContext(t, 2*time.Minute)
	c, err := Start(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	if _, err := c.StartControllerManager(ctx); err != nil {
		t.Fatal(err)
	}

	t.Run("the admin reads the installed types", func(t *testing.T) {
		mustKubectl(ctx, t, c, "", "get", "crq,quotaledgers,lrq", "--ignore-not-found")
	})
	t.Run("the controllers make pods for a deployment that kubectl reads from its input", func(t *testing.T) {
		mustKubectl(ctx, t, c, deployment, "create", "-f", "-")
		mustKubectl(ctx, t, c, "", "wait", "--for=jsonpath={.status.replicas}=1", "deployment/web", "--timeout=60s")
	})
	t.Run("a user without rights is refused, and kubectl's exit code says so", func(t *testing.T) {
		config, err := c.User("mallory")
		if err != nil {
			t.Fatal(err)
		}
		path, err := c.WriteKubeconfig("mallory", config)
		if err != nil {
			t.Fatal(err)
		}
		result, err := c.Kubectl(ctx, nil, "get", "crq", "--kubeconfig", path)
		if err != nil {
			t.Fatal(err)
		}
		if result.ExitCode != 1 || !strings.Contains(result.Stderr, `User "mallory" cannot list resource`) {
			t.Errorf("kubectl as a user without rights: %+v", result)
		}
	})
	t.Run("an impersonated user is who they are said to be", func(t *testing.T) {
		path, err := c.WriteKubeconfig("ivy", c.As("ivy", "owners"))
		if err != nil {
			t.Fatal(err)
		}
		got := mustKubectl(ctx, t, c, "", "auth", "whoami", "--kubeconfig", path, "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}")
		if want := `ivy ["owners","system:authenticated"]`; got != want {
			t.Errorf("whoami says %s, want %s", got, want)
		}
	})
	t.Run("the API server is back after a crash, at the same address and with the same data", func(t *testing.T) {
		before := mustConsume(t, c.APIServerConsumption)
		mustConsume(t, c.EtcdConsumption)
		pid := mustPIDs(t, c.Dir())[apiServerName]
		if err := c.RestartAPIServer(); err != nil {
			t.Fatal(err)
		}
		mustKubectl(ctx, t, c, "", "get", "deployment", "web")
		if again := mustPIDs(t, c.Dir())[apiServerName]; again == pid {
			t.Errorf("process %d still serves", pid)
		}
		if after := mustConsume(t, c.APIServerConsumption); after.CPU > before.CPU {
			t.Errorf("the new API server has used %s of a processor, more than the %s of the old one", after.CPU, before.CPU)
		}
	})
	t.Run("etcd answers at its URL", func(t *testing.T) {
		if err := get(ctx, http.DefaultClient, c.EtcdURL()+"/health"); err != nil {
			t.Error(err)
		}
	})

	pids := mustPIDs(t, c.Dir())
	if got, want := len(pids), 3; got != want {
		t.Errorf("%d processes run, want %d: %v", got, want, pids)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}
	wantGone(t, c.Dir(), pids)
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

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: registry.example.com/web
`

// mustConsume reads what a process has used, which is something at least.
func mustConsume(t *testing.T, read func() (Consumption, error)) Consumption {
	t.Helper()
	used, err := read()
	if err != nil {
		t.Fatal(err)
	}
	if used.CPU <= 0 || used.Memory < 1<<20 {
		t.Errorf("got %+v, want some CPU and more than a megabyte", used)
	}
	return used
}

func testContext(t *testing.T, timeout time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

func mustKubectl(ctx context.Context, t *testing.T, c *Cluster, stdin string, args ...string) string {
	t.Helper()
	result, err := c.Kubectl(ctx, strings.NewReader(stdin), args...)
	if err != nil {
		t.Fatal(err)
	}
	if result.ExitCode != 0 {
		t.Fatalf("kubectl %v: exit code %d\n%s", args, result.ExitCode, result.Stderr)
	}
	return result.Stdout
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
