// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restore shows that the limit holds, and that every quota is usable again in time without anybody's help, when a
// cluster is put back to a backup: etcd to a copy of its data, while two replicas live on, and all objects to what a backup
// tool has saved of another cluster.
//
// Each group of specs has a cluster of its own, with two replicas as in package faults. What lives above a limit when the
// backup is back is no violation, and whatever comes on top of it is.
//
// Environment: as of package faults.
package restore
