// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

func TestANamespaceThatCannotBeMadeIsAnError(t *testing.T) {
	// No program starts in a directory that isn't there, as none does in a
	// namespace that isn't permitted.
	code, err := again([]*syscall.SysProcAttr{{Chroot: "/not/there"}})
	if code != 1 || err == nil || !strings.Contains(err.Error(), "no network namespace can be made") {
		t.Errorf("got exit code %d and error %v, want 1 and why", code, err)
	}
}

// The addresses of a machine's own loopback device are left alone.
func TestTheNamespaceOfTheMachineIsNotEntered(t *testing.T) {
	here, err := namespaceID()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(outsideEnv, here)
	if inside, err := enter(); inside || !errors.Is(err, errSame) {
		t.Errorf("got %t and error %v, want %v", inside, err, errSame)
	}
}

func TestTheFormOfProductionNeedsItsNamespace(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	c, err := Start(t.Context(), Options{Production: true})
	if !errors.Is(err, errNoNamespace) {
		t.Errorf("error is %v, want %v", err, errNoNamespace)
	}
	if c != nil {
		t.Error(c.Stop())
	}
}
