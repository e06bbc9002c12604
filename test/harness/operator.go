// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// OperatorOptions say how to run the operator. The zero value runs bin/manager
// as admin.
type OperatorOptions struct {
	// Binary is the path of the operator's binary. By default bin/manager
	// below the repository's root.
	Binary string

	// Kubeconfig is the path of the kubeconfig file that it is given. By
	// default the admin user's.
	Kubeconfig string

	// WebhookPort is where the webhook is served; 0 takes a free port. An
	// operator that takes the place of another may want the same one.
	WebhookPort int

	// MetricsPort serves the metrics over HTTP; 0 for none.
	MetricsPort int

	// Args are further arguments. They come last, and win.
	Args []string

	// Env are further variables of its environment, as in os.Environ. They win.
	Env []string
}

// Operator is a running operator, outside the cluster.
type Operator struct {
	*Process

	// Address is the IP address at which it serves.
	Address string
	// WebhookPort is the port of Address on which the webhook is served.
	WebhookPort int
	// WebhookURL is what the API server was told to call; empty for a Service.
	WebhookURL string
	// HealthURL serves /readyz and /healthz below it.
	HealthURL string
}

// StartOperator runs the operator's binary as a process of its own, and returns
// once it is ready. It may be called several times: each call starts one more
// replica. Cluster.Stop stops what is left of them.
func (c *Cluster) StartOperator(ctx context.Context, options OperatorOptions) (*Operator, error) {
	binary, err := operatorBinary(options.Binary)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	webhookPort := cmp.Or(options.WebhookPort, ports[0])
	webhookURL := "https://" + net.JoinHostPort(loopback, strconv.Itoa(webhookPort))
	health := net.JoinHostPort(loopback, strconv.Itoa(ports[1]))
	process, err := c.startProcess(ctx, processSpec{
		name: c.uniqueName("operator"),
		path: binary,
		args: append([]string{
			"--kubeconfig", cmp.Or(options.Kubeconfig, c.Kubeconfig()),
			"--webhook-url", webhookURL,
			"--webhook-port", strconv.Itoa(webhookPort),
			"--leader-elect=false",
			"--namespace", "kube-system",
			"--metrics-bind-address", metricsAddress(options.MetricsPort),
			"--metrics-secure=false",
			"--health-probe-bind-address", health,
			"--shutdown-delay-duration", "0s", // nobody waits for tests
		}, options.Args...),
		env:      append(operatorEnv(), options.Env...),
		readyURL: "http://" + health + "/readyz",
	})
	if err != nil {
		return nil, err
	}
	return &Operator{
		Process: process, Address: loopback, WebhookPort: webhookPort, WebhookURL: webhookURL, HealthURL: "http://" + health,
	}, nil
}

// operatorEnv leaves it to the operator how it collects garbage, as in a cluster, however the tests do.
func operatorEnv() []string { return append(os.Environ(), "GOGC=") }

func metricsAddress(port int) string {
	if port == 0 {
		return "0"
	}
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}

func operatorBinary(path string) (string, error) {
	if path != "" {
		return filepath.Abs(path)
	}
	root, err := RepositoryRoot()
	return filepath.Join(root, "bin", "manager"), err
}
