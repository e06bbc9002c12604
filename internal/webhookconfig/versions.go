// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Versions remembers at which resourceVersion each quota's present spec was first
// seen, because a quota doesn't say so: its resourceVersion changes with its status,
// too. It forgets quotas that are gone.
type Versions struct {
	// quota -> its spec; nil before the first look
	specs map[types.UID]dated
}

type dated struct {
	generation int64
	version    uint64
}

// Date sets the Version of each quota, which has the resourceVersion of its object
// until then, to the one at which its present spec was first seen.
//
// The first look of a new leader takes over the epochs of the configuration in
// the cluster: an entry that was generated from the same specs has an Epoch at
// which its leader knew them all. So the configuration stays as it is.
func (v *Versions) Date(settings Settings, configuration *admissionregistrationv1.ValidatingWebhookConfiguration, quotas []Quota) {
	if v.specs == nil {
		settings.adopt(configuration, quotas)
	}
	specs := make(map[types.UID]dated, len(quotas))
	for i := range quotas {
		quota := &quotas[i]
		if known, found := v.specs[quota.UID]; found && known.generation == quota.Generation {
			quota.Version = known.version
		}
		specs[quota.UID] = dated{quota.Generation, quota.Version}
	}
	v.specs = specs
}

// adopt lowers the Version of each quota to the oldest Epoch of those entries in the
// configuration that were generated from its present spec.
//
// No entry's Epoch falls by that: no quota's Version becomes lower than it was when
// the entry was generated, and of those, the newest was the Epoch.
func (s Settings) adopt(configuration *admissionregistrationv1.ValidatingWebhookConfiguration, quotas []Quota) {
	asked := map[string]Question{} // namespace selector -> question
	for _, webhook := range configuration.Webhooks {
		if question, ours := s.isOurs(webhook); ours {
			asked[metav1.FormatLabelSelector(webhook.NamespaceSelector)] = question
		}
	}
	entries, _ := s.entries(quotas)
	for _, entry := range entries {
		question, found := asked[metav1.FormatLabelSelector(&entry.Selector)]
		if !found || question.Specs != entry.question.Specs {
			continue
		}
		for _, member := range entry.quotas {
			quotas[member].Version = min(quotas[member].Version, question.Epoch)
		}
	}
}
