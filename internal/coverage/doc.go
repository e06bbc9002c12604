// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coverage knows which quotas cover a namespace at this moment. It
// follows the ClusterResourceQuotas and the namespaces' labels through caches,
// and reads live on demand.
package coverage
