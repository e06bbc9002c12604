// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
)

// Certificate writes a certificate for loopback, its key and its authority to a
// directory of the cluster, and returns the directory. Replicas behind one
// Balancer share it.
func (c *Cluster) Certificate() (string, error) {
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(loopback, []net.IP{net.ParseIP(loopback)}, nil)
	if err != nil {
		return "", fmt.Errorf("making a certificate: %w", err)
	}
	dir := filepath.Join(c.dir, c.uniqueName("webhook-certs"))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	for name, content := range map[string][]byte{"tls.crt": certPEM, "ca.crt": certPEM, "tls.key": keyPEM} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return "", err
		}
	}
	return dir, nil
}
