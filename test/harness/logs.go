/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
