// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// recordSums writes the sums that the releases' own sites publish of all
// pinned versions, of all platforms that have an API server. It trusts what it
// reads: TLS vouches for the site, nothing for the binaries.
func recordSums(ctx context.Context, o options) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	dirs, err := filepath.Glob(filepath.Join(versionsDir, "*", "go.mod"))
	if err != nil {
		return err
	}
	pinned := []string{""}
	for _, dir := range dirs {
		pinned = append(pinned, filepath.Base(filepath.Dir(dir)))
	}
	recorded := sums{}
	for _, name := range pinned {
		o.kubernetes = name
		p, err := describe(ctx, o)
		if err != nil {
			return err
		}
		for _, goarch := range []string{"amd64", "arm64"} {
			if err := p.record(ctx, goarch, recorded); err != nil {
				return err
			}
		}
	}
	var content bytes.Buffer
	for _, file := range slices.Sorted(maps.Keys(recorded)) {
		fmt.Fprintf(&content, "%s  %s\n", recorded[file], file)
	}
	// Beside it and renamed, so that an interruption leaves the old one.
	if err := os.WriteFile(o.sums+partSuffix, content.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(o.sums+partSuffix, o.sums)
}

// record adds the sums of Linux binaries: kube-apiserver is published for no other system.
func (p plane) record(ctx context.Context, goarch string, recorded sums) error {
	for _, name := range binaryNames() {
		file := publishedKubernetes(p.kubernetes, "linux", goarch, name)
		list := file + ".sha256"
		if name == etcdName {
			file = publishedEtcd(p.etcd, "linux", goarch)
			list = path.Join(path.Dir(file), "SHA256SUMS")
		}
		sum, err := publishedSum(ctx, address(p.mirror, list), path.Base(file))
		if err != nil {
			return err
		}
		recorded[file] = sum
	}
	return nil
}

// publishedSum reads the sum of the file in a list of sums, or a single sum.
func publishedSum(ctx context.Context, from, file string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", from, response.Status)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 1 || len(fields) == 2 && strings.TrimPrefix(fields[1], "*") == file {
			if isSum(fields[0]) {
				return strings.ToLower(fields[0]), nil
			}
		}
	}
	return "", fmt.Errorf("%s has no SHA-256 sum of %s", from, file)
}
