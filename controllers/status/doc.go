// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status shows people the use of each quota. It has two controllers, both of the leader: QuotaController writes
// the status of each ClusterResourceQuota, and ViewController writes a LocalResourceQuota into each namespace that
// shares it, with the totals and the namespace's own part, and nothing of any other namespace. FiguresReader gathers
// the same for metrics.
//
// All figures come from memory. Pace spaces the writes: a quota that changes hundreds of times a
// second has its status written about once a second. Lag knows how long a change has waited to
// be shown. Views of a new leader wait for its statuses.
package status
