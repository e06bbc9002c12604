// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package defaulting makes of an object what the API server makes of it before
// quotas are charged: Kubernetes' own defaults, and what admission adds. It does so
// with Kubernetes' own code: the defaults of the API types, the plugin of
// LimitRanges, and the rules of default priority and storage classes and of a
// runtime class's overhead.
//
// It doesn't know what webhooks add, where a cluster has any: nobody can tell
// without asking them.
//
// It knows no client. Types and Rules don't change after they were made, and
// what is passed in is not changed.
package defaulting
