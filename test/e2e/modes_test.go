// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// auditLog is where the first API server notes the creation of pods.
var auditLog string

// auditFlags have the API server note the creation of pods.
func auditFlags() map[string]string {
	GinkgoHelper()
	directory := GinkgoT().TempDir()
	policy := filepath.Join(directory, "policy.yaml")
	auditLog = filepath.Join(directory, "audit.log")
	Expect(os.WriteFile(policy, []byte(`{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
		{"level": "Metadata", "verbs": ["create"], "resources": [{"resources": ["pods"]}]}, {"level": "None"}]}`), 0o600)).To(Succeed())
	return map[string]string{"audit-policy-file": policy, "audit-log-path": auditLog}
}

// audited returns what the operator noted of the creation of a pod in the audit log.
func audited(namespace, name string) func() (string, error) {
	return func() (string, error) {
		file, err := os.Open(auditLog)
		if err != nil {
			return "", err
		}
		defer func() { _ = file.Close() }()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			event := auditv1.Event{}
			if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
				continue // the line is being written
			}
			if event.ObjectRef.Namespace == namespace && event.ObjectRef.Name == name {
				for key, value := range event.Annotations {
					if strings.Contains(key, "quota.sharedquota.dev/") {
						return key[strings.LastIndex(key, "/")+1:] + ": " + value, nil
					}
				}
				return "nothing", nil
			}
		}
		return "", lines.Err()
	}
}

// withMode changes what a quota does with what doesn't fit, and returns once that is in force.
func withMode(ctx context.Context, quota *quotav1.ClusterResourceQuota, enforcement string) string {
	GinkgoHelper()
	warned := kubectlPatch(ctx, quota, `{"spec":{"enforcement":`+enforcement+`}}`)
	Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
	waitUntilEnforced(ctx, quota)
	return warned
}

// runPod creates a pod by kubectl, and returns what that says beside "created".
func runPod(ctx context.Context, namespace, name string, args ...string) string {
	GinkgoHelper()
	result, err := cluster.Kubectl(ctx, nil, append([]string{"run", name, "--image=registry.example/web", "-n", namespace}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	return result.Stderr
}

var _ = Describe("A quota that doesn't refuse", func() {
	It("tells whoever sends what doesn't fit, in the mode Warn", func(ctx SpecContext) {
		team := newTeam()
		quota := team.quota().Hard("pods", "1").Obj()
		quota.Spec.Enforcement = quotav1.Enforcement{Mode: quotav1.EnforcementWarn}
		waitUntilEnforced(ctx, createQuota(ctx, quota))
		namespace := team.namespace(ctx)
		Expect(runPod(ctx, namespace, "fits")).To(BeEmpty())
		eventuallyUses(ctx, quota, "pods=1")
		words := exceeded(quota.Name, "pods", "1", "1", "1")
		Expect(runPod(ctx, namespace, "more")).To(Equal("Warning: " + words +
			" (admitted, because the quota only warns: make room, or state what is missing, before the quota's mode becomes Deny)\n"))
		eventuallyUses(ctx, quota, "pods=2")
		Expect(audited(namespace, "more")()).To(Equal("nothing"))
		Eventually(ctx, eventsOn("LocalResourceQuota", namespace, quota.Name)).Should(ContainElement(
			"WouldExceed status.total.hard{pods} admitted pods \"more\": " + words +
				"; make room, or state what is missing, before the quota's mode becomes Deny"))
		By("a dry run")
		Expect(runPod(ctx, namespace, "dry", "--dry-run=server")).To(ContainSubstring("Warning: exceeded quota"))
	})

	It("notes it in the audit log, in the mode Audit, also if a request doesn't say enough", func(ctx SpecContext) {
		team := newTeam()
		quota := team.quota().Hard("pods", "0").Hard("limits.cpu", "1").Obj()
		quota.Spec.Enforcement = quotav1.Enforcement{Mode: quotav1.EnforcementAudit}
		waitUntilEnforced(ctx, createQuota(ctx, quota))
		namespace := team.namespace(ctx)
		Expect(runPod(ctx, namespace, "web")).To(BeEmpty())
		Eventually(ctx, audited(namespace, "web")).Should(Equal("would-refuse: " + exceeded(quota.Name, "pods", "1", "0", "0") +
			"; failed quota: " + quota.Name + ": must specify limits.cpu for: web"))
		eventuallyUses(ctx, quota, "limits.cpu=0,pods=1")
	})

	It("holds nothing for what another quota refuses", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1"))
		watching := builders.Quota(team.name+"-watching").Label(teamLabel, team.name).Hard("pods", "0").Obj()
		watching.Spec.Enforcement.Mode = quotav1.EnforcementAudit
		waitUntilEnforced(ctx, createQuota(ctx, watching))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.Pod(namespace, "fits").Obj())
		eventuallyUses(ctx, watching, "pods=1")
		Expect(api.Create(ctx, builders.Pod(namespace, "more").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "1", "1")))
		Eventually(ctx, func(ctx context.Context) []string { return reservations(ctx, watching) }).Should(BeEmpty())
		eventuallyUses(ctx, watching, "pods=1")
	})

	It("is switched to Deny without a new count, and nothing more gets in once that is answered", func(ctx SpecContext) {
		team := newTeam()
		quota := team.quota().Hard("pods", "2").Obj()
		quota.Spec.Enforcement.Mode = quotav1.EnforcementAudit
		waitUntilEnforced(ctx, createQuota(ctx, quota))
		namespace := team.namespace(ctx)
		for i := range 3 {
			mustCreate(ctx, builders.Pod(namespace, fmt.Sprint("p", i)).Obj())
		}
		kubectlPatch(ctx, quota, `{"spec":{"enforcement":{"mode":"Deny"}}}`)
		Expect(api.Create(ctx, builders.Pod(namespace, "late").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "3", "2")))
		Consistently(ctx, func(ctx context.Context) string {
			Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
			return conditionOf(quota, quotav1.ConditionReady)
		}, time.Second).Should(HavePrefix("True"))

		By("switching back")
		withMode(ctx, quota, `{"mode":"Warn"}`)
		Expect(runPod(ctx, namespace, "again")).To(HavePrefix("Warning: exceeded quota"))
	})

	DescribeTable("is refused if it has a field or a value that there isn't", func(ctx SpecContext, spec, want string) {
		result, err := cluster.Kubectl(ctx, strings.NewReader(
			`{"apiVersion":"quota.sharedquota.dev/v1","kind":"ClusterResourceQuota","metadata":{"name":"senseless"},"spec":{
			"selector":{"labels":{"matchLabels":{"team":"nobody"}}},"quota":{"hard":{"pods":"1"}},`+spec+`}}`),
			"apply", "--validate=strict", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Stderr).To(ContainSubstring(want))
		Expect(result.ExitCode).NotTo(BeZero())
	},
		Entry("modes of resources", `"enforcement":{"overrides":[{"resource":"pods","mode":"Warn"}]}`, `unknown field "spec.enforcement.overrides"`),
		Entry("a percentage to warn at", `"enforcement":{"warnAt":80}`, `unknown field "spec.enforcement.warnAt"`),
		Entry("limits to try", `"trial":{"hard":{"pods":"1"}}`, `unknown field "spec.trial"`),
		Entry("an unknown mode", `"enforcement":{"mode":"Log"}`, `Unsupported value: "Log": supported values: "Deny", "Warn", "Audit"`),
	)
})
