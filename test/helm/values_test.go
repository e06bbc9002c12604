// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// tried is the namespace that the API server judges renderings in. It takes restricted pods only.
const tried = "quota-tried"

// deploymentOf returns the Deployment of a rendering.
func deploymentOf(rendered objects) *appsv1.Deployment {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	object := rendered["Deployment/"+suite.Deployment]
	Expect(object).NotTo(BeNil())
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, deployment, true)).To(Succeed())
	return deployment
}

// container matches a rendering by its Deployment's container.
func container(matcher gomegatypes.GomegaMatcher) gomegatypes.GomegaMatcher {
	return pod(WithTransform(func(spec corev1.PodSpec) corev1.Container { return spec.Containers[0] }, matcher))
}

// pod matches a rendering by its Deployment's pods.
func pod(matcher gomegatypes.GomegaMatcher) gomegatypes.GomegaMatcher {
	return WithTransform(func(rendered objects) corev1.PodSpec { return deploymentOf(rendered).Spec.Template.Spec }, matcher)
}

// template matches a rendering by the metadata of its Deployment's pods.
func template(matcher gomegatypes.GomegaMatcher) gomegatypes.GomegaMatcher {
	return WithTransform(func(rendered objects) corev1.PodTemplateSpec { return deploymentOf(rendered).Spec.Template }, matcher)
}

// argument matches a rendering that has an argument of the operator.
func argument(argument string) gomegatypes.GomegaMatcher {
	return container(HaveField("Args", ContainElement(argument)))
}

// field matches a rendering by what a path of fields of an object leads to.
func field(matcher gomegatypes.GomegaMatcher, name string, fields ...string) gomegatypes.GomegaMatcher {
	return WithTransform(func(rendered objects) any { return at(rendered[name], fields...) }, matcher)
}

// lacks matches a rendering without objects, which the default one has.
func lacks(names ...string) gomegatypes.GomegaMatcher {
	matchers := make([]gomegatypes.GomegaMatcher, 0, len(names))
	for _, name := range names {
		matchers = append(matchers, Not(HaveKey(name)))
	}
	return And(matchers...)
}

// labelled matches a rendering in which an object has a label of the user's, and keeps another one.
func labelled(name, kept string) gomegatypes.GomegaMatcher {
	return WithTransform(func(rendered objects) map[string]string {
		if object, ok := rendered[name]; ok {
			return object.GetLabels()
		}
		return nil // by default it isn't there
	}, And(HaveKeyWithValue("release", "stack"), HaveKey(kept)))
}

const (
	policy, binding     = "ValidatingAdmissionPolicy/shared-quota-", "ValidatingAdmissionPolicyBinding/shared-quota-"
	role, roleBinding   = "ClusterRole/shared-quota-", "ClusterRoleBinding/shared-quota-"
	networkPolicy       = "NetworkPolicy/shared-quota-manager"
	monitor, dashboard  = "ServiceMonitor/shared-quota-metrics", "ConfigMap/shared-quota-dashboard"
	everythingMonitored = "{serviceMonitor: true, alerts: true, dashboard: true, labels: {release: stack}}"
	ourName             = "app.kubernetes.io/name"
)

