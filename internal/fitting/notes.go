// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unreadTemplates names the first, however many there are.
func unreadTemplates(namespace string, names []string) string {
	if more := len(names) - 1; more > 0 {
		return fmt.Sprintf("ResourceClaimTemplate %s/%s and %d more can't be read: their claims are counted, the devices of these aren't.",
			namespace, names[0], more)
	}
	return fmt.Sprintf("ResourceClaimTemplate %s/%s can't be read: its claims are counted, their devices aren't.", namespace, names[0])
}

func pausedDeployment(namespace, name string) string {
	return fmt.Sprintf("Deployment %s/%s is paused: only scaling is counted; what is new waits until it is resumed.", namespace, name)
}

func suspended(kind, namespace, name string) string {
	return fmt.Sprintf("%s %s/%s is suspended: its pods aren't counted.", kind, namespace, name)
}

func managedElsewhere(kind, namespace, name string) string {
	return fmt.Sprintf("%s %s/%s is managed by another controller than Kubernetes' own: its pods aren't counted.", kind, namespace, name)
}

func oneRun(namespace, name string, alone bool) string {
	note := fmt.Sprintf("CronJob %s/%s: one run is counted, as if it began now", namespace, name)
	if alone {
		return note + "."
	}
	return note + "; its policy lets runs overlap, which takes more."
}

func autoscaler(object client.Object) string {
	name := object.GetNamespace() + "/" + object.GetName()
	note := fmt.Sprintf("HorizontalPodAutoscaler %s may ask for more pods than are counted here", name)
	if raw, ok := object.(*unstructured.Unstructured); ok {
		if most, found, err := unstructured.NestedInt64(raw.Object, "spec", "maxReplicas"); found && err == nil {
			return fmt.Sprintf("%s: up to %d.", note, most)
		}
	}
	return note + "."
}
