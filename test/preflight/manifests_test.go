// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"
)

const container = `{containers: [{name: main, image: web, resources: {requests: {cpu: 100m}}}]}`

// template is of a pod of 100m.
const template = `{metadata: {labels: {app: web}}, spec: ` + container + `}`

func deployment(replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template: %s
`, replicas, template)
}

func ofKind(apiVersion, kind, spec string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: web}\nspec: {%s}\n", apiVersion, kind, spec)
}

func statefulSet(replicas int) string {
	return ofKind("apps/v1", "StatefulSet", fmt.Sprintf(
		"replicas: %d, podManagementPolicy: Parallel, selector: {matchLabels: {app: web}}, template: %s", replicas, template))
}

func replicaSet(replicas int) string {
	return ofKind("apps/v1", "ReplicaSet", fmt.Sprintf("replicas: %d, selector: {matchLabels: {app: web}}, template: %s", replicas, template))
}

func replicationController(replicas int) string {
	return ofKind("v1", "ReplicationController", fmt.Sprintf("replicas: %d, selector: {app: web}, template: %s", replicas, template))
}

func daemonSet() string {
	return ofKind("apps/v1", "DaemonSet", "selector: {matchLabels: {app: web}}, template: "+template)
}

func job(parallelism int) string {
	return ofKind("batch/v1", "Job", fmt.Sprintf("parallelism: %d, template: %s", parallelism, once))
}

func cronJob(parallelism int) string {
	return ofKind("batch/v1", "CronJob", fmt.Sprintf(
		`schedule: "0 0 1 1 *", jobTemplate: {spec: {parallelism: %d, template: %s}}`, parallelism, once))
}

func autoscaler(most int) string {
	return ofKind("autoscaling/v2", "HorizontalPodAutoscaler",
		fmt.Sprintf("maxReplicas: %d, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}", most))
}

const once = `{spec: {restartPolicy: Never, containers: [{name: main, image: web, resources: {requests: {cpu: 100m}}}]}}`

// another is a manifest with another image.
func another(manifest string) string {
	return strings.ReplaceAll(manifest, "image: web", "image: web:2")
}
