// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/faults/load"
	"github.com/sharedquota/shared-quota-operator/test/judge"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// modeLabel says to which quotas of a world's modes a namespace belongs.
	modeLabel = "mode"
	// modePods is how many pods each of these quotas allows: less than its clients want.
	modePods = 4
	// holdsFor is how long a mode holds before it is switched.
	holdsFor = 6 * time.Second
)

// kindOfMode is a part of a world by what becomes there of a request that doesn't fit. Each kind has its own namespaces,
// and so its own entries of the webhook configuration.
type kindOfMode string

const (
	// advised: nothing is ever refused.
	advised kindOfMode = "advised"
	// switched: the mode is Audit, then Deny, then Audit again.
	switched kindOfMode = "switched"
	// admitted: what doesn't fit is refused, unless nobody can decide.
	admitted kindOfMode = "admitted"
)

// modes are the quotas of a world that don't always refuse what doesn't fit, and their clients.
type modes struct {
	world      *world
	namespaces map[kindOfMode][]string
	clients    map[kindOfMode]*load.Load
	// strict ends the time in which the quota that is switched lets pass what nobody can decide.
	strict func()

	stopped  chan struct{}
	once     sync.Once
	running  sync.WaitGroup
	switches int
}

func (m *modes) warn() string     { return m.world.name + "-g-warn" }
func (m *modes) audit() string    { return m.world.name + "-h-audit" }
func (m *modes) switched() string { return m.world.name + "-i-switched" }
func (m *modes) admit() string    { return m.world.name + "-j-admit" }

// startModes adds the quotas and their namespaces to a world, and sets clients to work once all are enforced. It returns
// nil if this run doesn't make that move.
func startModes(ctx context.Context, w *world, purpose uint64) *modes {
	GinkgoHelper()
	if !moves(quotaModes) {
		return nil
	}
	m := &modes{
		world: w, stopped: make(chan struct{}), namespaces: map[kindOfMode][]string{}, clients: map[kindOfMode]*load.Load{},
	}
	for _, kind := range []kindOfMode{advised, switched, admitted} {
		for i := range 2 {
			name := fmt.Sprintf("%s-%s-%d", w.name, kind, i)
			Expect(api.Create(ctx, builders.Namespace(name).Label(modeLabel, m.label(kind)).Obj())).To(Succeed())
			m.namespaces[kind] = append(m.namespaces[kind], name)
		}
	}
	m.limit(ctx)
	for i, kind := range []kindOfMode{advised, switched, admitted} {
		plan := load.Plan{Pods: m.namespaces[kind], Resizes: w.resizes, Rest: 300 * time.Millisecond, Seed: seed()<<8 + purpose + uint64(i)}
		m.clients[kind] = load.Start(ctx, api, plan)
		evidence.hear(m.clients[kind].Tally)
	}
	m.running.Go(func() {
		defer GinkgoRecover()
		m.switchModes(ctx)
	})
	return m
}

func (m *modes) label(kind kindOfMode) string { return m.world.name + "-" + string(kind) }

func (m *modes) limit(ctx context.Context) {
	GinkgoHelper()
	const deny, warn, audit = quotav1.EnforcementDeny, quotav1.EnforcementWarn, quotav1.EnforcementAudit
	quota := func(name string, kind kindOfMode) *builders.QuotaBuilder {
		return builders.Quota(name).Label(modeLabel, m.label(kind)).Hard("pods", strconv.Itoa(modePods)).Hard("requests.cpu", "200m")
	}
	for _, one := range []*builders.QuotaBuilder{
		quota(m.warn(), advised).Enforcement(warn, "").Override("pods", audit),
		quota(m.audit(), advised).Enforcement(audit, ""),
		quota(m.switched(), switched).Enforcement(audit, "").Override("requests.cpu", warn),
		quota(m.admit(), admitted).Enforcement(deny, quotav1.UnavailableAdmit).Override("requests.cpu", audit),
	} {
		Expect(api.Create(ctx, one.Obj())).To(Succeed())
		m.world.more = append(m.world.more, one.Obj().Name)
	}
	for _, name := range []string{m.warn(), m.audit(), m.switched(), m.admit()} {
		suite.WaitUntilEnforced(ctx, api, name)
	}
	evidence.allow(m.admit())
	m.strict = evidence.allow(m.switched())
}

