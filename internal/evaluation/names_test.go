// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestCorrection(t *testing.T) {
	var served []schema.GroupResource
	for _, resource := range []string{
		"pods", "services", "events", "secrets", "deployments.apps", "jobs.batch", "ingresses.networking.k8s.io", "jobs.batch.volcano.sh",
		"pods.metrics.k8s.io", "widgets.vendor.example", "routes.route.openshift.io",
	} {
		served = append(served, schema.ParseGroupResource(resource))
	}
	evaluators := New(clocktesting.NewFakeClock(time.Unix(0, 0)), ClaimSources{})
	for name, want := range map[corev1.ResourceName]string{
		// The group is missing, or another one.
		"count/jobs":                   "count/jobs.batch",
		"count/deployments":            "count/deployments.apps",
		"count/ingresses.extensions":   "count/ingresses.networking.k8s.io",
		"count/deployments.v1.apps":    "count/deployments.apps",
		"count/pods.core":              "count/pods",
		"vendor.example/widgets":       "count/widgets.vendor.example",
		"apps/deployments":             "count/deployments.apps",
		"count/deploymentconfigs.apps": "",
		"count/routes.route":           "count/routes.route.openshift.io",
		// Another group with a domain may be installed later.
		"count/jobs.batch.example.com":      "",
		"count/widgets.other.example":       "",
		"count/deployments.apps.example.io": "",
		// A letter is missing, or another one.
		"count/deployment.apps":  "count/deployments.apps",
		"count/Deployments.apps": "count/deployments.apps",
		"count/secret":           "count/secrets",
		"count/podz":             "count/pods",
		"count/gizmos":           "",
		"count/nodes":            "",
		// It isn't a count, or it is one.
		"count/services.loadbalancers": "services.loadbalancers",
		"count/requests.cpu":           "requests.cpu",
		"count/limits.memory":          "limits.memory",
		// An extended resource is limited by its requests.
		"vendor.example/gpu":        "requests.vendor.example/gpu",
		"limits.vendor.example/gpu": "requests.vendor.example/gpu",
		"kubernetes.io/batch-cpu":   "",
		// Of a class there are two names, and one.
		"block.storageclass.storage.k8s.io/requests.io":           "block.storageclass.storage.k8s.io/requests.storage",
		"block.storageclass.storage.k8s.io/storage":               "block.storageclass.storage.k8s.io/requests.storage",
		"block.storageclass.storage.k8s.io/persistentvolumeclaim": "block.storageclass.storage.k8s.io/persistentvolumeclaims",
		"fpga.deviceclass.resource.k8s.io/device":                 "fpga.deviceclass.resource.k8s.io/devices",
		// A scope is no name.
		"count/BestEffort":         "spec.quota.scopes: [BestEffort]",
		"kubernetes.io/BestEffort": "spec.quota.scopes: [BestEffort]",
		// Kubernetes keeps no quota on it, under any name.
		"count/events": "",
	} {
		if got := evaluators.Correction(name, served); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
