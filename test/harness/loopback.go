// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	loopback = "127.0.0.1"
	// module is the first line of the go.mod that marks the repository's root.
	module = "module github.com/sharedquota/shared-quota-operator\n"
)

// The ports that tests listen on are below those that the kernel gives connections and
// listeners that don't ask for one (net.ipv4.ip_local_port_range). A port from there may be
// taken by any connection while a process that is started again doesn't listen.
const (
	firstPort, lastPort = 10_000, 29_999
	portTries           = 100
)

// freePorts returns n different loopback ports that nobody listens on, and that no other
// test draws before this process ends.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		port, err := freePort()
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		ports = append(ports, port)
	}
	return ports, nil
}

func freePort() (port int, err error) {
	for range portTries {
		port = firstPort + rand.IntN(lastPort-firstPort+1)
		if err = claim(port); err == nil {
			return port, nil
		}
	}
	return 0, err
}

// claim takes a port if nobody listens on it and no test has claimed it. Many suites run at
// the same time, and seconds pass before an operator listens. So UDP, which nobody serves
// here, keeps the port from other tests, while TCP is left to the operator. The kernel ends
// the claim with this process, however that ends.
func claim(port int) error {
	address := net.JoinHostPort(loopback, strconv.Itoa(port))
	claimed, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(err, claimed.Close())
	}
	go func() { // It must be in use, or the garbage collector closes it.
		for err, buffer := error(nil), make([]byte, 1); err == nil; {
			_, _, err = claimed.ReadFrom(buffer)
		}
	}()
	return listener.Close()
}

// RepositoryRoot finds the repository's root directory, which is the current
// directory or one of those above it.
func RepositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if strings.HasPrefix(string(content), module) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no repository root at or above %s", start)
		}
	}
}
