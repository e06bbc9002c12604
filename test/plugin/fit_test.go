// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// template is a pod template of 250m and 64Mi.
const template = `
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: web, resources: {limits: {cpu: 250m, memory: 64Mi}}}
`

// manifests of each kind -> what they are made of.
var manifests = map[string]string{
	"deployment": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:` + template,
	"replicaset": `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:` + template,
	"replicationcontroller": `
apiVersion: v1
kind: ReplicationController
metadata: {name: web}
spec:
  replicas: 4
  selector: {app: web}
  template:` + template,
	"statefulset": `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 4
  serviceName: web
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: web}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  template:` + template,
	"daemonset": `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:` + template,
	"job": `
apiVersion: batch/v1
kind: Job
metadata: {name: web}
spec:
  parallelism: 6
  completions: 4
  completionMode: Indexed
  template:` + strings.ReplaceAll(template, "    spec:", "    spec:\n      restartPolicy: Never"),
	"ephemeral": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:` + template + `
      volumes:
      - name: scratch
        ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}}
`,
}

// what each kind takes in all, of what the quotas of these specs limit.
var takes = map[string]corev1.ResourceList{
	"deployment": list("pods", "5", "requests.cpu", "1250m", "limits.memory", "320Mi", "count/replicasets.apps", "1",
		"count/deployments.apps", "1"),
	"replicaset":            list("pods", "4", "requests.cpu", "1", "limits.memory", "256Mi", "count/replicasets.apps", "1"),
	"replicationcontroller": list("pods", "4", "requests.cpu", "1", "limits.memory", "256Mi", "replicationcontrollers", "1"),
	"statefulset": list("pods", "4", "requests.cpu", "1", "limits.memory", "256Mi", "persistentvolumeclaims", "4",
		"requests.storage", "4Gi", "count/controllerrevisions.apps", "1"),
	"daemonset": list("pods", "3", "requests.cpu", "750m", "limits.memory", "192Mi", "count/controllerrevisions.apps", "1"),
	"job":       list("pods", "4", "requests.cpu", "1", "limits.memory", "256Mi", "count/jobs.batch", "1"),
	"ephemeral": list("pods", "3", "requests.cpu", "750m", "persistentvolumeclaims", "3", "requests.storage", "6Gi"),
}

// beginWithout is what of each kind is left out of the quota at first.
var beginWithout = map[string]corev1.ResourceList{
	"deployment":            list("pods", "2", "requests.cpu", "300m"),
	"replicaset":            list("pods", "1"),
	"replicationcontroller": list("requests.cpu", "500m"),
	"statefulset":           list("pods", "2"),
	"daemonset":             list("pods", "1"),
	"job":                   list("limits.memory", "64Mi"),
	"ephemeral":             list("pods", "1"),
}

// comes is what there is then, where it isn't clear from what is left out.
var comes = map[string]corev1.ResourceList{
	"deployment":            list("pods", "3", "requests.cpu", "750m"),
	"replicationcontroller": list("pods", "2", "requests.cpu", "500m"),
	"statefulset":           list("pods", "2"),
	"job":                   list("pods", "3"),
	"ephemeral":             list("pods", "2", "persistentvolumeclaims", "2"),
}

