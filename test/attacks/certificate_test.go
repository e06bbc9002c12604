// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// hostDirectory is where the recipe has the API server's files.
const hostDirectory = "/etc/kubernetes/webhooks"

var _ = Describe("A thief of the token without a client certificate", Ordered, func() {
	var t *target
	var directory string
	BeforeAll(func(ctx SpecContext) {
		directory = followRecipe(ctx)
		t = install(ctx, harness.Options{APIServerFlags: map[string]string{
			"admission-control-config-file": filepath.Join(directory, "admission.yaml"),
		}}, []int{2}, "--client-ca-file", filepath.Join(directory, "callers-ca.crt"))
	}, NodeTimeout(suite.BuildTimeout))

	It("is turned away, and the API server is not", func(ctx SpecContext) {
		Expect(t.admin.Create(ctx, builders.ConfigMap(namespace, "honest"))).To(Succeed())
		path := "/" + suite.CallersToken(ctx, t.admin) + webhooks
		status, _, err := t.post(ctx, path, forged())
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusNotFound))
		Expect(t.gauge(ctx, turnedAway)).To(BeNumerically("==", 1))

		By("showing what it could do with the certificate")
		certificate, err := tls.LoadX509KeyPair(filepath.Join(directory, "apiserver.crt"), filepath.Join(directory, "apiserver.key"))
		Expect(err).NotTo(HaveOccurred())
		status, allowed, err := t.post(ctx, path, forged(), certificate)
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusOK))
		Expect(allowed).To(BeTrue())
	})

	It("gets no connection with a certificate of another authority", func(ctx SpecContext) {
		elsewhere := followRecipe(ctx)
		certificate, err := tls.LoadX509KeyPair(filepath.Join(elsewhere, "apiserver.crt"), filepath.Join(elsewhere, "apiserver.key"))
		Expect(err).NotTo(HaveOccurred())
		_, _, err = t.post(ctx, "/"+suite.CallersToken(ctx, t.admin)+webhooks, forged(), certificate)
		Expect(err).To(MatchError(ContainSubstring("remote error: tls: ")))
	})
})

// followRecipe does what docs/security.md tells of the API server's certificate, and
// returns the directory of the files.
func followRecipe(ctx context.Context) string {
	GinkgoHelper()
	root, err := harness.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	page, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	Expect(err).NotTo(HaveOccurred())
	_, section, found := strings.Cut(string(page), "\n### A certificate for the API server\n")
	Expect(found).To(BeTrue(), "the recipe's heading")
	section, _, _ = strings.Cut(section, "\n## ")
	directory := GinkgoT().TempDir()
	section = strings.ReplaceAll(section, hostDirectory, directory)
	for _, file := range regexp.MustCompile("(?s)```yaml\n# (\\S+)\n(.*?)```").FindAllStringSubmatch(section, -1) {
		Expect(os.WriteFile(filepath.Join(directory, file[1]), []byte(file[2]), 0o600)).To(Succeed())
	}
	commands := regexp.MustCompile("(?s)```sh\n(openssl .*?)```").FindStringSubmatch(section)
	Expect(commands).To(HaveLen(2), "the recipe's commands")
	making := exec.CommandContext(ctx, "bash", "-e", "-c", commands[1])
	making.Dir = directory
	said, err := making.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(said))
	return directory
}
