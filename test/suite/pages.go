// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Commands returns the command lines below a heading of a page that the page says a suite runs, such
// as test/helm.
func Commands(by, page, heading string) []string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(RepositoryRoot(), page))
	Expect(err).NotTo(HaveOccurred())
	_, below, ok := strings.Cut(string(text), " "+heading+"\n")
	Expect(ok).To(BeTrue(), "%s: %s", page, heading)
	if end := strings.Index(below, "\n#"); end >= 0 {
		below = below[:end]
	}
	var lines []string
	for _, block := range strings.Split(below, "<!-- not run: "+by+" runs it -->\n\n```sh\n")[1:] {
		script, _, _ := strings.Cut(block, "```")
		lines = append(lines, strings.Split(strings.TrimSpace(strings.ReplaceAll(script, "\\\n", " ")), "\n")...)
	}
	Expect(lines).NotTo(BeEmpty(), "%s: %s", page, heading)
	return lines
}
