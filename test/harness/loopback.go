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

// freePorts returns n different loopback ports that nobody listens on. Another test may
// take one before it is used; they are drawn at random, so that this is rare, and the
// process that finds its port taken says so.
func freePorts(n int) ([]int, error) {
	var ports []int
	var listeners []net.Listener // All are held until all are found, so that they differ.
	defer func() {
		for _, listener := range listeners {
			_ = listener.Close()
		}
	}()
	for range n {
		listener, port, err := listenAnywhere()
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		listeners, ports = append(listeners, listener), append(ports, port)
	}
	return ports, nil
}

func listenAnywhere() (listener net.Listener, port int, err error) {
	for range portTries {
		port = firstPort + rand.IntN(lastPort-firstPort+1)
		if listener, err = net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port))); err == nil {
			return listener, port, nil
		}
	}
	return nil, 0, err
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
