// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// inNamespaceEnv makes the test binary the program of TestInNamespace.
const inNamespaceEnv = "HARNESS_TEST_IN_NAMESPACE"

// lookAround is what runs in the namespace: it prints what it finds there.
func lookAround() int {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return 1
	}
	for _, address := range addresses {
		_, _ = os.Stdout.WriteString(address.String() + "\n") // The test misses it.
	}
	if _, err := net.Listen("tcp", net.JoinHostPort(Address(Addresses-1), "9443")); err != nil {
		return 1
	}
	if err := checkNamespace(); err != nil {
		return 1
	}
	return 42
}

func TestInNamespace(t *testing.T) {
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), inNamespaceEnv+"=1")
	output, err := program.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 42 {
		t.Fatalf("the program ended with %v, want exit code 42:\n%s", err, output)
	}
	got := strings.Fields(string(output))
	for _, want := range []string{"127.0.0.1/8", "10.99.0.1/32", "10.99.0.11/32", "10.99.0.26/32"} {
		if !slices.Contains(got, want) {
			t.Errorf("the addresses are %v, want %s among them", got, want)
		}
	}
	if err := checkNamespace(); !errors.Is(err, errNoNamespace) {
		t.Errorf("outside: error is %v, want %v", err, errNoNamespace)
	}
}

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
