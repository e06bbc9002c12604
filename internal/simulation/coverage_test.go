// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// verifiedFor is how long a live read of a namespace serves.
const verifiedFor = 5 * time.Second

// coverage is what one replica's front end knows of quotas and namespaces: by watches,
// and by live reads, which may be ahead of them.
type coverage struct {
	quotas             [maxQuotas]*quota
	seenQuotas, listed uint64
	shown              [maxNamespaces]*namespace
	seen               uint64
	looks              [maxNamespaces]*look
}

// look is what live reads have found of a namespace.
type look struct {
	namespace *namespace
	// upTo is a revision that some read of it began after.
	upTo  uint64
	began time.Time
	// settled are the questions that this version was looked at for.
	settled []question
}

// known is what is known of one namespace.
type known struct {
	namespace *namespace
	seen      uint64
	began     time.Time
	settled   bool
}

func (c *coverage) showQuota(q int, next *quota, revision uint64) {
	switch {
	case next == nil:
		c.removeQuota(q, revision)
	case revision >= c.listed:
		c.putQuota(next)
	}
	c.seenQuotas = max(c.seenQuotas, revision)
}

func (c *coverage) putQuota(next *quota) {
	if known := c.quotas[next.quota]; known == nil || known.revision <= next.revision {
		c.quotas[next.quota] = next
	}
}

func (c *coverage) removeQuota(q int, revision uint64) {
	if known := c.quotas[q]; known != nil && known.revision <= revision {
		c.quotas[q] = nil
	}
}

// mergeQuotas takes a live list.
func (c *coverage) mergeQuotas(list []*quota, revision uint64) {
	for q, listed := range list {
		if listed == nil {
			c.removeQuota(q, revision)
			continue
		}
		c.putQuota(listed)
	}
	c.listed, c.seenQuotas = max(c.listed, revision), max(c.seenQuotas, revision)
}

func (c *coverage) showNamespace(n int, next *namespace, revision uint64) {
	if next == nil {
		if known := c.shown[n]; known != nil && known.revision <= revision {
			c.shown[n] = nil
		}
	} else if known := c.shown[n]; known == nil || known.revision < next.revision {
		c.shown[n] = next
	}
	if found := c.looks[n]; found != nil && (found.namespace.revision < revision || next == nil && found.namespace.revision <= revision) {
		c.looks[n] = nil
	}
	c.seen = max(c.seen, revision)
}

// mergeNamespace takes a namespace that was read live.
func (c *coverage) mergeNamespace(found *namespace, began time.Time, after uint64) {
	if shown := c.shown[found.namespace]; shown != nil && shown.revision > found.revision {
		return
	}
	known := c.looks[found.namespace]
	switch {
	case known == nil:
		known = &look{namespace: found}
		c.looks[found.namespace] = known
	case known.namespace.revision < found.revision:
		known.namespace, known.settled = found, nil
	}
	known.upTo = max(known.upTo, after, found.revision)
	if began.After(known.began) {
		known.began = began
	}
}

func (c *coverage) settle(n int, revision uint64, asked question) {
	if found := c.looks[n]; found != nil && found.namespace.revision == revision && !slices.Contains(found.settled, asked) {
		found.settled = append(found.settled, asked)
	}
}

func (c *coverage) state(n int, asked question) known {
	state := known{namespace: c.shown[n], seen: c.seen}
	if found := c.looks[n]; found != nil {
		state.namespace, state.seen, state.began = found.namespace, max(c.seen, found.upTo), found.began
		state.settled = slices.Contains(found.settled, asked)
	}
	return state
}

// covering returns the quotas that are known to cover a version of a namespace.
func (c *coverage) covering(of *namespace) []*quota {
	var covering []*quota
	for q, known := range c.quotas {
		if known != nil && of != nil && of.labels>>q&1 == 1 {
			covering = append(covering, known)
		}
	}
	return covering
}

// agrees reports whether these quotas are those that the entry was generated for.
func agrees(covering []*quota, asked question) bool {
	var uids [maxQuotas]types.UID
	for _, known := range covering {
		uids[known.quota] = known.uid
	}
	return uids == asked.quotas
}

func (k known) isVerified(now time.Time) bool {
	return k.namespace != nil && !k.began.IsZero() && now.Sub(k.began) < verifiedFor
}

// isSettled reports whether the question's entry agrees with what is known. If it doesn't,
// the namespace is read for each request: that an earlier read found why is no reason to
// believe that it still is so. (To believe it for verifiedFor is a mutation.)
func (c *coverage) isSettled(k known, asked question, now time.Time, trusting bool) bool {
	return agrees(c.covering(k.namespace), asked) || trusting && k.settled && k.isVerified(now)
}
