// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

const (
	// liveEvery is how often at most the configuration is read for a token that isn't known.
	liveEvery = time.Second
	// acceptWait is how long at most a request waits for such a read.
	acceptWait = 8 * time.Second
)

var errNoLook = errors.New("the webhook configuration has not been read yet")

// Callers distinguishes API servers from other clients of the webhooks' port, by the token in the path that they call.
// They are made by NewCallers. Their methods may be called concurrently.
//
// The webhook configuration decides, because the API servers have the token from it. If a watch has not shown the
// newest one yet, it is read live before a caller is refused.
type Callers struct {
	clock clock.Clock
	// live is set by Follow, before requests are served; nil before that.
	live client.Reader
	// looks are live reads of the configuration.
	looks *apiserver.Reads[struct{}]

	// mu guards the fields below.
	mu sync.RWMutex
	// token -> until when it is accepted; zero while the configuration has it
	accepted map[webhookconfig.Token]time.Time
	// version is the resourceVersion of the newest configuration that was taken.
	version uint64
}

// NewCallers makes Callers that accept no one before they Follow the
// configuration.
func NewCallers(clock clock.Clock) *Callers {
	c := &Callers{clock: clock, accepted: map[webhookconfig.Token]time.Time{}}
	c.looks = apiserver.NewReads("the webhook configuration", c.read).Apart(clock, liveEvery)
	return c
}

// Follow has the configuration watched, and read live where that is needed.
func (c *Callers) Follow(ctx context.Context, caches cache.Cache, live client.Reader) error {
	c.live = live
	informer, err := caches.GetInformer(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("following the webhook configuration: %w", err)
	}
	configuration := func(shown any) (current *admissionregistrationv1.ValidatingWebhookConfiguration, ours bool) {
		if gone, ok := shown.(toolscache.DeletedFinalStateUnknown); ok {
			shown = gone.Obj
		}
		current, ours = shown.(*admissionregistrationv1.ValidatingWebhookConfiguration)
		return current, ours && current.Name == webhookconfig.ConfigurationName
	}
	shows := func(shown any) {
		if current, ours := configuration(shown); ours {
			c.take(ledger.ParseVersion(current.ResourceVersion), webhookconfig.Tokens(current), webhookconfig.Retired(current))
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: shows, UpdateFunc: func(_, shown any) { shows(shown) },
		DeleteFunc: func(shown any) {
			if current, ours := configuration(shown); ours {
				c.take(ledger.ParseVersion(current.ResourceVersion), nil, nil)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("following the webhook configuration: %w", err)
	}
	return nil
}

// take accepts the tokens that the configuration has at a resourceVersion, and for a while the tokens that it had
// before, also before this replica looked. A version older than the last one taken is skipped: a watch may show it
// after a live read.
func (c *Callers) take(version uint64, tokens []webhookconfig.Token, retired map[webhookconfig.Token]time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version < c.version {
		return
	}
	c.version = version
	now := c.clock.Now()
	for token, until := range c.accepted {
		switch {
		case until.IsZero():
			c.accepted[token] = now.Add(webhookconfig.TokenOutlives)
		case now.After(until):
			delete(c.accepted, token)
		}
	}
	for token, until := range retired {
		if _, found := c.accepted[token]; !found && now.Before(until) {
			c.accepted[token] = now.Add(min(until.Sub(now), webhookconfig.TokenOutlives)) // the leader's clock may be ahead
		}
	}
	for _, token := range tokens {
		c.accepted[token] = time.Time{}
	}
}

// accept reports whether an API server calls by the token. It returns an error if the
// configuration can't be read within acceptWait.
func (c *Callers) accept(ctx context.Context, token webhookconfig.Token) (bool, error) {
	if c.knows(token) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, acceptWait)
	defer cancel()
	var failure error
	for {
		_, err := c.looks.Get(ctx, webhookconfig.ConfigurationName)
		switch {
		case err == nil, c.knows(token):
			return c.knows(token), nil
		case ctx.Err() != nil:
			return false, fmt.Errorf("finding out who calls: %w", cmp.Or(failure, err))
		}
		failure = err
	}
}

// knows compares with all tokens, and takes as long whichever it is.
func (c *Callers) knows(token webhookconfig.Token) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	now, known := c.clock.Now(), 0
	for accepted, until := range c.accepted {
		if until.IsZero() || now.Before(until) {
			known |= subtle.ConstantTimeCompare([]byte(accepted), []byte(token))
		}
	}
	return known == 1
}

// read takes the configuration that the API server has now.
func (c *Callers) read(ctx context.Context, name string) (struct{}, error) {
	if c.live == nil {
		return struct{}{}, errNoLook
	}
	list := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	if err := c.live.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: name}); err != nil {
		return struct{}{}, fmt.Errorf("reading the webhook configuration: %w", err)
	}
	var tokens []webhookconfig.Token
	retired := map[webhookconfig.Token]time.Time{}
	for i := range list.Items {
		tokens = append(tokens, webhookconfig.Tokens(&list.Items[i])...)
		maps.Copy(retired, webhookconfig.Retired(&list.Items[i]))
	}
	c.take(ledger.ParseVersion(list.ResourceVersion), tokens, retired)
	return struct{}{}, nil
}
