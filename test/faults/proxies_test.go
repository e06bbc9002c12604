// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"time"

	"github.com/sharedquota/shared-quota-operator/test/faults/load"
	"github.com/sharedquota/shared-quota-operator/test/faults/proxy"
)

// proxies are those of all replicas.
func (d *deployment) proxies() []*proxy.Proxy {
	var all []*proxy.Proxy
	for _, place := range d.places {
		all = append(all, place.proxy)
	}
	return all
}

// writes tells how often each replica has tried to write a ledger.
func (d *deployment) writes() map[string]int {
	by := map[string]int{}
	for _, place := range d.places {
		by[place.name] = place.proxy.Writes()
	}
	return by
}

// injected adds up the faults of all proxies.
func (d *deployment) injected() map[proxy.Fault]int {
	sum := map[proxy.Fault]int{}
	for _, one := range d.proxies() {
		for fault, count := range one.Counts() {
			sum[fault] += count
		}
	}
	return sum
}

// endLate ends the disruption by writes that come too late.
var endLate = func() {}

// inject replaces the rates of all proxies.
func inject(rates proxy.Rates) {
	end := endLate
	endLate = func() {}
	if rates[proxy.Late] > 0 {
		// A replica gives a write two seconds, and a request ten: some meet nothing else.
		endLate = disruptions.Begin("writes that come too late", load.Undecided)
	}
	for _, one := range replicas.proxies() {
		one.Inject(rates)
	}
	end()
}

// setLag makes the watches of all replicas late.
func setLag(lag time.Duration) {
	for _, one := range replicas.proxies() {
		one.SetLag(lag)
	}
}
