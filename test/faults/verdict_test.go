// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/faults/load"
	"github.com/sharedquota/shared-quota-operator/test/judge"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// wantNothingOver asks the judge whether anything was ever over its limit. No pod of the clients replaces another one, so
// nothing may take surge.
func wantNothingOver(ctx context.Context) judge.Report {
	GinkgoHelper()
	report, err := truth.Report(ctx)
	Expect(err).NotTo(HaveOccurred())
	for name, quota := range report.Quotas {
		Expect(quota.Violations).To(BeEmpty(), "quota %s, and %d more", name, quota.MoreViolations)
		Expect(quota.Surged).To(BeEmpty(), "quota %s took surge, and %d more", name, quota.MoreSurged)
	}
	return report
}

// wantServed fails when a client met what nothing excuses. It tells what all
// clients met.
func wantServed(tally *load.Tally) {
	GinkgoHelper()
	bad, excused := tally.Verdict(disruptions)
	AddReportEntry("what clients met", tally.String())
	AddReportEntry("calls that were lost, and to what", counts(excused))
	Expect(bad).To(BeEmpty(), "%d calls ended as they may not:\n%s", len(bad), strings.Join(bad[:min(len(bad), 20)], "\n"))
	Expect(tally.Count(load.Succeeded)).To(BeNumerically(">", 0), "clients that achieve nothing prove nothing")
	Expect(tally.Count(load.Exceeded)).To(BeNumerically(">", 0), "clients that never meet the limit prove nothing")
}

// tellPeaks tells what lived at most under each quota of the world.
func (w *world) tellPeaks(report judge.Report) {
	var lines []string
	for _, name := range w.quotas() {
		quota := report.Quotas[name]
		lines = append(lines, fmt.Sprintf("%s: %d admitted, at most %s of %s",
			name, quota.Admitted, amounts(quota.Peak), amounts(quota.Hard)))
	}
	AddReportEntry("what the judge saw", strings.Join(lines, "\n"))
}

// counts puts what was counted into lines.
func counts[K ~string](of map[K]int) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		lines = append(lines, fmt.Sprintf("%s: %d", name, of[name]))
	}
	return strings.Join(lines, "\n")
}

// amounts puts a list into one line, as in "pods=2,requests.cpu=300m".
func amounts(list corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		parts = append(parts, string(name)+"="+quantity.String())
	}
	return strings.Join(parts, ",")
}

// quiet is how long what was reserved in vain may last after the leader has changed, and a little more.
const quiet = reservationTTL + 30*time.Second

// wantAgreement waits until every figure of the operator is the judge's, and
// nothing is reserved any more.
func wantAgreement(ctx context.Context, within time.Duration) {
	GinkgoHelper()
	start := time.Now()
	Eventually(ctx, func(ctx context.Context) error { return truth.Agrees(ctx, api) }).
		WithTimeout(within).WithPolling(500 * time.Millisecond).Should(Succeed())
	AddReportEntry("operator and judge agree after", time.Since(start).Round(time.Second))
}

// wantAllUsable frees something in each world, and proves that exactly what is
// free can be used elsewhere.
func wantAllUsable(ctx context.Context, worlds ...*world) {
	GinkgoHelper()
	for _, w := range worlds {
		w.free(ctx)
	}
	wantAgreement(ctx, suite.Deadline)
	var group sync.WaitGroup
	for _, w := range worlds {
		group.Go(func() {
			defer GinkgoRecover()
			w.useAll(ctx)
		})
	}
	group.Wait()
}

// free deletes what the first namespace holds.
func (w *world) free(ctx context.Context) {
	GinkgoHelper()
	for _, emptied := range []client.Object{&corev1.Pod{}, &corev1.ConfigMap{}, &corev1.Service{}} {
		Expect(api.DeleteAllOf(ctx, emptied, client.InNamespace(w.namespaces[0]), client.GracePeriodSeconds(0))).To(Succeed())
	}
}

