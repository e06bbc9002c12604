// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// What the whole suite shares. Specs make quotas and namespaces of their own.
var (
	cluster *harness.Cluster
	api     client.WithWatch
	running *harness.Operator
	binary  string
	metrics int
)

func TestPreflight(t *testing.T) {
	suite.Run(t, "Preflight", suite.BuildTimeout+10*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	built := suite.Async(ctx, suite.Operator)
	cluster, api = suite.Start(ctx, harness.Options{})
	suite.StartControllers(ctx, cluster, "--controllers",
		"deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller,replicationcontroller-controller,"+
			"job-controller,cronjob-controller,ephemeral-volume-controller,resourceclaim-controller")
	metrics = suite.FreePort()
	binary = <-built
	start(ctx)
}, NodeTimeout(suite.BuildTimeout))

func start(ctx context.Context) {
	GinkgoHelper()
	var err error
	running, err = cluster.StartOperator(ctx, harness.OperatorOptions{
		Binary: binary, MetricsPort: metrics, Args: []string{"--status-interval", "100ms"},
	})
	Expect(err).NotTo(HaveOccurred())
}

// place is a namespace under a quota of its name, which has another namespace besides.
type place struct{ name string }

// newPlace makes one. So many pods of 100m are in the other namespace.
func newPlace(ctx context.Context, name string, others int, hard ...string) place {
	GinkgoHelper()
	return placeUnder(ctx, quotaOf(name, hard...), others)
}

func quotaOf(name string, hard ...string) *quotav1.ClusterResourceQuota {
	quota := builders.Quota(name).Label("preflight", name)
	for i := 0; i+1 < len(hard); i += 2 {
		quota.Hard(corev1.ResourceName(hard[i]), hard[i+1])
	}
	return quota.Obj()
}

func placeUnder(ctx context.Context, quota *quotav1.ClusterResourceQuota, others int) place {
	GinkgoHelper()
	p := place{quota.Name}
	for _, namespace := range []string{p.name, p.other()} {
		suite.Create(ctx, api, builders.Namespace(namespace).Label("preflight", p.name).Obj())
	}
	suite.Create(ctx, api, quota)
	suite.WaitUntilEnforced(ctx, api, quota.Name)
	for i := range others {
		p.addOther(ctx, fmt.Sprint("other-", i))
	}
	p.settles(ctx)
	return p
}

func (p place) other() string { return p.name + "-other" }

func (p place) addOther(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(api.Create(ctx, builders.Pod(p.other(), name).Request("cpu", "100m").Obj())).To(Succeed())
}

// settles waits until nothing is reserved.
func (p place) settles(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		quota := &quotav1.ClusterResourceQuota{}
		g.Expect(api.Get(ctx, client.ObjectKey{Name: p.name}, quota)).To(Succeed())
		for name, amount := range quota.Status.Reserved {
			g.Expect(amount.IsZero()).To(BeTrue(), "%s: %s", name, amount.String())
		}
	}).Should(Succeed())
}

// kubectl runs kubectl in the namespace, and returns what it came to.
func (p place) kubectl(ctx context.Context, stdin string, args ...string) harness.KubectlResult {
	GinkgoHelper()
	result, err := cluster.Kubectl(ctx, strings.NewReader(stdin), append([]string{"-n", p.name}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	return result
}

// applies has kubectl apply a manifest, and returns the warnings that kubectl prints.
func (p place) applies(ctx context.Context, manifest string, args ...string) []string {
	GinkgoHelper()
	return warnings(p.kubectl(ctx, manifest, append([]string{"apply", "-f", "-"}, args...)...))
}

// scales has kubectl scale a workload, and returns the warnings that it prints. On a machine that is too busy, the
// operator can't read the workload within half a second, so that a dry run comes first.
func (p place) scales(ctx context.Context, workload string, replicas int) []string {
	GinkgoHelper()
	args := []string{"scale", workload, fmt.Sprint("--replicas=", replicas)}
	var told []string
	Eventually(ctx, func(ctx context.Context) []string {
		told = warnings(p.kubectl(ctx, "", append(args, "--dry-run=server")...))
		return told
	}).ShouldNot(ContainElement(ContainSubstring("can't be read")))
	warnings(p.kubectl(ctx, "", args...))
	return told
}

func warnings(result harness.KubectlResult) []string {
	GinkgoHelper()
	Expect(result.ExitCode).To(BeZero(), result.Stderr)
	var told []string
	for line := range strings.Lines(result.Stderr) {
		if warning, found := strings.CutPrefix(strings.TrimSpace(line), "Warning: "); found {
			told = append(told, warning)
		}
	}
	return told
}

// has waits until the namespace has so many pods, and then no more.
func (p place) has(ctx context.Context, count int) {
	GinkgoHelper()
	pods := func(ctx context.Context) (int, error) {
		list := &corev1.PodList{}
		err := api.List(ctx, list, client.InNamespace(p.name))
		return len(list.Items), err
	}
	Eventually(ctx, pods).Should(Equal(count))
	Consistently(ctx, pods, "300ms").Should(Equal(count))
	p.settles(ctx)
}

// observed waits until the controller has seen the workload's spec, and made what it can of it.
func (p place) observed(ctx context.Context, workload string, pods int) {
	GinkgoHelper()
	p.has(ctx, pods)
	Eventually(ctx, func(ctx context.Context) string {
		return p.kubectl(ctx, "", "get", workload, "-o", "jsonpath={.metadata.generation}={.status.observedGeneration}:"+
			"{.status.replicas}{.status.currentNumberScheduled}").Stdout
	}).Should(MatchRegexp(`^(\d+)=(\d+):%d$`, pods))
}
