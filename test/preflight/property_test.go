// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// workloads are as many as are drawn, one in each place. In steps, each becomes another one; as long as enough
	// of neither kind was applied, in more of them.
	workloads, steps, mostSteps = 8, 4, 12
	// enough is how many must fit, and how many must be short.
	enough = 6
	// nodes are as many as a DaemonSet's pods run on.
	nodes = 3
)

// drawn is a workload at one step.
type drawn struct {
	kind          string
	replicas, cpu int
	image         int
	surge         int
	unavailable   int
}

// change draws what becomes of it.
func (d drawn) change(from *rand.Rand) drawn {
	if from.Intn(2) == 0 {
		d.replicas = 1 + from.Intn(5)
	}
	if from.Intn(2) == 0 && d.kind != "replicaset" && d.kind != "job" {
		d.cpu = 100 * (1 + from.Intn(3))
		d.image++
	}
	d.surge = from.Intn(3)
	d.unavailable = from.Intn(2)
	if d.surge == 0 {
		d.unavailable = 1
	}
	return d
}

func (d drawn) asksTheSame(last drawn) bool {
	return (d.replicas == last.replicas || d.kind == "daemonset") && d.cpu == last.cpu && d.image == last.image
}

func (d drawn) manifest() string {
	template := fmt.Sprintf(`{metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "web:%d", `+
		`resources: {requests: {cpu: %dm}}}]}}`, d.image, d.cpu)
	const selector = "selector: {matchLabels: {app: web}}, "
	switch d.kind {
	case "deployment":
		return ofKind("apps/v1", "Deployment", fmt.Sprintf("replicas: %d, "+selector+
			"strategy: {rollingUpdate: {maxSurge: %d, maxUnavailable: %d}}, template: %s", d.replicas, d.surge, d.unavailable, template))
	case "statefulset":
		return ofKind("apps/v1", "StatefulSet", fmt.Sprintf("replicas: %d, podManagementPolicy: Parallel, "+selector+"template: %s, "+
			"volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]",
			d.replicas, template))
	case "daemonset":
		return ofKind("apps/v1", "DaemonSet", selector+"template: "+template)
	case "job":
		return ofKind("batch/v1", "Job", fmt.Sprintf("parallelism: %d, template: %s", d.replicas,
			strings.Replace(template, "spec: {", "spec: {restartPolicy: Never, ", 1)))
	default:
		return ofKind("apps/v1", "ReplicaSet", fmt.Sprintf("replicas: %d, "+selector+"template: %s", d.replicas, template))
	}
}

// done is what its status says once all of it has come to be.
func (d drawn) done() (path, want string) {
	switch d.kind {
	case "deployment":
		return "{.status.replicas} {.status.updatedReplicas} {.status.availableReplicas}", fmt.Sprintf("%d %[1]d %[1]d", d.replicas)
	case "statefulset":
		return "{.status.replicas} {.status.updatedReplicas} {.status.availableReplicas}", fmt.Sprintf("%d %[1]d %[1]d", d.replicas)
	case "daemonset":
		return "{.status.currentNumberScheduled} {.status.updatedNumberScheduled} {.status.numberAvailable}", fmt.Sprintf("%d %[1]d %[1]d", nodes)
	case "job":
		return "{.status.active}", fmt.Sprint(d.replicas)
	default:
		return "{.status.replicas}", fmt.Sprint(d.replicas)
	}
}

// state is what the status says once the controller has seen the spec.
func (d drawn) state(ctx context.Context, p place) string {
	path, _ := d.done()
	result := p.kubectl(ctx, "", "get", d.kind+"/web", "-o", "jsonpath={.metadata.generation}={.status.observedGeneration}|"+path)
	generations, state, _ := strings.Cut(result.Stdout, "|")
	if one, other, _ := strings.Cut(generations, "="); other != "" && one != other {
		return "not observed"
	}
	return state
}

var _ = Describe("What preflight calls fitting", func() {
	It("comes to be, alone, whatever is applied", func(ctx SpecContext) {
		seed := GinkgoRandomSeed()
		makeNodes(ctx, nodes)
		var all sync.WaitGroup
		var fitting, warned atomic.Int32
		for i := range workloads {
			all.Go(func() {
				defer GinkgoRecover()
				story(ctx, seed, i, &fitting, &warned)
			})
		}
		all.Wait()
		AddReportEntry("applied", fmt.Sprintf("%d that fit, %d that were short", fitting.Load(), warned.Load()))
		Expect(fitting.Load()).To(BeNumerically(">=", enough))
		Expect(warned.Load()).To(BeNumerically(">=", enough))
	})
})

