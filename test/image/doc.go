// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image checks what can be checked of the container image without a
// container engine: that the stage which builds the binary is given all it needs,
// that its command makes a static binary of a bearable size, the same one twice,
// and that the image is what a cluster runs without any rights.
package image
