// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/faults/load"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// clients create and delete pods in each namespace of a team at the same time.
	clients = 4
	// rest is what a client takes between two calls at most.
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
		suite.Create(ctx, api, builders.Namespace(namespace).Label("team", name).Obj())
	}
	t.limit(ctx, pods)
	return t
}

// limit makes the quota, and returns once it is enforced.
func (t *team) limit(ctx context.Context, pods string) {
	GinkgoHelper()
	suite.Create(ctx, api, builders.Quota(t.name).Label("team", t.name).Hard("pods", pods).Obj())
	suite.WaitUntilEnforced(ctx, api, t.name)
}

func (t *team) create(ctx context.Context, name string) error {
	return api.Create(ctx, builders.Pod(t.namespaces[0], name).Obj())
}

// beFull matches the refusal of a pod where so many of so many are used.
func (t *team) beFull(used, limited string) gomegatypes.GomegaMatcher {
	return suite.BeExceededAt(t.name, "pods", used, limited)
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
	return len(decoded(t.ledger(ctx)).Reservations)
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

// isCounted reports whether nothing is reserved for a pod that was admitted, because the leader has counted it. While a
// replica holds escrow, the ledger may lack what it has granted.
func (t *team) isCounted(ctx context.Context, pod client.ObjectKey) bool {
	stored := &quotav1.QuotaLedger{}
	if err := api.Get(ctx, client.ObjectKey{Name: t.name}, stored); err != nil {
		return false
	}
	state := decoded(stored)
	for _, reservation := range state.Reservations {
		if (client.ObjectKey{Namespace: reservation.Namespace, Name: reservation.Name}) == pod {
			return false
		}
	}
	return len(state.Escrows) == 0
}

// decoded is what a ledger holds. In encoding 3, names come before namespaces.
func decoded(stored *quotav1.QuotaLedger) ledger.State {
	GinkgoHelper()
	texts := slices.Clone(stored.Entries.Reservations)
	if stored.Entries.Encoding == 3 {
		for i, text := range texts {
			part := strings.Split(text, " ")
			part[4], part[5] = part[5], part[4]
			texts[i] = strings.Join(part, " ")
		}
	}
	state, undecoded := ledgerstore.Decode(2, texts)
	Expect(undecoded).To(BeEmpty())
	return state
}

// load sets clients to work in each namespace. They delete only what is counted: between two leaders nobody counts, and what comes
// and goes then stays reserved for the life of a reservation, which is longer than the suite. A few rollouts would fill the
// limit so.
func (t *team) load(ctx context.Context) *load.Load {
	var namespaces []string
	for range clients {
		namespaces = append(namespaces, t.namespaces...)
	}
	return load.Start(ctx, api, load.Plan{Pods: namespaces, Rest: rest, Deletes: t.isCounted})
}

// goOn returns once the clients have been answered some times more, yes and no.
func goOn(ctx context.Context, tally *load.Tally) {
	GinkgoHelper()
	for _, outcome := range []load.Outcome{load.Succeeded, load.Exceeded} {
		before := tally.Count(outcome)
		Eventually(ctx, func() int { return tally.Count(outcome) }).Should(BeNumerically(">", before+20), string(outcome))
	}
}

// failed returns the answers that are neither yes nor the quota's no.
func failed(tally *load.Tally) []string {
	bad, _ := tally.Verdict(&load.Disruptions{})
	return bad
}
