// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/comparison"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// compared are as many cases as are played, so many of them at the same time. make compare plays more.
	compared, atOnce = 24, 6
	// quiet is how long nothing changes until a workload is taken to have come as far as it will.
	quiet = 3 * time.Second
)

var _ = Describe("What fit, why and preflight say", Label("comparison"), func() {
	It("comes true of generated cases, in both directions", func(ctx SpecContext) {
		makeNodes(ctx, comparison.RealNodes)
		runtimeClass, priorities, storage := comparison.Classes()
		createFor(ctx, runtimeClass)
		for i := range priorities {
			createFor(ctx, priorities[i])
		}
		for i := range storage {
			createFor(ctx, storage[i])
		}
		plugin := suite.BuildPlugin(ctx, GinkgoT().TempDir())
		seeds := make(chan int)
		var all sync.WaitGroup
		var came, refused atomic.Int32
		for range atOnce {
			all.Go(func() {
				defer GinkgoRecover()
				for seed := range seeds {
					c := &comparing{place: place{fmt.Sprint("case-", seed)}, plugin: plugin, seed: seed}
					if c.plays(ctx) {
						came.Add(1)
					} else {
						refused.Add(1)
					}
				}
			})
		}
		go func() {
			defer close(seeds)
			for seed := range playable(compared) {
				select {
				case seeds <- seed:
				case <-ctx.Done():
				}
			}
		}()
		all.Wait()
		AddReportEntry("compared", fmt.Sprintf("%d that came, %d that didn't", came.Load(), refused.Load()))
		Expect(came.Load()).To(BeNumerically(">", 0), "cases of which none comes prove nothing")
		Expect(refused.Load()).To(BeNumerically(">", 0), "cases that all come prove nothing")
	}, NodeTimeout(time.Hour))
})

// playable yields as many seeds of cases that a real cluster can play.
func playable(many int) func(func(int) bool) {
	return func(yield func(int) bool) {
		left := many
		if os.Getenv("COMPARE") != "" { // All of them that a real cluster can play.
			left = math.MaxInt
		}
		for seed := range comparison.Seeds(math.MaxInt32) {
			_, ok := comparison.Drawn(seed).Real("any")
			if ok {
				left--
			}
			if left < 0 || ok && !yield(seed) {
				return
			}
		}
	}
}

// comparing is a case that is played in a namespace of its own.
type comparing struct {
	place

	comparison.Case
	plugin string
	seed   int
}

// plays applies the workload, and reports whether all came.
func (c *comparing) plays(ctx context.Context) bool {
	GinkgoHelper()
	drawn := comparison.Drawn(c.seed)
	c.Case, _ = drawn.Real(c.name)
	suite.Create(ctx, api, builders.Namespace(c.name).Label("preflight", c.name).Obj())
	suite.Create(ctx, api, comparison.ClaimTemplate(c.name))
	suite.Kubelet(ctx, cluster, c.name)
	if c.Before != nil {
		Expect(c.kubectl(ctx, manifestOf(c.Before), "apply", "-f", "-").ExitCode).To(BeZero())
		Eventually(ctx, func(ctx context.Context) bool { return c.isDone(ctx, c.Before) }).Should(BeTrue(), "seed %d: before", c.seed)
	}
	for i := range c.LimitRanges {
		suite.Create(ctx, api, &c.LimitRanges[i])
	}
	for _, quota := range c.Quotas {
		suite.Create(ctx, api, quota.ClusterResourceQuota)
		suite.WaitUntilEnforced(ctx, api, quota.Name)
		Eventually(ctx, func(ctx context.Context) error {
			return api.Get(ctx, client.ObjectKey{Namespace: c.name, Name: quota.Name}, &quotav1.LocalResourceQuota{})
		}).Should(Succeed())
	}
	verdict := c.fits(ctx)
	lines, judged, outcome := c.applied(ctx)
	came := outcome.Itself == nil && c.comes(ctx)
	outcome.Pods = c.pods(ctx)
	if !came && outcome.Itself == nil {
		outcome.Made = c.refusal(ctx)
	}
	model := comparison.NewCluster(drawn.Alone())
	if c.Before != nil {
		model.Force() //nolint:contextcheck // it is in memory
	}
	_, demand := model.Fit()
	asked := c.Asked(demand)
	asked.Grows = asked.Grows || asked.Replaces && slices.ContainsFunc(verdict.Rows, mayTakeSurge)
	wrong := outcome.DisprovesFit(verdict, asked)
	if _, unexplained := c.Applied.(*corev1.ConfigMap); !unexplained && outcome.Itself == nil {
		why := c.why(ctx)
		for _, one := range outcome.DisprovesWhy(&why, asked) {
			wrong = append(wrong, fmt.Sprintf("%s: %+v", one, why))
		}
	}
	if judged && c.IsPreflighted() && outcome.Itself == nil && (c.Before != nil || !isDaemonSet(c.Applied)) {
		wrong = append(wrong, outcome.Disproves(lines, asked)...)
	}
	GinkgoWriter.Printf("seed %d: %s, came %t, %d pods, %q\n", c.seed, c.Applied.GetObjectKind().GroupVersionKind().Kind, came, outcome.Pods, lines)
	Expect(wrong).To(BeEmpty(), "COMPARE_SEED=%d COMPARE=1 make compare plays this again:\n%s\nfit: %+v\npreflight: %q\noutcome: %+v", c.seed, c.Case, verdict, lines, outcome)
	return came
}

