// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrExited says that a process ended though nobody had stopped it.
var ErrExited = errors.New("exited unexpectedly")

// Process is a process that a Cluster started. It leads a process group of
// its own, so that Ctrl-C in a terminal doesn't reach it.
type Process struct {
	name  string
	log   string
	cmd   *exec.Cmd
	grace time.Duration

	// stopping is true once Stop or Kill was called: ending is then no error.
	stopping atomic.Bool
	// done is closed when the process has ended. exit may be read from then on.
	done chan struct{}
	exit error
}

// processSpec says what startProcess is to start.
type processSpec struct {
	name string
	path string
	args []string
	// env is the whole environment; nil means that of this program.
	env []string
	// readyURL answers 200 once the process is ready, after timeout at most; 0 means 60 s.
	readyURL string
	timeout  time.Duration
	// grace is the time between SIGTERM and SIGKILL; 0 means 20 s.
	grace time.Duration
}

// startProcess runs what spec says, with its output in the log file of its
// name, and returns when it is ready.
func (c *Cluster) startProcess(ctx context.Context, spec processSpec) (*Process, error) {
	log, err := c.createLog(spec.name)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := c.watchdog.command(context.WithoutCancel(ctx), spec.name, spec.path, spec.args...)
	cmd.Env = spec.env
	cmd.Stdout, cmd.Stderr = log, log
	p := &Process{name: spec.name, log: log.Name(), cmd: cmd, grace: cmp.Or(spec.grace, defaultGracePeriod), done: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.name, err)
	}
	go func() {
		p.exit = cmd.Wait()
		c.watchdog.forget(spec.name)
		close(p.done)
	}()

	ctx, cancel := context.WithTimeout(ctx, cmp.Or(spec.timeout, defaultStartTimeout))
	defer cancel()
	if err := p.waitUntilReady(ctx, spec.readyURL); err != nil {
		_ = p.Kill() // err has said all.
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, p)
	return p, nil
}

// Name is the process's name, unique in its cluster.
func (p *Process) Name() string {
	return p.name
}

// PID is the process's id, and that of its process group.
func (p *Process) PID() int {
	return p.cmd.Process.Pid
}

// Log is the path of the file that holds the process's output.
func (p *Process) Log() string {
	return p.log
}

// Done is closed when the process has ended, for whatever reason.
func (p *Process) Done() <-chan struct{} {
	return p.done
}

// Stop sends SIGTERM, and SIGKILL if the process is still there after its grace
// period; it returns when the process has ended. The error, with the end of the
// log, says that it had ended before (ErrExited) or had to be killed. Stopping
// what was stopped or killed before is no error.
func (p *Process) Stop() error {
	if p.stopping.Swap(true) {
		<-p.done
		return nil
	}
	select {
	case <-p.done:
		return p.exitError()
	default:
	}
	p.signal(syscall.SIGTERM)
	p.Resume() // Paused, it would never see the signal.
	grace := time.NewTimer(p.grace)
	defer grace.Stop()
	select {
	case <-p.done:
		return nil
	case <-grace.C:
	}
	p.signal(syscall.SIGKILL)
	<-p.done
	return fmt.Errorf("%s did not stop within %s of SIGTERM and was killed\n%s", p.name, p.grace, tail(p.log, tailLines))
}

// Kill sends SIGKILL, as a crash would end the process, and returns when it
// has ended. The error says that it had ended before (ErrExited).
func (p *Process) Kill() error {
	if p.stopping.Swap(true) {
		<-p.done
		return nil
	}
	select {
	case <-p.done:
		return p.exitError()
	default:
	}
	p.signal(syscall.SIGKILL)
	<-p.done
	return nil
}

// Pause sends SIGSTOP: the process does nothing until Resume, but keeps its
// connections.
func (p *Process) Pause() {
	p.signal(syscall.SIGSTOP)
}

// Resume sends SIGCONT.
func (p *Process) Resume() {
	p.signal(syscall.SIGCONT)
}

// signal reaches the whole process group. It fails only where none is left.
func (p *Process) signal(signal syscall.Signal) {
	_ = syscall.Kill(-p.PID(), signal)
}

func (p *Process) exitError() error {
	return fmt.Errorf("%s %w: %s\n%s", p.name, ErrExited, p.cmd.ProcessState, tail(p.log, tailLines))
}

// waitUntilReady returns once url answers 200.
func (p *Process) waitUntilReady(ctx context.Context, url string) error {
	probe := &http.Client{
		Timeout: 5 * time.Second,
		// Loopback, and only whether it answers: the certificate doesn't matter.
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	defer probe.CloseIdleConnections()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		last := get(ctx, probe, url)
		if last == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.exitError()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to be ready: %w; last: %w\n%s",
				p.name, ctx.Err(), last, tail(p.log, tailLines))
		case <-ticker.C:
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}
