// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"k8s.io/client-go/util/cert"
)

// clientAuthorities is the file of the authorities of the certificates that callers present.
type clientAuthorities string

// verify has the certificates of callers verified. The file is read for each
// handshake, of which there are few, so that authorities can be exchanged. While
// it can't be read, all callers are rejected.
func (c clientAuthorities) verify() (func(*tls.Config), error) {
	if _, err := c.read(); err != nil {
		return nil, err
	}
	return func(config *tls.Config) {
		// A caller without a certificate gets a 404 later, and is counted.
		config.ClientAuth = tls.VerifyClientCertIfGiven
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			authorities, err := c.read()
			if err != nil {
				return nil, err
			}
			verifying := config.Clone()
			verifying.GetConfigForClient, verifying.ClientCAs = nil, authorities
			return verifying, nil
		}
	}, nil
}

func (c clientAuthorities) read() (*x509.CertPool, error) {
	pool, err := cert.NewPool(string(c))
	if err != nil {
		return nil, fmt.Errorf("--client-ca-file: %w", err)
	}
	return pool, nil
}
