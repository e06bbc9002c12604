// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// directoryEvery is how often files are read again. A kubelet brings a new Secret
// within a minute.
const directoryEvery = 10 * time.Second

// Directory holds a certificate that the installation provides: tls.crt,
// tls.key and ca.crt, each of which may change.
type Directory string

// Load reads the files, and says after how long to read them again.
func (d Directory) Load(context.Context) (*Material, time.Duration, error) {
	material, err := d.read()
	return material, directoryEvery, err
}

func (d Directory) read() (*Material, error) {
	content := map[string][]byte{}
	for _, name := range []string{CertKey, KeyKey, AuthorityKey} {
		text, err := fs.ReadFile(os.DirFS(string(d)), name)
		if err != nil {
			return nil, fmt.Errorf("reading the webhook's certificate in %s: %w", string(d), err)
		}
		content[name] = text
	}
	return NewMaterial(content[CertKey], content[KeyKey], content[AuthorityKey])
}
