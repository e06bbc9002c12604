// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// +kubebuilder:rbac:groups=quota.sharedquota.dev,resources=quotaledgers,verbs=create

// probeTimeout bounds a probe. It is longer than the API server waits for the
// operator's answer, so that the error comes from the API server.
const probeTimeout = webhookconfig.ProbeTimeout + time.Second

// callFailed is in the API server's error if it can't call a webhook. It says the
// URL, too.
const callFailed = "failed calling webhook"

// errUnasked: the entry for probes made no call.
var errUnasked = errors.New("the API server did not call the operator")

// Prober finds out which edition of the configuration the API server has loaded, in
// the way that requests take: it creates a QuotaLedger as a dry run, which the API
// server asks the operator about. It runs on the leader.
type Prober struct {
	ProberParts

	client  client.Client
	woken   chan struct{}
	cadence cadence
	// exposing: a call of the webhook has failed since the last probe that succeeded.
	exposing bool
}

// ProberParts are the dependencies of a Prober.
type ProberParts struct {
	Clock    clock.Clock
	Proofs   *webhookconfig.Proofs
	Outcomes outcomes.Observer
	// Changed is called with the quotas of which something else is known, and Recovered
	// when a probe succeeds after the API server could not call the webhook.
	Changed   func(quotas []string)
	Recovered func()
}

var _ manager.LeaderElectionRunnable = &Prober{}

// NewProber makes the Prober, with a client that hands warnings to it.
func NewProber(mgr ctrl.Manager, parts ProberParts) (*Prober, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.WarningHandlerWithContext = collector{}
	probing, err := client.New(config, client.Options{
		Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("making the client of probes: %w", err)
	}
	return newProber(probing, parts), nil
}

func newProber(client client.Client, parts ProberParts) *Prober {
	return &Prober{ProberParts: parts, client: client, woken: make(chan struct{}, 1)}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Prober) NeedLeaderElection() bool { return true }

// Wake makes the Prober look at the unproved quotas now. It never blocks.
func (p *Prober) Wake() {
	select {
	case p.woken <- struct{}{}:
	default: // it looks already
	}
}

// Start probes until the context ends.
func (p *Prober) Start(ctx context.Context) error {
	timer := p.Clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.woken:
		case <-timer.C():
		}
		timer.Reset(p.step(ctx))
	}
}

// step probes if it is time to, and returns how long to wait for the next.
func (p *Prober) step(ctx context.Context) time.Duration {
	wanted, some := p.Proofs.Wanted()
	if !some {
		return probeEvery
	}
	if wait := p.cadence.wait(wanted, p.Clock.Now()); wait > 0 {
		return wait
	}
	began := p.Clock.Now()
	edition, err := p.probe(ctx)
	now := p.Clock.Now()
	if ctx.Err() != nil {
		return 0
	}
	outcome, changed := p.conclude(edition, err, now)
	p.Outcomes.Probed(outcome, now.Sub(began))
	p.cadence.ended(outcome == outcomes.ProbeProved, now)
	p.Changed(changed)
	if p.exposing && err == nil {
		p.Recovered()
	}
	p.exposing = err != nil && (p.exposing || strings.Contains(err.Error(), callFailed))
	return p.cadence.wait(wanted, now)
}

// conclude tells the proofs how a probe ended.
func (p *Prober) conclude(edition webhookconfig.Edition, err error, now time.Time) (outcome outcomes.Probe, changed []string) {
	if err != nil {
		return outcomes.ProbeFailed, p.Proofs.Failed(webhookconfig.WithoutTokens(err.Error()), now)
	}
	current, changed := p.Proofs.Answered(edition, now)
	if !current {
		return outcomes.ProbeOutdated, changed
	}
	return outcomes.ProbeProved, changed
}

// probe returns the edition by which the API server asks.
func (p *Prober) probe(ctx context.Context) (webhookconfig.Edition, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	heard := &warnings{}
	asked := &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "probe-", Labels: map[string]string{webhookconfig.ProbeLabel: "true"},
	}}
	if err := p.client.Create(context.WithValue(ctx, warningsKey{}, heard), asked, client.DryRunAll); err != nil {
		return webhookconfig.Edition{}, fmt.Errorf("creating a QuotaLedger as a dry run: %w", err)
	}
	return heard.edition()
}

type warningsKey struct{}

// warnings are those of one request.
type warnings struct {
	// mu guards texts.
	mu    sync.Mutex
	texts []string
}

func (w *warnings) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// edition returns the edition in a warning.
func (w *warnings) edition() (webhookconfig.Edition, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.texts {
		if edition, found := webhookconfig.EditionOf(text); found {
			return edition, nil
		}
	}
	return webhookconfig.Edition{}, errUnasked
}

// collector hands the warnings in an answer to the request that it answers.
type collector struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (collector) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	const warning = 299
	if heard, found := ctx.Value(warningsKey{}).(*warnings); found && code == warning {
		heard.add(text)
	}
}

const (
	// probeEvery is how long a proof is left alone.
	probeEvery = 10 * time.Second
	// A configuration is loaded within milliseconds: a new edition is asked for in quick
	// succession at first, and then less and less often.
	quickProbes             = 10
	probeSoon, probeAtLeast = 20 * time.Millisecond, time.Second
)

// cadence says when to probe. The zero cadence says now.
type cadence struct {
	edition webhookconfig.Edition
	// tries is how many probes in a row have not proved the edition.
	tries int
	due   time.Time
}

// wait returns how long to wait until the edition must be probed.
func (c *cadence) wait(edition webhookconfig.Edition, now time.Time) time.Duration {
	if edition != c.edition {
		c.edition, c.tries, c.due = edition, 0, now
	}
	return max(0, c.due.Sub(now))
}

// ended takes how a probe ended.
func (c *cadence) ended(proved bool, now time.Time) {
	if proved {
		c.tries, c.due = 0, now.Add(probeEvery)
		return
	}
	c.tries++
	pause := probeSoon
	for range c.tries - quickProbes {
		pause = min(2*pause, probeAtLeast)
	}
	c.due = now.Add(pause)
}
