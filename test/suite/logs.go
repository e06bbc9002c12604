// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// LogOf returns what a process has logged so far.
func LogOf(process *harness.Process) string {
	GinkgoHelper()
	return read(process.Log())
}

// reportLogs tells what the operators logged last, with a spec that failed.
func reportLogs() {
	const lines = 20
	if !CurrentSpecReport().Failed() {
		return
	}
	for _, cluster := range clusters {
		for name, logged := range OperatorLogs(cluster) {
			written, err := os.Stat(filepath.Join(cluster.Dir(), name))
			if err == nil && written.ModTime().Before(CurrentSpecReport().StartTime) {
				continue // it ended before
			}
			last := logged[max(0, len(logged)-lines):]
			AddReportEntry("the end of "+name, strings.Join(last, "\n"), ReportEntryVisibilityFailureOrVerbose)
		}
	}
}

// OperatorLogs returns what each operator that ever ran has logged, file name -> lines.
func OperatorLogs(cluster *harness.Cluster) map[string][]string {
	GinkgoHelper()
	paths, err := filepath.Glob(filepath.Join(cluster.Dir(), "operator*.log"))
	Expect(err).NotTo(HaveOccurred())
	logs := map[string][]string{}
	for _, path := range paths {
		logs[filepath.Base(path)] = split(read(path))
	}
	return logs
}

// checkOperatorLogs fails if one of them holds what no operator may ever log.
func checkOperatorLogs(cluster *harness.Cluster) {
	GinkgoHelper()
	for name, lines := range OperatorLogs(cluster) {
		for _, trouble := range []string{"panic:", "Observed a panic", "DATA RACE", "count that had drifted"} {
			Expect(lines).NotTo(ContainElement(ContainSubstring(trouble)), name)
		}
	}
}

func read(path string) string {
	GinkgoHelper()
	log, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	return string(log)
}

func split(log string) []string { return strings.Split(strings.TrimSpace(log), "\n") }
