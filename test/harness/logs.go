// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxLineBytes is where a line of a log is cut: etcd and the API server
	// write lines that fill a screen.
	maxLineBytes = 300
	logSuffix    = ".log"
)

// LogTails returns the last lines of every process's log, each under its name,
// for a person to read.
func (c *Cluster) LogTails(lines int) string {
	logs, err := filepath.Glob(c.logPath("*"))
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, log := range logs {
		text.WriteString(tail(log, lines))
	}
	return text.String()
}

func (c *Cluster) createLog(name string) (*os.File, error) {
	log, err := os.Create(c.logPath(name))
	if err != nil {
		return nil, fmt.Errorf("creating the log of %s: %w", name, err)
	}
	return log, nil
}

func (c *Cluster) logPath(name string) string {
	return filepath.Join(c.dir, name+logSuffix)
}

// tail returns the last lines of a log under a heading. A log that can't be
// read says so in their place: tail only ever adds to another error.
func tail(log string, lines int) string {
	heading := fmt.Sprintf("--- the end of %s:\n", filepath.Base(log))
	content, err := os.ReadFile(log)
	if err != nil {
		return heading + err.Error() + "\n"
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	last := all[max(0, len(all)-lines):]
	for i, line := range last {
		if len(line) > maxLineBytes {
			last[i] = line[:maxLineBytes] + " ..."
		}
	}
	return heading + strings.Join(last, "\n") + "\n"
}
