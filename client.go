// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"k8s.io/client-go/rest"

	"github.com/sharedquota/shared-quota-operator/internal/contact"
)

// tuned returns how the API server is called.
func tuned(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server's priority and fairness decides
	// The API server would compress each event of a watch on its own, for more CPU
	// time than the event costs otherwise.
	config.DisableCompression = true
	config.Wrap(contact.Within(contact.RequestLimit))
	return config
}
