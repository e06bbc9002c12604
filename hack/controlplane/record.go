// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// sums maps the name of a file -> its SHA-256 sum in hexadecimal.
type sums map[string]string

// readSums reads what sha256sum writes.
func readSums(file string) (sums, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	read, line := sums{}, 0
	for text := range strings.Lines(string(content)) {
		line++
		sum, name, ok := strings.Cut(strings.TrimSuffix(text, "\n"), "  ")
		if !ok || !isSum(sum) || name == "" || read[name] != "" {
			return nil, fmt.Errorf("%s:%d: want a SHA-256 sum, two spaces and the name of another file", file, line)
		}
		read[name] = strings.ToLower(sum)
	}
	return read, nil
}

func isSum(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == sha256.Size
}

// recordSums writes the sums that the releases' own sites publish of all
// pinned versions, of Linux: kube-apiserver is published for no other system.
// It trusts what it reads: TLS vouches for the site, nothing for the binaries.
func recordSums(ctx context.Context, o options) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	pinned, err := pinnedVersions()
	if err != nil {
		return err
	}
	recorded := sums{}
	for _, o.kubernetes = range append(pinned, "") {
		p, err := describe(ctx, o)
		if err != nil {
			return err
		}
		p.goos = "linux"
		for _, p.goarch = range []string{"amd64", "arm64"} {
			for _, name := range binaryNames() {
				file := p.published(name)
				if recorded[file], err = p.publishedSum(ctx, name, file); err != nil {
					return err
				}
			}
		}
	}
	var content bytes.Buffer
	for _, file := range slices.Sorted(maps.Keys(recorded)) {
		fmt.Fprintf(&content, "%s  %s\n", recorded[file], file)
	}
	return os.WriteFile(o.sums, content.Bytes(), 0o644)
}

// publishedSum reads the sum of a file beside it: Kubernetes publishes a sum for each, etcd a list for all.
func (p plane) publishedSum(ctx context.Context, name, file string) (string, error) {
	from := p.address(file + ".sha256")
	if name == etcdName {
		from = p.address(path.Join(path.Dir(file), "SHA256SUMS"))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) > 0 && isSum(fields[0]) && (name != etcdName || strings.HasSuffix(line, "  "+path.Base(file)+"\n")) {
			return strings.ToLower(fields[0]), nil
		}
	}
	return "", fmt.Errorf("%s (%s) has no SHA-256 sum of %s", from, response.Status, file)
}