// mayTakeSurge reports whether a rollout is short under a quota that is over its limit and has surge. If an old pod goes first,
// the new one takes none, and whether it goes first is a matter of chance.
func mayTakeSurge(row fitting.Row) bool {
	return !row.Shortfall.IsZero() && row.Available.Sign() < 0 && row.Limit.Surge != nil
}

func isDaemonSet(object client.Object) bool { _, ok := object.(*appsv1.DaemonSet); return ok }

func manifestOf(object client.Object) string {
	encoded, err := yaml.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	return string(encoded)
}

// fits asks the plugin, once its answer doesn't change.
func (c *comparing) fits(ctx context.Context) fitting.Verdict {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "manifest.yaml")
	Expect(os.WriteFile(path, []byte(manifestOf(c.Applied)), 0o600)).To(Succeed())
	var verdict fitting.Verdict
	last := ""
	Eventually(ctx, func(ctx context.Context) (bool, error) {
		command := exec.CommandContext(ctx, c.plugin, "fit", "-f", path, "-n", c.name, "-o", "json", "--kubeconfig", cluster.Kubeconfig())
		answer, _ := command.Output() // Its status is part of the answer.
		same := len(answer) > 0 && string(answer) == last
		last = string(answer)
		var err error
		if verdict, err = comparison.ReadFit(answer); err != nil {
			return false, fmt.Errorf("%w: %s", err, answer)
		}
		return same && verdict.Outcome() != fitting.Unknown, nil
	}).WithPolling(400 * time.Millisecond).Should(BeTrue())
	return verdict
}

// why asks the plugin, once its answer doesn't change.
func (c *comparing) why(ctx context.Context) comparison.Why {
	GinkgoHelper()
	var why comparison.Why
	last := ""
	Eventually(ctx, func(ctx context.Context) (bool, error) {
		subject := c.Applied.GetObjectKind().GroupVersionKind().Kind + "/" + comparison.Name
		command := exec.CommandContext(ctx, c.plugin, "why", subject, "-n", c.name, "-o", "json", "--kubeconfig", cluster.Kubeconfig())
		answer, err := command.Output() // Its status is part of the answer.
		if command.ProcessState == nil {
			return false, err
		}
		if why, err = comparison.ReadWhy(answer, command.ProcessState.ExitCode()); err != nil {
			return false, err
		}
		same := why.Summary == last
		last = why.Summary
		return same, nil
	}).WithPolling(400 * time.Millisecond).Should(BeTrue())
	return why
}

// applied applies the workload by a dry run and in earnest, which must say the same, and returns that.
func (c *comparing) applied(ctx context.Context) (lines []string, judged bool, outcome comparison.Outcome) {
	GinkgoHelper()
	applying.Lock()
	defer applying.Unlock()
	before := passedBy(ctx)
	dry := c.kubectl(ctx, manifestOf(c.Applied), "apply", "-f", "-", "--dry-run=server")
	result := c.kubectl(ctx, manifestOf(c.Applied), "apply", "-f", "-")
	judged = passedBy(ctx) == before
	if result.ExitCode != 0 {
		outcome.Itself = comparison.RefusalOf(c.Applied.GetObjectKind().GroupVersionKind().Kind, result.Stderr)
		return nil, judged, outcome
	}
	lines = warnings(result)
	switch {
	case !judged:
	case len(c.LimitRanges) < 2 && c.Before != nil:
		Expect(warnings(dry)).To(Equal(lines), "seed %d: the dry run", c.seed)
	default:
		Expect(c.saidOf(warnings(dry))).To(Equal(c.saidOf(lines)), "seed %d: the dry run", c.seed)
	}
	return lines, judged, outcome
}

// saidOf returns the claims of warnings by which a dry run and the request in earnest must agree: a dry run that makes
// nothing ends in a longer command, so that it names fewer resources, and of several LimitRanges, it is a matter of chance
// which one is asked first.
func (c *comparing) saidOf(lines []string) []comparison.Said {
	all := make([]comparison.Said, 0, len(lines))
	for _, line := range lines {
		said := comparison.ParseSaid(line)
		said.Short, said.More = nil, false
		if len(c.LimitRanges) > 1 && said.Refused != "" && !strings.HasPrefix(said.Refused, "failed quota: ") {
			said.Refused = "by a LimitRange"
		}
		all = append(all, said)
	}
	return all
}

