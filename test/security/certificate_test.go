// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

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

var _ = Describe("A thief of the token without a client certificate", Label("attacks"), Ordered, func() {
	const name = "robbed"
	var attacked *harness.Operator
	BeforeAll(func(ctx SpecContext) {
		attacked = attackable(ctx, name, "--client-ca-file="+filepath.Join(recipe, "callers-ca.crt"))
	})

	It("is turned away, and the API server is not", func(ctx SpecContext) {
		Expect(admin.Create(ctx, builders.ConfigMap(name, "known"))).To(Succeed())
		path := "/" + suite.CallersToken(ctx, admin) + webhooks
		turned := gauge(ctx, attacked, turnedAway)
		status, _, err := post(ctx, attacked, path, forged(name))
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusNotFound))
		Expect(gauge(ctx, attacked, turnedAway)).To(BeNumerically("==", turned+1))

		By("showing what it could do with the certificate")
		certificate, err := tls.LoadX509KeyPair(filepath.Join(recipe, "apiserver.crt"), filepath.Join(recipe, "apiserver.key"))
		Expect(err).NotTo(HaveOccurred())
		status, allowed, err := post(ctx, attacked, path, forged(name), certificate)
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusOK))
		Expect(allowed).To(BeTrue())
	})

	It("gets no connection with a certificate of another authority", func(ctx SpecContext) {
		elsewhere := followRecipe(ctx)
		certificate, err := tls.LoadX509KeyPair(filepath.Join(elsewhere, "apiserver.crt"), filepath.Join(elsewhere, "apiserver.key"))
		Expect(err).NotTo(HaveOccurred())
		_, _, err = post(ctx, attacked, "/"+suite.CallersToken(ctx, admin)+webhooks, forged(name), certificate)
		Expect(err).To(MatchError(ContainSubstring("remote error: tls: ")))
	})
})

// followRecipe does what docs/security.md tells of the API server's certificate, and
// returns the directory of the files.
func followRecipe(ctx context.Context) string {
	GinkgoHelper()
	page, err := os.ReadFile(filepath.Join(suite.RepositoryRoot(), "docs", "security.md"))
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
