//go:build !linux

// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"syscall"
)

// cloned are the ways into a network namespace: there is none.
func cloned() []*syscall.SysProcAttr { return nil }

func configureLoopback() error {
	return errors.New("network namespaces need Linux")
}