var _ = Describe("kubectl crq fit", func() {
	It("says that a quota is counted, and limits nothing, where a namespace is protected or its mode only warns", func(ctx SpecContext) {
		quota := builders.Quota("fit-everywhere").Label(corev1.LabelMetadataName, metav1.NamespaceSystem).Hard("count/configmaps", "0").Obj()
		enforced(ctx, quota)
		shown(ctx, quota.Name, metav1.NamespaceSystem)
		manifest := file("{apiVersion: v1, kind: ConfigMap, metadata: {name: fit-addon}}")
		got := crq(ctx, "fit", "-f", manifest, "-n", metav1.NamespaceSystem)
		Expect(got.status).To(BeZero())
		Expect(got.stdout).To(And(HavePrefix("It fits.\n"), ContainSubstring("never limits it, because the namespace is protected")))
		mustKubectl(ctx, "apply", "-f", manifest, "-n", metav1.NamespaceSystem)
		Expect(mustCrq(ctx, "explain", "-n", metav1.NamespaceSystem)).To(ContainSubstring("never limits it, because the namespace is protected"))
		Expect(mustKubectl(ctx, "get", "lrq", quota.Name, "-n", metav1.NamespaceSystem, "-o", "jsonpath={.status.protected}")).To(Equal("true"))

		p := newPlace(ctx, "fit-warns", list("count/configmaps", "0"))
		mustKubectl(ctx, "patch", "crq", p.quota, "--type=merge", "-p", `{"spec":{"enforcement":{"mode":"Warn"}}}`)
		Eventually(ctx, func(ctx context.Context) int {
			return p.fits(ctx, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}").status
		}).Should(BeZero())
		Expect(crqAs(ctx, p.kubeconfig, "fit", "-f", manifest, "-n", p.namespace).stdout).To(And(HavePrefix("It fits.\n"),
			ContainSubstring("its mode is Warn, so that it refuses nothing")))
		Expect(mustSucceed(crqAs(ctx, p.kubeconfig, "explain", "-n", p.namespace))).To(ContainSubstring("its mode is Warn"))
	})

	It("never says that no quota limits a namespace, if a quota has no view in it yet", func(ctx SpecContext) {
		enforced(ctx, builders.Quota("fit-unviewed").Label("fit", "fit-unviewed").Hard("pods", "1").Obj())
		running.Pause()
		DeferCleanup(running.Resume)
		namespace(ctx, "fit-unviewed", "fit", "fit-unviewed")
		manifest := file(manifests["deployment"])
		got := crq(ctx, "fit", "-f", manifest, "-n", "fit-unviewed")
		Expect(got.status).To(Equal(2))
		Expect(got.stdout).To(HavePrefix("It can't be told whether it fits.\n"))
		Expect(got.stderr).To(Equal("error: can't tell: not counted yet: pods of crq/fit-unviewed; ask again in a moment\n"))
		Expect(mustCrq(ctx, "reclaim", "-n", "fit-unviewed")).NotTo(ContainSubstring("No quota limits"))

		owner := ownerOf(ctx, "fit-unviewed") // who may read the namespace's own objects alone
		Expect(mustSucceed(crqAs(ctx, owner, "explain", "-n", "fit-unviewed"))).To(ContainSubstring("or one whose view hasn't been written yet"))
		const note = "Note: It isn't known whether a ClusterResourceQuota covers namespace fit-unviewed: "
		Expect(mustSucceed(crqAs(ctx, owner, "reclaim", "-n", "fit-unviewed"))).To(And(ContainSubstring(note), Not(ContainSubstring("No quota limits"))))
		Expect(mustSucceed(crqAs(ctx, owner, "fit", "-f", manifest, "-n", "fit-unviewed"))).To(And(
			HavePrefix("It fits into the quotas that are known.\n"), ContainSubstring(note)))
	})

	It("refuses fields that the kind doesn't have, as kubectl apply does", func(ctx SpecContext) {
		p := newPlace(ctx, "fit-beyond", list("pods", "5"))
		manifest := file(strings.Replace(manifests["deployment"], "replicas: 5", "replica: 50", 1))
		got := crqAs(ctx, p.kubeconfig, "fit", "-f", manifest, "-n", p.namespace)
		Expect(got.status).To(Equal(2))
		Expect(got.stderr).To(And(HavePrefix("error: "), ContainSubstring(`unknown field "spec.replica"`)))
		Expect(kubectl(ctx, p.kubeconfig, nil, "apply", "-f", manifest, "-n", p.namespace).stderr).To(ContainSubstring(`unknown field "spec.replica"`))
	})

	for _, kind := range slices.Sorted(maps.Keys(manifests)) {
		manifest := manifests[kind]
		args := []string(nil)
		if kind == "daemonset" {
			args = []string{"--nodes", "3"}
		}
		It("foretells to the last unit what a "+kind+" is short of", func(ctx SpecContext) {
			if kind == "daemonset" {
				threeNodes(ctx)
			}
			short := beginWithout[kind]
			p := newPlace(ctx, "fit-short-"+kind, quota.Subtract(takes[kind], short))

			got := p.settledFits(ctx, manifest, args...)
			Expect(got.Result).To(Equal("does not fit"))
			Expect(got.status).To(Equal(1))
			Expect(difference(takes[kind], got.of("crq/"+p.quota, false))).To(BeEmpty())
			shortfall := got.of("crq/"+p.quota, true)
			Expect(difference(short, shortfall)).To(BeEmpty())
			Expect(quota.IsZero(quota.Subtract(shortfall, short))).To(BeTrue(), "%v", shortfall)

			p.mustApply(ctx, manifest)
			p.refused(ctx, "exceeded quota: "+p.quota)
			p.staysAt(ctx, orElse(comes[kind], quota.Subtract(quota.Mask(takes[kind], quota.ResourceNames(short)), short)))

			p.raise(ctx, shortfall)
			p.staysAt(ctx, takes[kind])
			Expect(p.settledFits(ctx, manifest, args...).Result).To(Equal("fits"), "all is there")
		})
	}

	It("counts only what is missing of what is there", func(ctx SpecContext) {
		p := newPlace(ctx, "fit-scaled", list("pods", "4", "count/deployments.apps", "1", "count/replicasets.apps", "1"))
		p.mustApply(ctx, strings.Replace(manifests["deployment"], "replicas: 5", "replicas: 3", 1))
		p.comesTo(ctx, list("pods", "3"))

		got := p.settledFits(ctx, manifests["deployment"])
		Expect(difference(list("pods", "2"), got.of("crq/"+p.quota, false))).To(BeEmpty())
		Expect(difference(list("pods", "1"), got.of("crq/"+p.quota, true))).To(BeEmpty())
		Expect(got.Quotas).To(HaveLen(1), "the Deployment and its ReplicaSet are there")

		p.mustApply(ctx, manifests["deployment"])
		p.refused(ctx, "exceeded quota: "+p.quota)
		p.staysAt(ctx, list("pods", "4"))
		p.raise(ctx, list("pods", "1"))
		p.staysAt(ctx, list("pods", "5"))
		Expect(p.settledFits(ctx, manifests["deployment"]).Quotas).To(BeEmpty())
	})

	It("finds the claims again that a StatefulSet left", func(ctx SpecContext) {
		p := newPlace(ctx, "fit-claims", list("pods", "4", "persistentvolumeclaims", "4"))
		p.mustApply(ctx, strings.Replace(manifests["statefulset"], "replicas: 4", "replicas: 3", 1))
		p.comesTo(ctx, list("pods", "3", "persistentvolumeclaims", "3"))
		mustKubectl(ctx, "delete", "statefulset", "web", "-n", p.namespace, "--cascade=foreground", "--wait=false")
		mustKubectl(ctx, "delete", "pods", "--all", "-n", p.namespace)
		p.comesTo(ctx, list("pods", "0", "persistentvolumeclaims", "3"))

		got := p.settledFits(ctx, manifests["statefulset"])
		Expect(got.Result).To(Equal("fits"))
		Expect(difference(list("persistentvolumeclaims", "1"), got.of("crq/"+p.quota, false))).To(BeEmpty())
	})

	It("says that a rollout gets stuck that would fit in the end", func(ctx SpecContext) {
		p := newPlace(ctx, "fit-stuck", list("pods", "2", "requests.cpu", "1"))
		suite.Kubelet(ctx, cluster, p.namespace)
		manifest := strings.Replace(manifests["deployment"], "replicas: 5", "replicas: 2", 1)
		p.mustApply(ctx, manifest)
		p.comesTo(ctx, list("pods", "2", "requests.cpu", "500m"))
		ready(ctx, p, 2)
		changed := strings.Replace(manifest, "image: web", "image: web:2", 1)

		got := p.settledFits(ctx, changed)
		Expect(got.status).To(Equal(1))
		Expect(difference(list("pods", "1", "requests.cpu", "0"), got.of("crq/"+p.quota, true))).To(BeEmpty())
		Expect(got.Notes).To(ConsistOf(HavePrefix("In the end it would fit")))

		p.mustApply(ctx, changed)
		p.refused(ctx, "exceeded quota: "+p.quota)
		Expect(upToDate(ctx, p)).To(BeZero())
		p.raise(ctx, list("pods", "1"))
		rolledOut(ctx, p, 2)
		p.staysAt(ctx, list("pods", "2"))
	})

	It("foretells to the last unit what a rollout to larger pods is short of", func(ctx SpecContext) {
		p := newPlace(ctx, "fit-larger", list("requests.cpu", "1300m"))
		suite.Kubelet(ctx, cluster, p.namespace)
		manifest := strings.Replace(manifests["deployment"], "replicas: 5", "replicas: 3", 1)
		p.mustApply(ctx, manifest)
		p.comesTo(ctx, list("requests.cpu", "750m"))
		ready(ctx, p, 3)
		larger := strings.Replace(manifest, "cpu: 250m", "cpu: 400m", 1)

		got := p.settledFits(ctx, larger)
		// The last old one goes when three new ones are ready.
		Expect(difference(list("requests.cpu", "700m"), got.of("crq/"+p.quota, false))).To(BeEmpty())
		Expect(difference(list("requests.cpu", "150m"), got.of("crq/"+p.quota, true))).To(BeEmpty())

		p.mustApply(ctx, larger)
		p.refused(ctx, "exceeded quota: "+p.quota)
		p.staysAt(ctx, list("requests.cpu", "1050m"))
		Eventually(ctx, func(ctx context.Context) int32 { return upToDate(ctx, p) }).Should(BeEquivalentTo(2), "2 new ones and an old one")
		p.raise(ctx, list("requests.cpu", "150m"))
		rolledOut(ctx, p, 3)
		p.staysAt(ctx, list("requests.cpu", "1200m"))
	})

	It("says that a rollout goes through that has no room for its surge", func(ctx SpecContext) {
		p := newPlace(ctx, "fit-tight", list("pods", "4"))
		suite.Kubelet(ctx, cluster, p.namespace)
		manifest := strings.Replace(manifests["deployment"], "replicas: 5", "replicas: 4", 1)
		p.mustApply(ctx, manifest)
		p.comesTo(ctx, list("pods", "4"))
		ready(ctx, p, 4)
		changed := strings.Replace(manifest, "image: web", "image: web:2", 1)

		got := p.settledFits(ctx, changed)
		Expect(got.status).To(BeZero())
		Expect(got.Notes).To(ConsistOf(HavePrefix("There isn't room for the whole surge")))

		p.mustApply(ctx, changed)
		rolledOut(ctx, p, 4)
		p.staysAt(ctx, list("pods", "4"))
	})

	It("counts the devices of a claim as the extended resource that their class offers, if the user may read that", suite.Since("1.34"), func(ctx SpecContext) {
		p := newPlace(ctx, "fit-devices", list("requests.fit.example/gpu", "1"))
		mustCreate(ctx, builders.DeviceClassOffering("fit-gpu", "fit.example/gpu"))
		const claim = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: two}
spec:
  devices:
    requests:
    - name: devices
      exactly: {deviceClassName: fit-gpu, allocationMode: ExactCount, count: 2}
`
		got := p.fits(ctx, claim)
		Expect(got.Result).To(Equal("fits"))
		Expect(got.Notes).To(ConsistOf(HavePrefix("You may not read DeviceClasses: ")))
		mustKubectl(ctx, "create", "clusterrole", "fit-devices", "--verb=list", "--resource=deviceclasses.resource.k8s.io")
		mustKubectl(ctx, "create", "clusterrolebinding", "fit-devices", "--clusterrole=fit-devices", "--user=owner-of-"+p.namespace)
		Eventually(ctx, func(ctx context.Context) []string { return p.fits(ctx, claim).Notes }).Should(BeEmpty())
		got = p.fits(ctx, claim)
		Expect(got.status).To(Equal(1))
		Expect(difference(list("requests.fit.example/gpu", "1"), got.of("crq/"+p.quota, true))).To(BeEmpty())
		Eventually(ctx, func(ctx context.Context) string { return p.apply(ctx, claim).stderr }).Should(
			ContainSubstring("exceeded quota: fit-devices, requested: requests.fit.example/gpu=2"))
	})

	It("says what a pod must state, in the words of the refusal, and takes a LimitRange's defaults", func(ctx SpecContext) {
		p := newPlace(ctx, "fit-unstated", list("pods", "9", "requests.cpu", "1"))
		manifest := strings.Replace(manifests["replicaset"], ", resources: {limits: {cpu: 250m, memory: 64Mi}}", "", 1)
		message := "failed quota: fit-unstated: must specify requests.cpu for: main"

		got := p.fits(ctx, manifest)
		Expect(got.status).To(Equal(1))
		Expect(got.Refusals).To(HaveLen(1))
		Expect(got.Refusals[0].Message).To(Equal(message))
		p.mustApply(ctx, manifest)
		p.refused(ctx, message)

		mustKubectl(ctx, "delete", "replicaset", "web", "-n", p.namespace)
		mustCreate(ctx, &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Name: "defaults", Namespace: p.namespace},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, DefaultRequest: list("cpu", "200m"),
			}}},
		})
		got = p.settledFits(ctx, manifest)
		Expect(got.status).To(BeZero())
		Expect(difference(list("pods", "4", "requests.cpu", "800m"), got.of("crq/"+p.quota, false))).To(BeEmpty())
		p.mustApply(ctx, manifest)
		p.staysAt(ctx, list("pods", "4", "requests.cpu", "800m"))
	})

	It("charges a quota that two namespaces share for both, and ResourceQuotas for their own", func(ctx SpecContext) {
		p := newPlace(ctx, "fit-shared", list("pods", "7", "services", "2"))
		namespace(ctx, "fit-shared-2", "fit", "fit-shared")
		const limited corev1.ResourceName = "count/replicasets.apps"
		own := builders.ResourceQuota("fit-shared-2", "own")
		own.Spec.Hard = list(string(limited), "0")
		mustCreate(ctx, own)
		mustKubectl(ctx, "create", "rolebinding", "owner", "--clusterrole=admin", "--user=owner-of-fit-shared", "-n", "fit-shared-2")
		shown(ctx, p.quota, "fit-shared-2")
		Eventually(ctx, func(ctx context.Context) (corev1.ResourceList, error) {
			err := api.Get(ctx, client.ObjectKeyFromObject(own), own)
			return own.Status.Used, err
		}).Should(HaveKey(limited))
		both := manifests["replicaset"] + "\n---" + strings.Replace(manifests["replicaset"], "{name: web}", "{name: web, namespace: fit-shared-2}", 1)

		var got outcome
		Eventually(ctx, func(ctx context.Context) int {
			got = crqAs(ctx, p.kubeconfig, "fit", "-f", file(strings.Replace(both, "{name: web}", "{name: web, namespace: fit-shared}", 1)), "-o", "wide")
			return got.status
		}).Should(Equal(1))
		wantGolden("fit-shared", got.stdout)

		got = crqAs(ctx, p.kubeconfig, "fit", "-f", file(both), "-n", p.namespace)
		Expect(got.status).To(Equal(2))
		Expect(got.stderr).To(Equal("error: ReplicaSet web is for namespace fit-shared-2, and -n says fit-shared: leave -n out, or say -n fit-shared-2\n"))
	})

	It("counts a run of a CronJob, and bare objects", func(ctx SpecContext) {
		p := newPlace(ctx, "fit-bare", list("pods", "2", "persistentvolumeclaims", "1", "requests.storage", "1Gi", "services", "1",
			"services.nodeports", "1", "configmaps", "9", "count/cronjobs.batch", "1", "count/jobs.batch", "1"))
		bare := `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: one}, spec: {containers: [{name: main, image: web}]}}
- {apiVersion: v1, kind: Service, metadata: {name: one}, spec: {type: NodePort, ports: [{name: a, port: 80}, {name: b, port: 81}]}}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: one}
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
- apiVersion: batch/v1
  kind: CronJob
  metadata: {name: nightly}
  spec:
    schedule: "0 0 1 1 *"
    jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: web}]}}}}
