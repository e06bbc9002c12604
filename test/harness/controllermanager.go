// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
)

const controllerManagerName = "kube-controller-manager"

// StartControllerManager runs kube-controller-manager with every controller
// that is on by default: deployments get replica sets, these get pods, deleted
// namespaces are emptied, owned objects collected, roles aggregated. Each
// controller acts as a service account of its own, as in a real cluster. No
// node exists, so that no pod is ever scheduled.
//
// It returns once the health endpoint answers; single controllers may start a
// moment later. Extra args come last, and win. Cluster.Stop stops it.
func (c *Cluster) StartControllerManager(ctx context.Context, args ...string) (*Process, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	slices, err := atLeast(ctx, slicesSince)
	if err != nil {
		return nil, err
	}
	if !slices { // It would empty what Endpoints writes.
		args = append([]string{"--controllers", "*,-endpoints-controller"}, args...)
	}
	own := []string{
		"--kubeconfig", c.Kubeconfig(),
		"--bind-address", loopback,
		"--secure-port", strconv.Itoa(ports[0]),
		"--leader-elect=false",
		"--use-service-account-credentials",
		"--service-account-private-key-file", filepath.Join(c.certDir(), "sa-signer.key"),
		"--root-ca-file", c.caFile(),
		// The defaults, 20 and 30, would pace the tests.
		"--kube-api-qps", "500", "--kube-api-burst", "1000",
	}
	return c.startProcess(ctx, processSpec{
		name:     c.uniqueName(controllerManagerName),
		path:     c.asset(controllerManagerName),
		args:     append(own, args...),
		readyURL: fmt.Sprintf("https://%s/healthz", net.JoinHostPort(loopback, strconv.Itoa(ports[0]))),
	})
}
