// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"fmt"
	"net"

	"k8s.io/client-go/util/cert"
)

// SelfSign makes a certificate for one host.
func (c *Certificates) SelfSign(host string) error {
	var addresses []net.IP
	if address := net.ParseIP(host); address != nil {
		addresses = append(addresses, address)
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(host, addresses, nil)
	if err != nil {
		return fmt.Errorf("making a certificate for %s: %w", host, err)
	}
	material, err := NewMaterial(certPEM, keyPEM, certPEM)
	if err != nil {
		return err
	}
	c.Update(material, nil)
	return nil
}