var _ = Describe("A value", func() {
	var plain objects

	BeforeEach(func(ctx SpecContext) {
		if plain == nil {
			namespace := builders.Namespace(tried).Label("pod-security.kubernetes.io/enforce", "restricted").Obj()
			Expect(admin.Create(ctx, namespace)).To(Succeed())
			plain, _ = render(ctx, tried, "")
		}
	})

	DescribeTable("is rendered, and the API server and the operator take what it makes:",
		func(ctx SpecContext, values string, matcher gomegatypes.GomegaMatcher) {
			Expect(plain).NotTo(matcher, "the value makes no difference")
			rendered, _ := render(ctx, tried, values)
			Expect(rendered).To(matcher)
			isTaken(ctx, rendered)
		},
		Entry("replicas", "replicas: 3", WithTransform(deploymentOf, HaveField("Spec.Replicas", HaveValue(BeEquivalentTo(3))))),
		Entry("image", "image: {repository: registry.example/operator, tag: v1, pullPolicy: Always}", container(And(
			HaveField("Image", "registry.example/operator:v1"), HaveField("ImagePullPolicy", corev1.PullAlways)))),
		Entry("image.digest", "image: {digest: 'sha256:"+strings.Repeat("a1", 32)+"'}",
			container(HaveField("Image", "shared-quota-operator@sha256:"+strings.Repeat("a1", 32)))),
		Entry("imagePullSecrets", "imagePullSecrets: [{name: mine}]",
			pod(HaveField("ImagePullSecrets", HaveExactElements(HaveField("Name", "mine"))))),
		Entry("resources", "resources: {requests: {cpu: 2, memory: 1Gi}, limits: {memory: 4Gi}}",
			container(WithTransform(func(c corev1.Container) string { return c.Resources.Limits.Memory().String() }, Equal("4Gi")))),
		Entry("priorityClassName", "priorityClassName: system-node-critical", pod(HaveField("PriorityClassName", "system-node-critical"))),
		Entry("no priorityClassName", "priorityClassName: ''", pod(HaveField("PriorityClassName", BeEmpty()))),
		Entry("a flag that is a word", "flags: {failure-policy: Ignore}", argument("--failure-policy=Ignore")),
		Entry("a flag that is a number", "flags: {max-doubtful-percent: 50}", argument("--max-doubtful-percent=50")),
		Entry("a flag that is a truth", "flags: {escrow: false}", argument("--escrow=false")),
		Entry("a flag that is a time", "flags: {status-interval: 5s}", argument("--status-interval=5s")),
		Entry("a flag that names a file", "flags: {limited-resources: /etc/limited/limited.yaml}\n"+
			"volumes: [{name: limited, configMap: {name: limited}}]\nvolumeMounts: [{name: limited, mountPath: /etc/limited}]",
			And(argument("--limited-resources=/etc/limited/limited.yaml"), pod(HaveField("Volumes", HaveLen(1))),
				container(HaveField("VolumeMounts", HaveLen(1))))),
		Entry("flags.protected-namespaces", "flags: {protected-namespaces: kube-system}", argument("--protected-namespaces=kube-system")),
		Entry("protectedNamespaces", "protectedNamespaces: [monitoring, kube-public]",
			argument("--protected-namespaces=kube-system,kube-public,kube-node-lease,monitoring")),
		Entry("env", "env: [{name: GOMEMLIMIT, value: 1GiB}]", container(HaveField("Env", HaveExactElements(
			HaveField("Name", "POD_NAMESPACE"), HaveField("Name", "MEMORY_LIMIT"), HaveField("Name", "GOMEMLIMIT"))))),
		Entry("certificates.secretName", "certificates: {secretName: issued}", And(argument("--cert-dir=/etc/webhook-cert"),
			pod(HaveField("Volumes", HaveExactElements(HaveField("Secret.SecretName", "issued")))),
			container(HaveField("VolumeMounts", HaveExactElements(HaveField("MountPath", "/etc/webhook-cert")))))),
		Entry("rights.wake", "rights: {wake: false}", And(argument("--wake-owners=false"),
			lacks(role+"wake-role", roleBinding+"wake-rolebinding"))),
		Entry("rights.readAll", "rights: {readAll: false}", lacks(role+"reader-all-role", roleBinding+"reader-all-rolebinding")),
		Entry("roles.projectOwner", "roles: {projectOwner: false}",
			lacks("ClusterRole/project-owner", "ClusterRole/project-owner-subdivision")),
		Entry("policies.protection", "policies: {protection: false}", lacks(policy+"protection", binding+"protection")),
		Entry("policies.subdivision", "policies: {subdivision: false}", lacks(policy+"subdivision", binding+"subdivision")),
		Entry("policies.wake", "policies: {wake: false}", lacks(policy+"wake", binding+"wake")),
		Entry("networkPolicy.enabled", "networkPolicy: {enabled: false}", lacks(networkPolicy)),
		Entry("networkPolicy.webhookFrom", "networkPolicy: {webhookFrom: [{ipBlock: {cidr: 10.0.0.0/8}}]}", field(ContainElement(And(
			HaveKeyWithValue("ports", ContainElement(HaveKeyWithValue("port", "webhook"))),
			HaveKeyWithValue("from", ContainElement(HaveKey("ipBlock"))))), networkPolicy, "spec", "ingress")),
		Entry("networkPolicy.metricsFrom", "networkPolicy: {metricsFrom: []}",
			field(HaveEach(Not(HaveKey("from"))), networkPolicy, "spec", "ingress")),
		Entry("monitoring.serviceMonitor", "monitoring: {serviceMonitor: true}", HaveKey(monitor)),
		Entry("monitoring.alerts", "monitoring: {alerts: true}", HaveKey("PrometheusRule/shared-quota-alerts")),
		Entry("monitoring.dashboard", "monitoring: {dashboard: true}", HaveKey(dashboard)),
		Entry("monitoring.labels", "monitoring: "+everythingMonitored, And(labelled(monitor, ourName),
			labelled("PrometheusRule/shared-quota-alerts", ourName), labelled(dashboard, "grafana_dashboard"))),
		Entry("crds.install", "crds: {install: false}",
			lacks("CustomResourceDefinition/"+quotas, "CustomResourceDefinition/"+views, "CustomResourceDefinition/"+ledgers)),
		Entry("podLabels", "podLabels: {team: platform, "+ourName+": other}", template(HaveField("Labels", And(
			HaveKeyWithValue("team", "platform"), HaveKeyWithValue(ourName, "shared-quota-operator"))))),
		Entry("podAnnotations", "podAnnotations: {a: b}", template(HaveField("Annotations", HaveKeyWithValue("a", "b")))),
		Entry("nodeSelector", "nodeSelector: {disk: fast}", pod(HaveField("NodeSelector", HaveKeyWithValue("disk", "fast")))),
		Entry("tolerations", "tolerations: [{key: mine, operator: Exists}]", pod(HaveField("Tolerations", HaveLen(1)))),
		Entry("affinity", "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}",
			pod(HaveField("Affinity.PodAntiAffinity", BeNil()))),
	)

	It("has the ServiceMonitor trust the authority of one's own certificate", func(ctx SpecContext) {
		rendered, _ := render(ctx, tried, "monitoring: {serviceMonitor: true}\ncertificates: {secretName: issued}")
		endpoints := at(rendered[monitor], "spec", "endpoints")
		Expect(endpoints).To(ConsistOf(HaveKeyWithValue("tlsConfig", And(
			HaveKeyWithValue("serverName", "shared-quota-webhook."+tried+".svc"),
			HaveKeyWithValue("ca", HaveKeyWithValue("secret", HaveKeyWithValue("name", "issued")))))))
	})

	It("is a flag of the operator, or one that the chart sets itself", func(ctx SpecContext) {
		// What other values and the chart's own arguments are for, and what no Deployment needs.
		own := []string{
			"leader-elect", "webhook-service", "webhook-port", "metrics-bind-address", "health-probe-bind-address", // config/manager
			"cert-dir", "wake-owners", // certificates.secretName, rights.wake
			"cert-secret", "namespace", // the Role and the Service of the chart go by these
			"kubeconfig", "version", "webhook-bind-address", "webhook-url", // for a process outside of the cluster
		}
		var schema struct {
			Properties struct {
				Flags struct {
					Properties map[string]any `json:"properties"`
				} `json:"flags"`
			} `json:"properties"`
		}
		text, err := os.ReadFile(filepath.Join(suite.RepositoryRoot(), chartDir, "values.schema.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal(text, &schema)).To(Succeed())
		var names []string
		for name := range schema.Properties.Flags.Properties {
			Expect(own).NotTo(ContainElement(name))
			names = append(names, name)
		}
		help, err := exec.CommandContext(ctx, binary, "--help").CombinedOutput()
		Expect(err).NotTo(HaveOccurred())
		var known []string
		for _, found := range regexp.MustCompile(`(?m)^ {2}-([a-z-]+)`).FindAllStringSubmatch(string(help), -1) {
			known = append(known, found[1])
		}
		Expect(slices.Concat(names, own)).To(ConsistOf(known))
		Expect(string(help)).To(ContainSubstring(`(default "kube-system,kube-public,kube-node-lease")`),
			"which the chart adds protectedNamespaces to")
	})
})

// isTaken has the API server take what a rendering has in its namespace, and a pod of its Deployment; and
// the operator its arguments.
func isTaken(ctx context.Context, rendered objects) {
	GinkgoHelper()
	for name, object := range rendered {
		if object.GetNamespace() == tried && !strings.HasPrefix(object.GetAPIVersion(), "monitoring.coreos.com/") {
			Expect(admin.Create(ctx, object.DeepCopy(), client.DryRunAll, strict)).To(Succeed(), name)
		}
	}
	made := deploymentOf(rendered).Spec.Template
	one := &corev1.Pod{ObjectMeta: made.ObjectMeta, Spec: made.Spec}
	one.Namespace, one.Name = tried, "pod"
	Expect(admin.Create(ctx, one, client.DryRunAll, strict)).To(Succeed())
	// It parses all flags before it prints its version.
	output, err := exec.CommandContext(ctx, binary, append(slices.Clone(made.Spec.Containers[0].Args), "--version")...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
}
