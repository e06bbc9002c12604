// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// watchdog ends what its parent leaves behind: a shell that waits until its
// standard input ends, which happens when the parent lets go of the other end
// or dies, by SIGKILL too. Then it kills the processes that are written down
// in the directory pids, and removes the cluster's directory.
//
// A parent-death signal (PR_SET_PDEATHSIG) wouldn't do: it is sent when the
// thread that started the process ends, not the program; only Linux has it;
// and envtest starts its processes without it.
type watchdog struct {
	dir     string
	cmd     *exec.Cmd
	input   *os.File
	release func() error
}

// watchdogScript takes the directory and what to do with it, keep or remove.
//
// The directory pids is renamed first: from then on registerScript fails, so
// that nothing can start unseen. A process that was killed may still be
// writing a file while its directory is removed, hence the second try and more.
const watchdogScript = `
trap '' HUP INT TERM
read -r _
mv "$1/pids" "$1/ended"
for file in "$1"/ended/*; do
	if [ -s "$file" ]; then kill -s KILL -- "-$(cat "$file")" 2>/dev/null; fi
done
if [ "$2" = keep ]; then exit 0; fi
tries=0
until rm -rf -- "$1" 2>/dev/null; do
	tries=$((tries + 1))
	if [ "$tries" -ge 100 ]; then exit 1; fi
done
`

// registerScript takes the file to write its process id to, and the command to
// become. It is the same process before and after, so that no moment is left in
// which the command runs and isn't written down.
const registerScript = `echo $$ >"$0" && exec "$@"`

func startWatchdog(dir string, keep bool) (*watchdog, error) {
	w := &watchdog{dir: dir}
	if err := os.Mkdir(w.pidDir(), 0o700); err != nil {
		return nil, err
	}
	output, input, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	defer output.Close()
	then := "remove"
	if keep {
		then = "keep"
	}
	w.input = input
	w.cmd = exec.Command("sh", "-c", watchdogScript, "watchdog", dir, then)
	w.cmd.Dir = string(filepath.Separator)
	w.cmd.Stdin = output
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not reach it.
	if err := w.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the watchdog: %w", err), input.Close())
	}
	w.release = sync.OnceValue(w.finish)
	return w, nil
}

// finish lets the watchdog do its work, and waits until it is done.
func (w *watchdog) finish() error {
	closeErr := w.input.Close()
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("cleaning up %s: %w", w.dir, err)
	}
	return closeErr
}

// command returns a command that becomes path, in a process group of its own
// and known to the watchdog under name. Forget the name once it has ended. The
// group is killed when ctx ends. A path that leads nowhere makes Start fail.
func (w *watchdog) command(ctx context.Context, name, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", registerScript, w.pidFile(name), path}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if _, err := os.Stat(path); err != nil {
		cmd.Err = err
	}
	return cmd
}

// script writes a program that does the same for whoever takes only a path and
// makes the process group itself.
func (w *watchdog) script(name, path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("finding %s: %w", name, err)
	}
	text := fmt.Sprintf("#!/bin/sh\necho $$ >%s && exec %s \"$@\"\n", shellQuote(w.pidFile(name)), shellQuote(path))
	file := filepath.Join(w.dir, name+".sh")
	// A process that starts while the file is open for writing has it open, too, until it becomes another program. So long
	// nobody can run the script. https://go.dev/issue/22315
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return file, os.WriteFile(file, []byte(text), 0o700)
}

// forget is called when the process has ended, for its id may be used again.
func (w *watchdog) forget(name string) {
	_ = os.Remove(w.pidFile(name))
}

// pid returns the process id of what runs under name.
func (w *watchdog) pid(name string) (int, error) {
	text, err := os.ReadFile(w.pidFile(name))
	if err != nil {
		return 0, fmt.Errorf("finding the process %s: %w", name, err)
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

func (w *watchdog) pidDir() string {
	return filepath.Join(w.dir, "pids")
}

func (w *watchdog) pidFile(name string) string {
	return filepath.Join(w.pidDir(), name)
}

func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