// comes waits until all has come, or until something was refused and nothing more comes.
func (c *comparing) comes(ctx context.Context) bool {
	GinkgoHelper()
	last, since, done := "", time.Now(), false
	Eventually(ctx, func(ctx context.Context) bool {
		if done = c.isDone(ctx, c.Applied); done {
			return true
		}
		if now := c.state(ctx); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > quiet && (len(c.refusals(ctx)) > 0 || c.lacksClaims(ctx))
	}).WithPolling(200*time.Millisecond).Should(BeTrue(), "seed %d: neither came all, nor was anything refused", c.seed)
	return done
}

// state is all that changes while something comes.
func (c *comparing) state(ctx context.Context) string {
	GinkgoHelper()
	return c.kubectl(ctx, "", "get", "pods,persistentvolumeclaims,resourceclaims,replicasets", "-o", "jsonpath={.items[*].metadata.uid}{.items[*].status}").Stdout
}

// list returns the objects of the namespace.
func list[L client.ObjectList](ctx context.Context, c *comparing, into L) L {
	GinkgoHelper()
	Expect(api.List(ctx, into, client.InNamespace(c.name))).To(Succeed())
	return into
}

// living returns how many pods live.
func (c *comparing) living(ctx context.Context) int {
	GinkgoHelper()
	pods := list(ctx, c, &corev1.PodList{}).Items
	return len(slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil }))
}

// pods returns how many pods have the claims that they need.
func (c *comparing) pods(ctx context.Context) int {
	GinkgoHelper()
	found := c.living(ctx)
	volumes, devices := comparison.Claims(c.Applied)
	if volumes > 0 {
		found = min(found, len(list(ctx, c, &corev1.PersistentVolumeClaimList{}).Items)/volumes)
	}
	if devices > 0 {
		found = min(found, len(list(ctx, c, &resourceapi.ResourceClaimList{}).Items)/devices)
	}
	return found
}

// lacksClaims reports whether a pod waits for a claim. If it is refused, its controller only logs that.
func (c *comparing) lacksClaims(ctx context.Context) bool { return c.pods(ctx) < c.living(ctx) }

// isDone reports whether the controllers have seen the workload, and made all of it.
func (c *comparing) isDone(ctx context.Context, object client.Object) bool {
	GinkgoHelper()
	live, _ := object.DeepCopyObject().(client.Object)
	Expect(api.Get(ctx, client.ObjectKeyFromObject(object), live)).To(Succeed())
	wanted, rest := 0, true
	switch live := live.(type) {
	case *appsv1.Deployment:
		wanted = int(*live.Spec.Replicas)
		status, paused := live.Status, live.Spec.Paused
		if paused && c.Before == nil || paused && live.Annotations["deployment.kubernetes.io/revision"] == "" {
			wanted = 0
		}
		rest = status.ObservedGeneration == live.Generation && (paused || status.UpdatedReplicas == status.Replicas)
	case *appsv1.StatefulSet:
		wanted = int(*live.Spec.Replicas)
		status, partition := live.Status, int32(0)
		if rolling := live.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
			partition = ptr.Deref(rolling.Partition, 0)
		}
		byHand := live.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
		rest = status.ObservedGeneration == live.Generation && (byHand || status.UpdatedReplicas >= *live.Spec.Replicas-partition)
	case *appsv1.DaemonSet:
		wanted = comparison.RealNodes
		rest = live.Status.ObservedGeneration == live.Generation && live.Status.UpdatedNumberScheduled == comparison.RealNodes
	case *appsv1.ReplicaSet:
		wanted, rest = int(*live.Spec.Replicas), live.Status.ObservedGeneration == live.Generation
	case *corev1.ReplicationController:
		wanted, rest = int(*live.Spec.Replicas), live.Status.ObservedGeneration == live.Generation
	case *batchv1.Job:
		wanted = int(*live.Spec.Parallelism)
		if live.Spec.Completions != nil {
			wanted = min(wanted, int(*live.Spec.Completions))
		}
		if *live.Spec.Suspend {
			wanted = 0
		}
	case *corev1.Pod:
		wanted = 1
	}
	return rest && c.pods(ctx) == wanted && len(list(ctx, c, &corev1.PodList{}).Items) == wanted
}

// refusals returns the events by which controllers tell of refusals.
func (c *comparing) refusals(ctx context.Context) []corev1.Event {
	GinkgoHelper()
	return slices.DeleteFunc(list(ctx, c, &corev1.EventList{}).Items, func(event corev1.Event) bool {
		return event.Type != corev1.EventTypeWarning || comparison.RefusalOf("", event.Message).IsUnknown()
	})
}

// refusal returns the latest refusal; an unknown one if no controller told of any.
func (c *comparing) refusal(ctx context.Context) *comparison.RefusalError {
	GinkgoHelper()
	events := c.refusals(ctx)
	if len(events) == 0 {
		return &comparison.RefusalError{}
	}
	latest := slices.MaxFunc(events, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	kind := "Pod"
	switch {
	case strings.Contains(latest.Message, `persistentvolumeclaims "`):
		kind = "PersistentVolumeClaim"
	case strings.Contains(latest.Message, "replicasets.apps"):
		kind = "ReplicaSet"
	}
	return comparison.RefusalOf(kind, latest.Message)
}
