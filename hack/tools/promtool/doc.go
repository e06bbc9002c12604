// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package promtool pins promtool, which tests the alerts, and checks with
// Prometheus' own parser that alerts and dashboard ask for what is exported.
package promtool
