// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/sharedquota/shared-quota-operator/test/suite"
)

var _ = DescribeTable("A mistake is refused, and the message names it:",
	func(ctx SpecContext, values string, messages ...string) {
		_, stderr, err := cli.try(ctx, values, "template", "shared-quota", chartDir, "--namespace", suite.Namespace, "--values", "-")
		Expect(err).To(HaveOccurred())
		for _, message := range messages {
			Expect(stderr).To(ContainSubstring(message))
		}
	},
	Entry("an unknown value", "replica: 3", "'replica' not allowed"),
	Entry("an unknown value inside of another", "image: {name: x}", "/image", "'name' not allowed"),
	Entry("no replicas", "replicas: 0", "/replicas", "minimum: got 0, want 1"),
	Entry("replicas as a word", "replicas: two", "/replicas", "got string, want integer"),
	Entry("half a replica", "replicas: 1.5", "/replicas", "got number, want integer"),
	Entry("no image", "image: {repository: ''}", "/image/repository", "minLength"),
	Entry("an image with its tag twice", "image: {tag: 'operator:v1'}", "/image/tag", "does not match pattern"),
	Entry("a digest that is none", "image: {digest: v1}", "/image/digest", "does not match pattern"),
	Entry("a pull policy that is none", "image: {pullPolicy: Sometimes}", "/image/pullPolicy", "'Always'"),
	Entry("resources in their wrong place", "resources: {cpu: 1}", "/resources", "'cpu' not allowed"),
	Entry("an unknown flag", "flags: {failure-polcy: Ignore}", "/flags", "'failure-polcy' not allowed"),
	Entry("a flag with its dashes", "flags: {--escrow: false}", "/flags", "'--escrow' not allowed"),
	Entry("a flag that the chart sets", "flags: {webhook-port: 443}", "/flags", "'webhook-port' not allowed"),
	Entry("a flag that another value is for", "flags: {wake-owners: false}", "/flags", "'wake-owners' not allowed"),
	Entry("a failure policy that is none", "flags: {failure-policy: Warn}", "/flags/failure-policy", "'Fail', 'Ignore'"),
	Entry("a time without a unit", "flags: {status-interval: 5}", "/flags/status-interval", "got number, want string"),
	Entry("a time with an odd unit", "flags: {status-interval: 5d}", "/flags/status-interval", "does not match pattern"),
	Entry("a flag's file that is not mounted", "flags: {limited-resources: /etc/limited/limited.yaml}",
		"flags.limited-resources: no entry of volumeMounts has /etc/limited/limited.yaml"),
	Entry("a flag's file beside the mounted directory",
		"flags: {client-ca-file: /etc/callers-ca/ca.crt}\nvolumeMounts: [{name: callers, mountPath: /etc/callers}]",
		"flags.client-ca-file: no entry of volumeMounts has /etc/callers-ca/ca.crt"),
	Entry("both ways to protect namespaces", "protectedNamespaces: [a]\nflags: {protected-namespaces: b}",
		"protectedNamespaces and flags.protected-namespaces are both set"),
	Entry("a namespace that can't be", "protectedNamespaces: [team_a]", "/protectedNamespaces/0", "does not match pattern"),
	Entry("namespaces in one word", "protectedNamespaces: 'a,b'", "/protectedNamespaces", "got string, want array"),
	Entry("one's own certificate without a Secret", "certificates: {own: true}", "/certificates", "'own' not allowed"),
	Entry("a Secret whose name can't be", "certificates: {secretName: My Secret}", "/certificates/secretName", "does not match pattern"),
	Entry("policies all at once", "policies: false", "/policies", "got boolean, want object"),
	Entry("monitoring all at once", "monitoring: true", "/monitoring", "got boolean, want object"),
	Entry("a truth in quotes", "rights: {wake: 'false'}", "/rights/wake", "got string, want boolean"),
	Entry("a label that is no string", "podLabels: {a: 1}", "/podLabels/a", "got number, want string"),
)
