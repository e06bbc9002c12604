// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package headlamp tests the Headlamp plugin in plugins/headlamp. It starts an API server
// and an operator, gives an administrator and a project owner a kubectl proxy each, and
// runs the browser's tests in plugins/headlamp/test/browser against them.
package headlamp
