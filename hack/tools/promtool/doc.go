// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package promtool checks with Prometheus' own parser that alerts and dashboard
// query exported metrics. Its alerts.yaml has the cases that promtool tests the alerts with.
package promtool
