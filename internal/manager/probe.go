// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"net/http"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// probePath is where the endpoint is served; an edition follows after a slash.
const probePath = "/probe"

type probedPath struct{}

// newProbe serves probes over HTTP. It allows each, with the warning of the
// edition that is in its path. It repeats nothing else of the path.
func newProbe() http.Handler {
	return &admission.Webhook{
		WithContextFunc: func(ctx context.Context, request *http.Request) context.Context {
			return context.WithValue(ctx, probedPath{}, request.URL.Path)
		},
		Handler: admission.HandlerFunc(func(ctx context.Context, _ admission.Request) admission.Response {
			path, _ := ctx.Value(probedPath{}).(string)
			edition, err := webhookconfig.ParseEdition(strings.TrimPrefix(path, probePath+"/"))
			if err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
			return admission.Allowed("").WithWarnings(edition.Warning())
		}),
	}
}
