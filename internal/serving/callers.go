/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package serving

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/internal/resourceversion"
)

const (
	// outlived is how long a token is accepted after it has left the configuration: until
	// each API server has loaded the next one.
	outlived = time.Minute
	// liveEvery is how often at most the configuration is read for a token that isn't known,
	// and liveTimeout bounds the read.
	liveEvery, liveTimeout = time.Second, 4 * time.Second
	// acceptWait is how long at most a request waits for such a read.
	acceptWait = 8 * time.Second
)

var errNoLook = errors.New("the webhook configuration has not been read yet")

// Callers tells API servers from whoever else reaches the port of the webhooks, by the
// token in the path that they call. The zero value accepts nobody; its methods may be
// called concurrently.
//
// What counts is the webhook configuration, from which the API servers have the token. If
// a watch has not shown the newest one yet, it is read live before a caller is refused.
type Callers struct {
	clock clock.Clock
	live  client.Reader

	// mu guards what follows.
	mu sync.RWMutex
	// token -> until when it is accepted; zero while the configuration has it
	accepted map[reach.Token]time.Time
	// version is the resourceVersion of the newest configuration that was taken.
	version uint64
	// next is the live read that has not begun, for all who wait for it; nil for none.
	// looked is when the last one began.
	next   *look
	looked time.Time
}

// look is one live read of the configuration.
type look struct {
	// done is closed when it has ended, and err is set before that.
	done chan struct{}
	err  error
}

// NewCallers makes Callers that accept nobody before they Follow the configuration.
func NewCallers(clock clock.Clock) *Callers {
	return &Callers{clock: clock, accepted: map[reach.Token]time.Time{}}
}

// Follow has the configuration watched, and read live where that is needed.
func (c *Callers) Follow(ctx context.Context, caches cache.Cache, live client.Reader) error {
	c.live = live
	informer, err := caches.GetInformer(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("following the webhook configuration: %w", err)
	}
	configuration := func(shown any) (is *admissionregistrationv1.ValidatingWebhookConfiguration, ours bool) {
		if gone, ok := shown.(toolscache.DeletedFinalStateUnknown); ok {
			shown = gone.Obj
		}
		is, ours = shown.(*admissionregistrationv1.ValidatingWebhookConfiguration)
		return is, ours && is.Name == reach.ConfigurationName
	}
	shows := func(shown any) {
		if is, ours := configuration(shown); ours {
			c.take(resourceversion.Parse(is.ResourceVersion), reach.Tokens(is))
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: shows, UpdateFunc: func(_, shown any) { shows(shown) },
		DeleteFunc: func(shown any) {
			if is, ours := configuration(shown); ours {
				c.take(resourceversion.Parse(is.ResourceVersion), nil)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("following the webhook configuration: %w", err)
	}
	return nil
}

// take accepts the tokens that the configuration has at a resourceVersion, and for a while
// those that it had before. What is older than was taken already says nothing new: a watch
// may show it after a live read.
func (c *Callers) take(version uint64, tokens []reach.Token) {
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
			c.accepted[token] = now.Add(outlived)
		case now.After(until):
			delete(c.accepted, token)
		}
	}
	for _, token := range tokens {
		c.accepted[token] = time.Time{}
	}
}

// accept tells whether an API server calls by the token. If that isn't known, because the
// configuration can't be read for so long, it is an error.
func (c *Callers) accept(ctx context.Context, token reach.Token) (bool, error) {
	if c.knows(token) {
		return true, nil
	}
	timeout := c.clock.After(acceptWait)
	var err error
	for {
		look := c.look(ctx)
		select {
		case <-look.done:
			if err = look.err; c.knows(token) || err == nil {
				return c.knows(token), nil
			}
		case <-timeout:
			return false, fmt.Errorf("finding out who calls: %w", cmp.Or(err, errNoLook))
		case <-ctx.Done():
			return false, fmt.Errorf("finding out who calls: %w", context.Cause(ctx))
		}
	}
}

// knows compares with all tokens, and takes as long whichever it is.
func (c *Callers) knows(token reach.Token) bool {
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

// look returns a live read that begins after the call. Callers share it, so that it costs
// no more however many don't know the token.
func (c *Callers) look(ctx context.Context) *look {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = &look{done: make(chan struct{})}
		go c.lookAt(context.WithoutCancel(ctx), c.next, c.looked.Add(liveEvery).Sub(c.clock.Now()))
	}
	return c.next
}

func (c *Callers) lookAt(ctx context.Context, look *look, wait time.Duration) {
	defer close(look.done)
	if wait > 0 {
		<-c.clock.After(wait)
	}
	c.mu.Lock()
	c.next, c.looked = nil, c.clock.Now()
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	look.err = c.read(ctx)
}

func (c *Callers) read(ctx context.Context) error {
	if c.live == nil {
		return errNoLook
	}
	list := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	if err := c.live.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: reach.ConfigurationName}); err != nil {
		return fmt.Errorf("reading the webhook configuration: %w", err)
	}
	var tokens []reach.Token
	for i := range list.Items {
		tokens = append(tokens, reach.Tokens(&list.Items[i])...)
	}
	c.take(resourceversion.Parse(list.ResourceVersion), tokens)
	return nil
}
