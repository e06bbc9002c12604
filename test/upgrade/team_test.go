// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// clients create pods in each namespace of a team at the same time.
	clients = 4
	// rest is what a client takes after a refusal. So what it deletes has been there for
	// longer than replicas take to agree on who counts: what comes and goes while nobody
	// does stays reserved.
	rest = 200 * time.Millisecond
)

// team is a quota on pods, and the namespaces under it.
type team struct {
	name       string
	namespaces []string
}

// newTeam makes namespaces, and a quota for them that the API server asks about.
func newTeam(ctx context.Context, name, pods string) *team {
	GinkgoHelper()
	t := &team{name: name, namespaces: []string{name + "-a", name + "-b"}}
	for _, namespace := range t.namespaces {
		Expect(api.Create(ctx, builders.Namespace(namespace).Label("team", name).Obj())).To(Succeed())
	}
	t.limit(ctx, pods)
	return t
}

// limit makes the quota, and returns once it is enforced.
func (t *team) limit(ctx context.Context, pods string) {
	GinkgoHelper()
	quota := builders.Quota(t.name).Label("team", t.name).Hard("pods", pods).Obj()
	Eventually(ctx, func(ctx context.Context) error { return api.Create(ctx, quota) }).Should(Succeed())
	suite.WaitUntilEnforced(ctx, api, t.name)
}

func (t *team) create(ctx context.Context, name string) error {
	return api.Create(ctx, builders.Pod(t.namespaces[0], name).Obj())
}

// beFull matches the refusal of a pod where so many of so many are used.
func (t *team) beFull(used, limited string) gomegatypes.GomegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(
		"exceeded quota: %s, requested: pods=1, used: pods=%s, limited: pods=%s", t.name, used, limited)))
}

func (t *team) ledger(ctx context.Context) *quotav1.QuotaLedger {
	GinkgoHelper()
	ledger := &quotav1.QuotaLedger{}
	Expect(api.Get(ctx, client.ObjectKey{Name: t.name}, ledger)).To(Succeed())
	return ledger
}

// reserved is how many pods are reserved, apart from what a replica holds in escrow.
func (t *team) reserved(ctx context.Context) int {
	GinkgoHelper()
	count := 0
	for _, text := range t.ledger(ctx).Entries.Reservations {
		reservation, err := ledgerstore.Decode(text)
		Expect(err).NotTo(HaveOccurred())
		if !reservation.IsEscrow() {
			count++
		}
	}
	return count
}

// used is how many pods the ledger says live.
func (t *team) used(ctx context.Context) func() string {
	return func() string {
		used := t.ledger(ctx).Entries.Used
		return used.Pods().String()
	}
}

// send admits a pod that is never stored: another webhook refuses it while the operator
// admits it. Its reservation is what any reservation in flight is, for
// as long as it is looked at.
func (t *team) send(ctx context.Context, name string, encoding int32) {
	GinkgoHelper()
	namespace := t.name + "-flight"
	Expect(api.Create(ctx, builders.Namespace(namespace).Label("team", t.name).Obj())).To(Succeed())
	suite.RefuseAll(ctx, api, namespace)
	Expect(api.Create(ctx, builders.Pod(namespace, name).Obj())).To(MatchError(ContainSubstring(suite.Refusing)))
	Expect(t.ledger(ctx).Entries.Reservations).To(ContainElement(ContainSubstring(inFlight(t, encoding))))
}

// load is clients that create pods, and delete their oldest one whenever they are told
// that the quota is exhausted.
type load struct {
	admitted, refused atomic.Int32
	stop              func()

	mu sync.Mutex // guards failures
	// failures are the answers that are neither yes nor the quota's no.
	failures []string
}

// The clients end between two requests: a pod whose creation is cancelled may be stored
// nevertheless, and be nobody's.
func (t *team) load(ctx context.Context) *load {
	ctx, cancel := context.WithCancel(ctx)
	whole := context.WithoutCancel(ctx)
	l := &load{}
	var running sync.WaitGroup
	for _, namespace := range t.namespaces {
		for range clients {
			running.Go(func() {
				var own []*corev1.Pod
				for ctx.Err() == nil {
					own = l.take(whole, t, namespace, own)
				}
				l.free(whole, own)
			})
		}
	}
	l.stop = func() { cancel(); running.Wait() }
	return l
}

// take creates one more pod, and returns those that the client has then.
func (l *load) take(ctx context.Context, t *team, namespace string, own []*corev1.Pod) []*corev1.Pod {
	pod := builders.Pod(namespace, "app").Generated().Obj()
	err := api.Create(ctx, pod)
	switch {
	case err == nil:
		l.admitted.Add(1)
		return append(own, pod)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "denied the request: exceeded quota: "+t.name):
		l.refused.Add(1)
		oldest := min(1, len(own))
		l.free(ctx, own[:oldest])
		<-time.After(rest)
		return own[oldest:]
	default:
		l.fail(err)
		return own
	}
}

func (l *load) free(ctx context.Context, own []*corev1.Pod) {
	for _, pod := range own {
		l.fail(api.Delete(ctx, pod))
	}
}

func (l *load) fail(err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, err.Error())
}

func (l *load) failed() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures
}

// goOn returns once the clients have been answered some times more, yes and no.
func (l *load) goOn(ctx context.Context) {
	GinkgoHelper()
	admitted, refused := l.admitted.Load(), l.refused.Load()
	Eventually(ctx, l.admitted.Load).Should(BeNumerically(">", admitted+20))
	Eventually(ctx, l.refused.Load).Should(BeNumerically(">", refused+20))
}

// String is for reports.
func (l *load) String() string {
	return fmt.Sprintf("%d admitted, %d refused, %d failed", l.admitted.Load(), l.refused.Load(), len(l.failed()))
}
