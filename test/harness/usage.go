// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTicks is the unit of CPU time in /proc, which Linux shows as 100 a
// second on every architecture.
const clockTicks = 100

// Consumption is what a process has used.
type Consumption struct {
	// CPU is the time on a processor since its start.
	CPU time.Duration
	// Memory is what is resident now, in bytes.
	Memory int64
}

// Consumption reads what the process has used so far. It needs Linux.
func (p *Process) Consumption() (Consumption, error) {
	return consumption(p.PID())
}

// APIServerConsumption reads what kube-apiserver has used since its last start.
func (c *Cluster) APIServerConsumption() (Consumption, error) {
	pid, err := c.watchdog.pid(apiServerName)
	if err != nil {
		return Consumption{}, err
	}
	return consumption(pid)
}

// EtcdConsumption reads what etcd has used.
func (c *Cluster) EtcdConsumption() (Consumption, error) {
	pid, err := c.watchdog.pid(etcdName)
	if err != nil {
		return Consumption{}, err
	}
	return consumption(pid)
}

func consumption(pid int) (Consumption, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Consumption{}, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	// proc_pid_stat(5): the second field is a name in parentheses that may hold
	// spaces; the 14th and 15th are user and system time, the 24th is pages.
	_, rest, _ := strings.Cut(string(stat), ") ")
	field := strings.Fields(rest)
	if len(field) < 22 {
		return Consumption{}, fmt.Errorf("reading the CPU time of process %d: %q is too short", pid, stat)
	}
	user, err1 := strconv.ParseInt(field[11], 10, 64)
	system, err2 := strconv.ParseInt(field[12], 10, 64)
	pages, err3 := strconv.ParseInt(field[21], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return Consumption{}, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	return Consumption{
		CPU:    time.Duration(user+system) * time.Second / clockTicks,
		Memory: pages * int64(os.Getpagesize()),
	}, nil
}
