// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

const (
	whyShort = "Explain why a workload has no pods, and what would make it fit"
	whyLong  = `Explain why a workload has no pods, or too few: which request was refused with what message, which quota is short
of what, who holds it, whether the workload waits to be woken, and what would make it fit.

KIND is deployment, statefulset, daemonset, replicaset, job, cronjob, horizontalpodautoscaler, pod,
persistentvolumeclaim, service or replicationcontroller, or a short name of it. The right to view the namespace is
enough. If you may also read the ClusterResourceQuota, the answer names the other namespaces that hold most of it.

The exit status is 0 if nothing is refused, or would fit now; 1 if something is refused or short; and 2 if it can't
be told.`
	whyExample = `  # Why does this Deployment have no pods?
  kubectl crq why deployment/web -n shop

  # The same for a Job, a claim and an autoscaler.
  kubectl crq why job/import -n shop
  kubectl crq why pvc data-db-0 -n shop
  kubectl crq why hpa/web -n shop

  # For a script.
  kubectl crq why deploy/web -n shop -o jsonpath='{.cause}'`
)