// useAll takes all that is free. It may be called again, and gives what it creates other
// names then.
func (w *world) useAll(ctx context.Context) {
	GinkgoHelper()
	w.used++
	w.useUp(ctx, w.spare[w.tier()], w.whole(), w.tier())
	w.useUp(ctx, w.spare[w.whole()], w.whole())
	things := w.spare[w.things()]
	w.createUpTo(ctx, "services.loadbalancers", func(i int) client.Object {
		return builders.Service(things, fmt.Sprintf("s%d-%d", w.used, i)).Type(corev1.ServiceTypeLoadBalancer, 80).WithoutNodePorts().Obj()
	}, w.things())
	w.createUpTo(ctx, "count/configmaps", func(i int) client.Object {
		return builders.ConfigMap(things, fmt.Sprintf("c%d-%d", w.used, i))
	}, w.things())
}

// useUp takes all CPU that is left in one pod, and all pods that are left
// beside it.
func (w *world) useUp(ctx context.Context, namespace string, quotas ...string) {
	GinkgoHelper()
	cpu, pods := corev1.ResourceName("requests.cpu"), corev1.ResourcePods
	free, _ := leastFree(ctx, cpu, quotas)
	if left, _ := leastFree(ctx, pods, quotas); left.Value() >= 2 {
		Expect(api.Create(ctx, builders.Pod(namespace, fmt.Sprintf("all-cpu-%d", w.used)).Request("cpu", free.String()).Obj())).To(Succeed())
		_, by := leastFree(ctx, cpu, quotas)
		Expect(api.Create(ctx, builders.Pod(namespace, fmt.Sprintf("more-cpu-%d", w.used)).Request("cpu", "1m").Obj())).To(beRefused(ctx, by, cpu, "1m"))
	}
	w.createUpTo(ctx, pods, func(i int) client.Object {
		return builders.Pod(namespace, fmt.Sprintf("p%d-%d", w.used, i)).Request("cpu", "0").Obj()
	}, quotas...)
}

// createUpTo creates as many objects as are free, and expects the next one to
// be refused with the figures of the quota that is used up.
func (w *world) createUpTo(ctx context.Context, name corev1.ResourceName, object func(int) client.Object, quotas ...string) {
	GinkgoHelper()
	free, by := leastFree(ctx, name, quotas)
	for i := range int(free.Value()) {
		Expect(api.Create(ctx, object(i))).To(Succeed(), "number %d of %d %s that are free under %s", i+1, free.Value(), name, by)
	}
	Expect(api.Create(ctx, object(int(free.Value())))).To(beRefused(ctx, by, name, "1"))
}

// leastFree returns the least that is free, and the first quota, in the order of
// names, that has no more.
func leastFree(ctx context.Context, name corev1.ResourceName, quotas []string) (least resource.Quantity, by string) {
	GinkgoHelper()
	report, err := truth.Report(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, quota := range quotas {
		free := report.Quotas[quota].Hard[name].DeepCopy()
		free.Sub(report.Quotas[quota].Lives[name])
		if by == "" || free.Cmp(least) < 0 {
			least, by = free, quota
		}
	}
	return least, by
}

// beRefused matches the refusal by a quota that is used up.
func beRefused(ctx context.Context, quota string, name corev1.ResourceName, requested string) gomegatypes.GomegaMatcher {
	GinkgoHelper()
	report, err := truth.Report(ctx)
	Expect(err).NotTo(HaveOccurred())
	limit := report.Quotas[quota].Hard[name]
	return And(Satisfy(apierrors.IsForbidden), MatchError(MatchRegexp(
		`^admission webhook "objects(-\d+)?\.quota\.sharedquota\.dev" denied the request: %s`, regexp.QuoteMeta(fmt.Sprintf(
			"exceeded quota: %[1]s, requested: %[2]s=%[3]s, used: %[2]s=%[4]s, limited: %[2]s=%[4]s",
			quota, name, requested, limit.String())))))
}
