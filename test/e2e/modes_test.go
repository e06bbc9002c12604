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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
		Expect(runPod(ctx, namespace, "more")).To(Equal("Warning: " + words + " (admitted, because the quota only warns)\n"))
		eventuallyUses(ctx, quota, "pods=2")
		Expect(audited(namespace, "more")()).To(Equal("nothing"))
		Eventually(ctx, eventsOn("LocalResourceQuota", namespace, quota.Name)).Should(ContainElement(
			"WouldExceed status.total.hard{pods} admitted pods \"more\": " + words +
				"; the quota only watches so far: with the mode Deny it would be refused"))
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

	It("refuses for the resources of which the mode is Deny, and charges nothing then", func(ctx SpecContext) {
		team := newTeam()
		quota := team.quota().Hard("pods", "1").Hard("requests.cpu", "1").Obj()
		quota.Spec.Enforcement.Overrides = []quotav1.EnforcementOverride{{Resource: "requests.cpu", Mode: quotav1.EnforcementWarn}}
		waitUntilEnforced(ctx, createQuota(ctx, quota))
		watching := builders.Quota(team.name+"-watching").Label(teamLabel, team.name).Hard("pods", "0").Obj()
		watching.Spec.Enforcement.Mode = quotav1.EnforcementAudit
		waitUntilEnforced(ctx, createQuota(ctx, watching))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.Pod(namespace, "large").Request("cpu", "3").Obj())
		eventuallyUses(ctx, quota, "pods=1,requests.cpu=3")
		Expect(api.Create(ctx, builders.Pod(namespace, "more").Request("cpu", "1").Obj())).To(
			BeRefused(exceeded(quota.Name, "pods", "1", "1", "1")))
		Eventually(ctx, func(ctx context.Context) []string { return reservations(ctx, watching) }).Should(BeEmpty())
		eventuallyUses(ctx, watching, "pods=1")
	})

	It("warns from a percentage on", func(ctx SpecContext) {
		team := newTeam()
		quota := team.quota().Hard("pods", "4").Obj()
		quota.Spec.Enforcement.WarnAt = 75
		waitUntilEnforced(ctx, createQuota(ctx, quota))
		namespace := team.namespace(ctx)
		var said []string
		for i := range 4 {
			said = append(said, runPod(ctx, namespace, fmt.Sprint("p", i)))
		}
		Expect(said).To(Equal([]string{
			"", "",
			"Warning: quota " + quota.Name + ": 3 of 4 is used with this request: pods\n",
			"Warning: quota " + quota.Name + ": 4 of 4 is used with this request: pods\n",
		}))
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

	It("counts what only its trial limits", func(ctx SpecContext) {
		team := newTeam()
		quota := team.quota().Hard("pods", "5").Obj()
		quota.Spec.Trial.Hard = corev1.ResourceList{"configmaps": resource.MustParse("0"), "pods": resource.MustParse("1")}
		waitUntilEnforced(ctx, createQuota(ctx, quota))
		namespace := team.namespace(ctx)
		Expect(runPod(ctx, namespace, "p1")).To(BeEmpty())
		Expect(runPod(ctx, namespace, "p2")).To(BeEmpty())
		Expect(audited(namespace, "p2")()).To(Equal("nothing"))
		eventuallyUses(ctx, quota, "pods=2")
	})

	DescribeTable("is refused if it makes no sense", func(ctx SpecContext, spec, want string) {
		result, err := cluster.Kubectl(ctx, strings.NewReader(
			`{"apiVersion":"quota.sharedquota.dev/v1","kind":"ClusterResourceQuota","metadata":{"name":"senseless"},"spec":{
			"selector":{"labels":{"matchLabels":{"team":"nobody"}}},"quota":{"hard":{"pods":"1"}},`+spec+`}}`), "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		// Of what breaks a rule in CEL, an older API server tells the type as its value.
		Expect(strings.ReplaceAll(result.Stderr, `Invalid value: "object": `, "Invalid value: ")).To(ContainSubstring(want))
		Expect(result.ExitCode).NotTo(BeZero())
	},
		Entry("an override of what isn't limited", `"enforcement":{"overrides":[{"resource":"services","mode":"Warn"}]}`,
			`spec.enforcement.overrides[0].resource: Invalid value: "services": is not in spec.quota.hard; add it there, or remove this override`),
		Entry("an override of what is only tried",
			`"trial":{"hard":{"services":"1"}},"enforcement":{"overrides":[{"resource":"services","mode":"Warn"}]}`,
			`is only in spec.trial.hard, which refuses nothing in any mode`),
		Entry("two overrides", `"enforcement":{"overrides":[{"resource":"pods","mode":"Warn"},{"resource":"pods","mode":"Deny"}]}`,
			`spec.enforcement.overrides[1]: Duplicate value`),
		Entry("a percentage above 100", `"enforcement":{"warnAt":101}`,
			"spec.enforcement.warnAt: Invalid value: 101: spec.enforcement.warnAt in body should be less than or equal to 100"),
		Entry("a percentage below 1", `"enforcement":{"warnAt":0}`, "should be greater than or equal to 1"),
		Entry("a trial below zero", `"trial":{"hard":{"pods":"-1"}}`, "spec.trial.hard: Invalid value: must be greater than or equal to 0"),
		Entry("an unknown mode", `"enforcement":{"mode":"Log"}`, `Unsupported value: "Log": supported values: "Deny", "Warn", "Audit"`),
		Entry("a trial of what can't be named", `"trial":{"hard":{"no such/name/here":"1"}}`, "spec.trial.hard[no such/name/here]"),
	)
})
