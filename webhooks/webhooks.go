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

// Package webhooks lists all webhook endpoints.
package webhooks

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/webhooks/objects"
	"github.com/sharedquota/shared-quota-operator/webhooks/quotas"
)

// Paths returns where the endpoints are served.
func Paths() reach.Paths {
	return reach.Paths{Objects: objects.Path, Quotas: quotas.Path}
}

// Register adds all endpoints to the server, which stops when running ends.
func Register(
	running context.Context, server webhook.Server, scheme *runtime.Scheme, handler *objects.Handler, metrics *metrics.Metrics,
) {
	server.Register(objects.Path, objects.NewEndpoint(running, handler, metrics))
	server.Register(quotas.Path, admission.WithValidator(scheme, quotas.Validator{}))
}
