// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
)

// StartAPIServer runs one more kube-apiserver on the same etcd, as in a control
// plane of several, and returns it with the admin user's configuration for it.
// Each API server has connections of its own to a webhook's replicas. It needs
// Linux. Cluster.Stop stops it.
func (c *Cluster) StartAPIServer(ctx context.Context) (*Process, *rest.Config, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, nil, err
	}
	args, err := c.apiServerArgs(ports[0])
	if err != nil {
		return nil, nil, err
	}
	address := "https://" + net.JoinHostPort(loopback, strconv.Itoa(ports[0]))
	process, err := c.startProcess(ctx, processSpec{
		name: c.uniqueName(apiServerName + "-more"), path: c.asset(apiServerName), args: args,
		readyURL: address + "/healthz", timeout: defaultStartTimeout, grace: defaultGracePeriod,
	})
	if err != nil {
		return nil, nil, err
	}
	config := c.Config()
	config.Host = address
	return process, config, nil
}

// apiServerArgs are the arguments of the first kube-apiserver, with another port.
func (c *Cluster) apiServerArgs(port int) ([]string, error) {
	pid, err := c.watchdog.pid(apiServerName)
	if err != nil {
		return nil, err
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, fmt.Errorf("reading the arguments of kube-apiserver: %w", err)
	}
	var args []string
	for _, argument := range bytes.Split(bytes.TrimRight(line, "\x00"), []byte{0})[1:] {
		if !strings.HasPrefix(string(argument), "--secure-port=") {
			args = append(args, string(argument))
		}
	}
	return append(args, "--secure-port="+strconv.Itoa(port)), nil
}