`
		got := p.settledFits(ctx, bare)
		Expect(got.status).To(Equal(1))
		Expect(difference(list("pods", "0", "persistentvolumeclaims", "0", "requests.storage", "0", "services", "0",
			"services.nodeports", "1", "count/cronjobs.batch", "0", "count/jobs.batch", "0"), got.of("crq/"+p.quota, true))).To(BeEmpty())
		Expect(got.Notes).To(ConsistOf(HavePrefix("CronJob fit-bare/nightly: one run is counted")))

		refused := p.apply(ctx, bare)
		Expect(refused.stderr).To(ContainSubstring("exceeded quota: fit-bare, requested: services.nodeports=2"))
		p.comesTo(ctx, list("pods", "1", "services", "0", "persistentvolumeclaims", "1", "count/cronjobs.batch", "1"))
		p.raise(ctx, list("services.nodeports", "1"))
		Eventually(ctx, func(ctx context.Context) int { return p.apply(ctx, bare).status }).Should(BeZero())
		mustSucceed(kubectl(ctx, p.kubeconfig, nil, "create", "job", "run", "--from=cronjob/nightly", "-n", p.namespace))
		p.staysAt(ctx, list("pods", "2", "services", "1", "services.nodeports", "2", "count/jobs.batch", "1"))
	})

	It("tells a small change of what is there from a new object", func(ctx SpecContext) {
		p := newPlace(ctx, "fit-change", list("services", "1", "services.loadbalancers", "0"))
		service := `
