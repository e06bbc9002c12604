// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/sharedquota/shared-quota-operator/controllers/exchange"
	"github.com/sharedquota/shared-quota-operator/controllers/status"
)

// remember has the replicas tell each other what quotas have seen. All know all of it, so that it stays when the leader
// changes. What a replica hasn't published when it is killed is lost: the requests that it refused in the last ten
// seconds. Peaks are not, because each replica follows the ledgers.
func (p *parts) remember() error {
	configMaps, err := p.ownConfigMaps()
	if err != nil {
		return err
	}
	told := exchange.New(exchange.Parts{
		Topic: exchange.Topic{
			About: "what quotas have seen", Label: "quota.sharedquota.dev/history", Prefix: "shared-quota-history-", Key: "history",
		},
		Clock: p.clock, ConfigMaps: configMaps, Content: p.options.History, Process: p.options.Process, Elected: p.mgr.Elected(),
	})
	p.options.History.OnChange(func(quotas []string) {
		p.statuses.FireWithin(quotas, lookWithin)
		p.views.FireWithin(quotas, lookWithin)
	})
	p.history = status.History{Recorder: p.options.History, Synced: told.Synced}
	return addRunnables(p.mgr, told)
}
