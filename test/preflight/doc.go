// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight applies workloads with the real kubectl to a real API server, where the real
// operator judges them and Kubernetes' own controllers make their pods: what is printed, that it is
// true, and that nothing stands in the way of an apply, whatever becomes of the operator.
package preflight
