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

// ReportLog tells what the operator logged last with a spec that failed. It is for a
// JustAfterEach; operator is nil if none started.
func ReportLog(operator *harness.Operator) {
	GinkgoHelper()
	const lines = 20
	if !CurrentSpecReport().Failed() || operator == nil {
		return
	}
	logged := split(LogOf(operator.Process))
	last := logged[max(0, len(logged)-lines):]
	AddReportEntry("the end of the operator's log", strings.Join(last, "\n"), ReportEntryVisibilityFailureOrVerbose)
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

// CheckOperatorLogs fails if one of them holds what no operator may ever log.
func CheckOperatorLogs(cluster *harness.Cluster) {
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
