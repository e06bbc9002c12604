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
	"time"
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

	// WebhookURL is what the API server is told to call instead of the port
	// itself: a Balancer in front of several replicas. It needs CertDir or
	// CertSecret, for the replicas must present the same certificate.
	WebhookURL string

	// CertDir is a directory from Cluster.Certificate. By default the operator
	// makes a certificate of its own.
	CertDir string

	// CertSecret is the Secret, in the operator's namespace, in which it keeps
	// its certificate. It needs a URL with a name, such as localhost.
	CertSecret string

	// LeaderElect lets the replicas elect a leader. The lease is in kube-system.
	LeaderElect bool

	// HealthPort serves the probes; 0 takes a free port. It lets the caller look
	// at an operator that isn't ready.
	HealthPort int

	// MetricsPort serves the metrics over HTTP; 0 for none.
	MetricsPort int

	// Args are further arguments. They come last, and win.
	Args []string

	// Env are further environment variables, each NAME=VALUE.
	Env []string

	// StartTimeout is how long it may take until /readyz answers 200; 0 means 60 s.
	StartTimeout time.Duration

	// GracePeriod is what Stop waits between SIGTERM and SIGKILL; 0 means 20 s.
	GracePeriod time.Duration
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
	webhookURL := cmp.Or(options.WebhookURL, "https://"+net.JoinHostPort(loopback, strconv.Itoa(webhookPort)))
	health := net.JoinHostPort(loopback, strconv.Itoa(cmp.Or(options.HealthPort, ports[1])))

	args := []string{
		"--kubeconfig", cmp.Or(options.Kubeconfig, c.Kubeconfig()),
		"--webhook-url", webhookURL,
		"--webhook-port", strconv.Itoa(webhookPort),
		"--leader-elect=" + strconv.FormatBool(options.LeaderElect),
		"--namespace", "kube-system",
		"--metrics-bind-address", metricsAddress(options.MetricsPort),
		"--metrics-secure=false",
		"--health-probe-bind-address", health,
		"--shutdown-delay-duration", "0s", // nobody waits for tests
	}
	if options.CertDir != "" {
		args = append(args, "--cert-dir", options.CertDir)
	}
	if options.CertSecret != "" {
		args = append(args, "--cert-secret", options.CertSecret)
	}
	process, err := c.startProcess(ctx, processSpec{
		name:     c.uniqueName("operator"),
		path:     binary,
		args:     append(args, options.Args...),
		env:      append(os.Environ(), options.Env...),
		readyURL: "http://" + health + "/readyz",
		timeout:  cmp.Or(options.StartTimeout, defaultStartTimeout),
		grace:    cmp.Or(options.GracePeriod, defaultGracePeriod),
	})
	if err != nil {
		return nil, err
	}
	return &Operator{
		Process: process, Address: loopback, WebhookPort: webhookPort, WebhookURL: webhookURL, HealthURL: "http://" + health,
	}, nil
}

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