// createFor creates an object, and deletes it when the spec ends.
func createFor(ctx context.Context, object client.Object) {
	GinkgoHelper()
	suite.Create(ctx, api, object)
	DeferCleanup(func(ctx SpecContext) { Expect(api.Delete(ctx, object)).To(Succeed()) }) //nolint:contextcheck // it has one of its own
}

// makeNodes makes nodes for the pods of DaemonSets, until the spec ends.
func makeNodes(ctx context.Context, count int) {
	GinkgoHelper()
	for i := range count {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i)}}
		createFor(ctx, node)
		// The taint of a node that isn't ready goes, whatever the node's controllers write meanwhile.
		untaint := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":null}}`))
		Expect(api.Patch(ctx, node, untaint)).To(Succeed())
	}
}

// story applies one workload and its changes, and counts those that fit and those that were short.
func story(ctx context.Context, seed int64, number int, fitting, warned *atomic.Int32) {
	GinkgoHelper()
	from := rand.New(rand.NewSource(seed + int64(number)))
	kinds := []string{"deployment", "deployment", "statefulset", "replicaset", "daemonset", "job"}
	workload := drawn{kind: kinds[number%len(kinds)], replicas: 1 + from.Intn(5), cpu: 100 * (1 + from.Intn(3))}
	workload = workload.change(from)
	p := place{fmt.Sprint("drawn-", number)}
	Expect(api.Create(ctx, builders.Namespace(p.name).Label("preflight", p.name).Obj())).To(Succeed())
	quota := quotaOf(p.name, "pods", fmt.Sprint(3+from.Intn(5)), "requests.cpu", fmt.Sprintf("%dm", 400+100*from.Intn(8)),
		"persistentvolumeclaims", "5")
	Expect(api.Create(ctx, quota)).To(Succeed())
	suite.WaitUntilEnforced(ctx, api, quota.Name)
	suite.Kubelet(ctx, cluster, p.name)
	isEnough := func() bool { return fitting.Load() >= enough && warned.Load() >= enough }
	for step, last := 0, (drawn{}); step < steps || step < mostSteps && !isEnough(); step++ {
		before := workload.state(ctx, p)
		told, judged := judgedApply(ctx, p, workload.manifest())
		GinkgoWriter.Printf("%s, of %v, at step %d: %+v from %q: %q\n", p.name, quota.Spec.Quota.Hard, step, workload, before, told)
		// A DaemonSet is created before anybody knows on how many nodes it runs. Of what asks for the same as before,
		// nothing is said.
		foretold := (workload.kind != "daemonset" || step > 0) && !workload.asksTheSame(last) && judged
		last = workload
		if len(told) > 0 {
			warned.Add(1)
		} else if foretold {
			fitting.Add(1)
			_, want := workload.done()
			Eventually(ctx, func(ctx context.Context) string { return workload.state(ctx, p) }).Should(Equal(want), "seed %d, %s at step %d: %+v, quota %v", seed, p.name, step, workload, quota.Spec.Quota.Hard)
		}
		p.rests(ctx, workload)
		workload = workload.change(from)
	}
}

// applying is held by who applies.
var applying sync.Mutex

// judgedApply applies a manifest, and reports whether the API server got its answer in time. On a machine that is
// too busy it lets the request pass after two seconds.
func judgedApply(ctx context.Context, p place, manifest string) (told []string, judged bool) {
	GinkgoHelper()
	applying.Lock()
	defer applying.Unlock()
	before := passedBy(ctx)
	told = p.applies(ctx, manifest)
	return told, passedBy(ctx) == before
}

// passedBy returns how often the API server went without an answer, in the words of its metrics.
func passedBy(ctx context.Context) string {
	GinkgoHelper()
	result, err := cluster.Kubectl(ctx, nil, "get", "--raw", "/metrics")
	Expect(err).NotTo(HaveOccurred())
	var lines []string
	for line := range strings.Lines(result.Stdout) {
		if strings.HasPrefix(line, "apiserver_admission_webhook_fail_open_count{") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// rests waits until nothing has changed for a moment.
func (p place) rests(ctx context.Context, workload drawn) {
	GinkgoHelper()
	last, since := "", time.Now()
	Eventually(ctx, func(ctx context.Context) bool {
		quota := &quotav1.ClusterResourceQuota{}
		Expect(api.Get(ctx, client.ObjectKey{Name: p.name}, quota)).To(Succeed())
		now := workload.state(ctx, p) + fmt.Sprint(quota.Status.Total.Used, quota.Status.Reserved)
		if now != last || strings.HasPrefix(now, "not observed") {
			last, since = now, time.Now()
		}
		return time.Since(since) > 1500*time.Millisecond
	}).WithPolling(200 * time.Millisecond).Should(BeTrue())
}