// switchModes sets a quota to Deny and back, until the clients are stopped. It is Deny at last.
func (m *modes) switchModes(ctx context.Context) {
	GinkgoHelper()
	for mode := quotav1.EnforcementDeny; ; {
		last := !m.rest(holdsFor)
		if mode == quotav1.EnforcementDeny || !last {
			m.set(ctx, mode)
		}
		if last {
			return
		}
		mode = map[quotav1.EnforcementMode]quotav1.EnforcementMode{
			quotav1.EnforcementDeny: quotav1.EnforcementAudit, quotav1.EnforcementAudit: quotav1.EnforcementDeny,
		}[mode]
	}
}

// set switches the mode. From the answer on, Deny binds, but for what nobody can decide before it is proved that the API
// server refuses that, too.
func (m *modes) set(ctx context.Context, mode quotav1.EnforcementMode) {
	GinkgoHelper()
	if mode == quotav1.EnforcementAudit {
		m.strict = evidence.allow(m.switched())
	}
	quota := builders.Quota(m.switched()).Obj()
	insist(ctx, func(ctx context.Context) error { return api.Get(ctx, client.ObjectKeyFromObject(quota), quota) })
	before := quota.ResourceVersion
	insist(ctx, func(ctx context.Context) error {
		return api.Patch(ctx, quota, client.RawPatch(mergePatch, fmt.Appendf(nil, `{"spec":{"enforcement":{"mode":%q}}}`, mode)))
	})
	evidence.edited(before, quota)
	m.switches++
	if mode == quotav1.EnforcementDeny {
		Eventually(ctx, func(ctx context.Context) (*quotav1.ClusterResourceQuota, error) {
			return quota, api.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		}).WithTimeout(3*suite.Deadline).Should(Satisfy(isEnforced), "quota %s", quota.Name)
		m.strict()
	}
}

func isEnforced(quota *quotav1.ClusterResourceQuota) bool {
	return quota.Status.ObservedGeneration == quota.Generation &&
		meta.IsStatusConditionTrue(quota.Status.Conditions, quotav1.ConditionEnforced)
}

// rest waits for so long; false once the clients are to stop.
func (m *modes) rest(duration time.Duration) bool {
	select {
	case <-m.stopped:
		return false
	case <-time.After(duration):
		return true
	}
}

// stop lets each client finish its call, and the last switch its proof.
func (m *modes) stop() {
	if m == nil {
		return
	}
	m.once.Do(func() { close(m.stopped) })
	m.running.Wait()
	for _, clients := range m.clients {
		clients.Stop()
	}
}

// wantServed fails if a client met what its quotas don't say, or if what they say was never put to the test.
func (m *modes) wantServed(report judge.Report) {
	GinkgoHelper()
	if m == nil {
		return
	}
	// Nobody's absence is felt if all quotas let such requests pass.
	absence := []load.Outcome{load.CallLost, load.Unanswered, load.Undecided, load.Interrupted}
	for kind, test := range map[kindOfMode]struct {
		never    []load.Outcome
		exceeded map[load.Exceeding]int
	}{
		advised:  {never: append([]load.Outcome{load.Exceeded, load.Withheld, load.Unknown}, absence...)},
		switched: {exceeded: map[load.Exceeding]int{{Quota: m.switched(), Resource: "pods"}: 1}},
		admitted: {never: absence, exceeded: map[load.Exceeding]int{{Quota: m.admit(), Resource: "pods"}: 1}},
	} {
		tally := m.clients[kind].Tally
		AddReportEntry("what clients met whose quotas are "+string(kind), tally.String())
		bad, _ := tally.Verdict(disruptions, 0)
		Expect(bad).To(BeEmpty(), "%d calls ended as they may not", len(bad))
		for _, outcome := range test.never {
			Expect(tally.Count(outcome)).To(BeZero(), "%s: %s\n%s", kind, outcome, tally)
		}
		exceeded := tally.Exceeded()
		for of := range exceeded {
			exceeded[of] = 1
		}
		Expect(maps.Equal(exceeded, test.exceeded)).To(BeTrue(), "%s: refused for %v, want %v", kind, exceeded, test.exceeded)
		Expect(tally.Count(load.Succeeded)).To(BeNumerically(">", 0), "clients that achieve nothing prove nothing")
	}
	Expect(m.switches).To(BeNumerically(">", 2), "how often the mode was switched")
	for _, name := range []string{m.warn(), m.audit(), m.switched()} {
		peak := report.Quotas[name].Peak["pods"]
		Expect(peak.Value()).To(BeNumerically(">", modePods), "quota %s was never above its limit", name)
	}
}