apiVersion: v1
kind: Service
metadata: {name: one}
spec: {type: ClusterIP, ports: [{port: 80}]}
`
		p.mustApply(ctx, service)
		p.comesTo(ctx, list("services", "1"))
		balanced := strings.Replace(service, "ClusterIP", "LoadBalancer", 1)
		got := p.settledFits(ctx, balanced)
		Expect(got.status).To(Equal(1))
		Expect(difference(list("services.loadbalancers", "1"), got.of("crq/"+p.quota, true))).To(BeEmpty())
		Expect(p.apply(ctx, balanced).stderr).To(ContainSubstring("requested: services.loadbalancers=1"))
	})

	It("can't tell on how many nodes a DaemonSet runs, or what covers a namespace that isn't there", func(ctx SpecContext) {
		threeNodes(ctx)
		p := newPlace(ctx, "fit-unknown", list("pods", "9"))
		got := crqAs(ctx, p.kubeconfig, "fit", "-f", file(manifests["daemonset"]), "-n", p.namespace)
		Expect(got.status).To(Equal(2))
		Expect(got.stderr).To(ContainSubstring("say so with --nodes N"))
		Expect(crq(ctx, "fit", "-f", file(manifests["daemonset"]), "-n", p.namespace).stdout).To(
			ContainSubstring("crq/fit-unknown   fit-unknown   pods       3"), "who may list nodes needn't say")

		got = crq(ctx, "fit", "-f", file(manifests["deployment"]), "-n", "fit-nowhere")
		Expect(got.status).To(Equal(2))
		Expect(got.stderr).To(ContainSubstring("namespace fit-nowhere doesn't exist"))
	})

	It("reads what kubectl apply reads", func(ctx SpecContext) {
		p := newPlace(ctx, "fit-read", list("pods", "4"))
		const said = "It doesn't fit: crq/fit-read is short of pods: 1."
		directory := GinkgoT().TempDir()
		Expect(os.Mkdir(filepath.Join(directory, "base"), 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(directory, "base", "web.yaml"), []byte(manifests["deployment"]), 0o600)).To(Succeed())
		deep := filepath.Join(directory, "deep", "er")
		Expect(os.MkdirAll(deep, 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(deep, "web.yaml"), []byte(manifests["deployment"]), 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(directory, "kustomization.yaml"), []byte("resources: [base/web.yaml]\nnamePrefix: a-\n"), 0o600)).To(Succeed())

		for _, args := range [][]string{
			{"-f", "-"}, {"-f", filepath.Join(directory, "base")}, {"-k", directory},
			{"-R", "-f", filepath.Join(directory, "deep")},
		} {
			cmd := kubectlCommand(ctx, p.kubeconfig, append([]string{"crq", "fit", "-n", p.namespace}, args...)...)
			cmd.Stdin = strings.NewReader(manifests["deployment"])
			printed, _ := cmd.CombinedOutput()
			Expect(string(printed)).To(HavePrefix(said), "%v", args)
		}
		Expect(crq(ctx, "fit", "-n", p.namespace).stderr).To(Equal("error: must specify one of -f and -k; see kubectl crq fit --help, correct what the error names, and try again\n"))
	})

	It("says so where shared quotas aren't installed", func(ctx SpecContext) {
		bare, err := harness.Start(ctx, harness.Options{CRDDirs: []string{}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(bare.Stop()).To(Succeed()) })
		got := kubectl(ctx, bare.Kubeconfig(), []string{"KUBECACHEDIR=" + GinkgoT().TempDir()}, "crq", "fit", "-f", file(manifests["deployment"]))
		Expect(got.stdout).To(Equal("It fits: no quota limits what these manifests add.\n\n"+
			"Note: Shared quotas aren't installed in this cluster: only ResourceQuotas were looked at.\n"), got.stderr)
		Expect(got.status).To(BeZero())
	})

	It("fits where nothing limits it", func(ctx SpecContext) {
		namespace(ctx, "fit-free")
		Expect(mustCrq(ctx, "fit", "-f", file(manifests["deployment"]), "-n", "fit-free")).To(
			Equal("It fits: no quota limits what these manifests add.\n"))
	})
})

// threeNodes makes the nodes that the DaemonSets of these specs run on. They are deleted with the spec.
func threeNodes(ctx context.Context) {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) {
		Expect(api.DeleteAllOf(ctx, &corev1.Node{}, client.MatchingLabels{"fit": "node"})).To(Succeed())
	})
	for _, name := range []string{"fit-node-1", "fit-node-2", "fit-node-3"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"fit": "node"}}}
		mustCreate(ctx, node)
		node.Spec.Taints = nil // of a node that isn't ready
		Expect(api.Update(ctx, node)).To(Succeed())
	}
}

func orElse(given, otherwise corev1.ResourceList) corev1.ResourceList {
	if given != nil {
		return given
	}
	return otherwise
}

func ready(ctx context.Context, p place, count int32) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		deployment := builders.Deployment(p.namespace, "web", 0)
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
		g.Expect(deployment.Status.ReadyReplicas).To(Equal(count))
	}).Should(Succeed())
}

// rolledOut returns once there are so many pods, and all have the template as it is now.
func rolledOut(ctx context.Context, p place, count int32) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		g.Expect(upToDate(ctx, p)).To(Equal(count))
		deployment := builders.Deployment(p.namespace, "web", 0)
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
		g.Expect(deployment.Status.Replicas).To(Equal(count), "the last old one goes after the last new one is ready")
	}).Should(Succeed())
}

// upToDate returns how many pods have the template as it is now.
func upToDate(ctx context.Context, p place) int32 {
	GinkgoHelper()
	deployment := builders.Deployment(p.namespace, "web", 0)
	Expect(api.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
	if deployment.Status.ObservedGeneration < deployment.Generation {
		return 0
	}
	return deployment.Status.UpdatedReplicas
}
