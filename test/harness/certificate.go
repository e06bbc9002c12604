/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
