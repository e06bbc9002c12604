// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// callersToken is what every path that the API server calls begins with. It repeats what
// the operator's own expression says, because a test must not believe that.
var callersToken = regexp.MustCompile(`/([0-9a-f]{32})/`)

// WithoutCallersToken returns a path or URL with a word in place of the token.
func WithoutCallersToken(called string) string {
	return callersToken.ReplaceAllString(called, "/TOKEN/")
}

// CallersToken returns the token by which the webhook configuration has the API server
// call.
func CallersToken(ctx context.Context, api client.Reader) string {
	GinkgoHelper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Expect(api.Get(ctx, client.ObjectKey{Name: "shared-quota"}, configuration)).To(Succeed())
	tokens := map[string]bool{}
	for _, webhook := range configuration.Webhooks {
		called := ptr.Deref(webhook.ClientConfig.URL, "")
		if webhook.ClientConfig.Service != nil {
			called = ptr.Deref(webhook.ClientConfig.Service.Path, "")
		}
		found := callersToken.FindStringSubmatch(called)
		Expect(found).To(HaveLen(2), "%s is called at %s", webhook.Name, called)
		tokens[found[1]] = true
	}
	Expect(tokens).To(HaveLen(1))
	for token := range tokens {
		return token
	}
	return ""
}

// ReplaceCallersToken has the leader replace the token, in the way that docs/security.md
// tells administrators.
func ReplaceCallersToken(ctx context.Context, api client.Client) {
	GinkgoHelper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	configuration.Name = "shared-quota"
	forget := []byte(`{"metadata":{"annotations":{"quota.sharedquota.dev/token-since":null}}}`)
	Expect(api.Patch(ctx, configuration, client.RawPatch(types.MergePatchType, forget))).To(Succeed())
}
