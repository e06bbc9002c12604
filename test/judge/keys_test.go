// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPlaces(t *testing.T) {
	core := func(resource, namespace, name string) *place {
		return &place{resource: schema.GroupResource{Resource: resource}, namespace: namespace, name: name}
	}
	for key, want := range map[string]*place{
		"/registry/pods/a/x":                               core("pods", "a", "x"),
		"/registry/services/specs/a/x":                     core("services", "a", "x"),
		"/registry/services/endpoints/a/x":                 core("endpoints", "a", "x"),
		"/registry/controllers/a/x":                        core("replicationcontrollers", "a", "x"),
		"/registry/namespaces/a":                           core("namespaces", "", "a"),
		"/registry/deployments/a/x":                        {schema.GroupResource{Group: "apps", Resource: "deployments"}, "a", "x"},
		"/registry/ingress/a/x":                            {schema.GroupResource{Group: "networking.k8s.io", Resource: "ingresses"}, "a", "x"},
		"/registry/deviceclasses/gpu":                      {deviceClasses, "", "gpu"},
		"/registry/example.com/widgets/a/x":                {schema.GroupResource{Group: "example.com", Resource: "widgets"}, "a", "x"},
		"/registry/example.com/gadgets/x":                  nil,
		"/registry/roles/a/system:node:x":                  {schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}, "a", "system:node:x"},
		"/registry/clusterroles/x":                         nil,
		"/registry/leases/kube-system/x":                   nil,
		"/registry/masterleases/127.0.0.1":                 nil,
		"/registry/events/a/x.17":                          nil,
		"/registry/minions/node":                           nil,
		"/registry/ranges/serviceips":                      nil,
		"/registry/services/a":                             nil,
		"/registry/services/specs":                         nil,
		"/registry/pods":                                   nil,
		"/registry/health":                                 nil,
		"/registry/apiregistration.k8s.io/apiservices/v1.": nil,
		"/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com": nil,
		"/registry/quota.sharedquota.dev/clusterresourcequotas/team":                   {quotas, "", "team"},
		"/registry/quota.sharedquota.dev/quotaledgers/team":                            nil,
		"/registry/quota.sharedquota.dev/localresourcequotas/a/team": {
			schema.GroupResource{Group: "quota.sharedquota.dev", Resource: "localresourcequotas"}, "a", "team",
		},
	} {
		t.Run(key, func(t *testing.T) {
			var got *place
			if at, followed := (layout{builtIns: builtIns()}).place(key); followed {
				got = &at
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(place{})); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
