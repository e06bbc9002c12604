// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Addresses is how many addresses for replicas a network namespace of InNamespace has.
const Addresses = 16

const (
	// apiServerAddress is what the API server advertises. It serves on loopback.
	apiServerAddress = "10.99.0.1"
	// outsideEnv names the network namespace that a program came from.
	outsideEnv = "HARNESS_OUTSIDE"
)

var (
	errNoNamespace = errors.New("it runs in no network namespace of its own: call InNamespace from TestMain or main")
	errSame        = errors.New(outsideEnv + " is set, but this is still the network namespace that it names")
)

// needed explains what to do if no namespace can be made. The programs don't do
// without: on loopback alone an API server reaches no Service.
const needed = `harness: %v.
This program needs a network namespace of its own, in which each replica has an address and
the API server finds them through a Service. It can't make one here. It needs Linux, and
CAP_SYS_ADMIN or the right to make user namespaces (see sysctl user.max_user_namespaces and
kernel.apparmor_restrict_unprivileged_userns; a container needs --privileged, or
--cap-add SYS_ADMIN with a seccomp profile that allows unshare).
`

// Address is one of the addresses that a network namespace of InNamespace has, for a
// replica to serve at. It is 10.99.0.11 for 0.
func Address(i int) string {
	if i < 0 || i >= Addresses {
		panic(fmt.Sprintf("address %d: there are %d", i, Addresses))
	}
	return "10.99.0." + strconv.Itoa(i+11)
}

// InNamespace runs the program in a network namespace of its own and returns its exit
// code. It starts the program again, with the same arguments, and calls run there; a
// TestMain calls it instead of m.Run. The namespace has nothing but a loopback device,
// with 127.0.0.1, 10.99.0.1 and every Address. It ends with the program.
//
// If no namespace can be made it says so and returns 1, and never calls run.
func InNamespace(run func() int) int {
	inside, err := enter()
	if err == nil && inside {
		return run()
	}
	code := 1
	if err == nil {
		code, err = again(cloned())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, needed, err)
	}
	return code
}

// enter prepares the namespace; false if the program doesn't run in one yet.
func enter() (inside bool, err error) {
	outside := os.Getenv(outsideEnv)
	if outside == "" {
		return false, nil
	}
	here, err := namespaceID()
	switch {
	case err != nil:
		return false, err
	case here == outside:
		return false, errSame // The addresses of the machine are none of our business.
	}
	if err := configureLoopback(); err != nil {
		return false, fmt.Errorf("giving the loopback device its addresses: %w", err)
	}
	return true, os.Unsetenv(outsideEnv)
}

// checkNamespace fails outside of a network namespace of InNamespace.
func checkNamespace() error {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	here := slices.ContainsFunc(addresses, func(address net.Addr) bool {
		return strings.HasPrefix(address.String(), apiServerAddress+"/")
	})
	if !here {
		return errNoNamespace
	}
	return nil
}

// namespaceID names the network namespace of this program.
func namespaceID() (string, error) {
	return os.Readlink("/proc/self/ns/net")
}

// again starts this program in a namespace, by the first way that is permitted, and
// returns its exit code.
func again(ways []*syscall.SysProcAttr) (int, error) {
	outside, err := namespaceID()
	if err != nil {
		return 1, err
	}
	fetchModules()
	// The program must not outlive this one: the kernel sends it a signal when the
	// thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	errs := []error{errors.New("no network namespace can be made")}
	for _, way := range ways {
		cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
		cmd.Args[0] = os.Args[0]
		cmd.Env = append(slices.DeleteFunc(os.Environ(), isProxy), outsideEnv+"="+outside)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr = way
		if err := cmd.Start(); err != nil {
			errs = append(errs, err)
			continue
		}
		return follow(cmd), nil
	}
	return 1, errors.Join(errs...)
}

// follow passes signals on until the program ends. An interrupt reaches a terminal's
// whole process group by itself.
func follow(cmd *exec.Cmd) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(signals)
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case received := <-signals:
				if received != syscall.SIGINT {
					_ = cmd.Process.Signal(received) // It may have ended.
				}
			case <-ended:
				return
			}
		}
	}()
	_ = cmd.Wait() // The exit code says it.
	close(ended)
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 1
}

// isProxy tells whether a NAME=VALUE leads calls to a proxy, which can't be reached.
func isProxy(variable string) bool {
	name, _, _ := strings.Cut(strings.ToUpper(variable), "=")
	return name == "HTTP_PROXY" || name == "HTTPS_PROXY" || name == "ALL_PROXY"
}

// fetchModules sees to it that the operator can be built inside, where no module proxy
// can be reached. If it can't, the build says so.
func fetchModules() {
	root, err := RepositoryRoot()
	if err != nil {
		return
	}
	list := exec.Command("go", "list", "-deps", ".")
	list.Dir = root
	_ = list.Run()
}
