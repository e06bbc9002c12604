// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func TestProblemsWordForWord(t *testing.T) {
	gadgets, failure := schema.GroupResource{Group: "example.com", Resource: "gadgets"}, errors.New("it is down")
	forbidden := apierrors.NewForbidden(gadgets, "", errors.New("no role lets you"))
	const tries = "the operator tries again, and in the mode Deny, what isn't counted yet is refused meanwhile: "
	for name, test := range map[string]struct {
		got             Problem
		reason, message string
	}{
		"outside of namespaces": {
			got: *clusterScoped(gadgets), reason: quotav1.ReasonNotLimitable,
			message: "a quota over namespaces can't limit objects outside of them: gadgets.example.com; remove this from spec.quota.hard",
		},
		"not served": {
			got: *notServed(gadgets), reason: quotav1.ReasonNotServed,
			message: "the cluster doesn't serve gadgets.example.com; counting begins once it does: " +
				"install what defines this, or remove it from spec.quota.hard",
		},
		"not known": {
			got: *unknown(gadgets, failure), reason: quotav1.ReasonNotWatchable,
			message: "gadgets.example.com can't be looked up; " + tries +
				"see what the API server says: it is down",
		},
		"not watched": {
			got: *notWatchable(gadgets, failure), reason: quotav1.ReasonNotWatchable,
			message: "gadgets.example.com can't be listed or watched; " + tries +
				"see what the API server says: it is down",
		},
		"not to be read": {
			got: *notWatchable(gadgets, forbidden), reason: quotav1.ReasonNotWatchable,
			message: "gadgets.example.com can't be listed or watched; " + tries +
				"give the operator the right to list and watch it, such as by config/rbac/reader_all_role.yaml, " +
				"or remove it from spec.quota.hard; the API server says: gadgets.example.com is forbidden: no role lets you",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.got.Resource != gadgets || test.got.Reason != test.reason || test.got.Message != test.message {
				t.Errorf("got  %+v\nwant %s: %s", test.got, test.reason, test.message)
			}
		})
	}
}
