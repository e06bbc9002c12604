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

package main

import (
	"k8s.io/client-go/rest"

	"github.com/sharedquota/shared-quota-operator/internal/deadline"
)

// tuned returns how the API server is called.
func tuned(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server's priority and fairness decides
	// The API server would compress each event of a watch on its own, for more CPU
	// time than the event costs otherwise.
	config.DisableCompression = true
	config.Wrap(deadline.Within(deadline.Limit))
	return config
}
