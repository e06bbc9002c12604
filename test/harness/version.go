// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// slicesSince is the first version of which the API server resolves Services by EndpointSlices.
const slicesSince = "1.33"

// versionTimeout is more than a binary needs to say its version.
const versionTimeout = 30 * time.Second

// KubernetesVersion returns the version of the kube-apiserver that Start runs by default, such as 1.37.1.
func KubernetesVersion(ctx context.Context) (string, error) {
	options, err := Options{}.withDefaults()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	output, err := exec.CommandContext(ctx, filepath.Join(options.AssetsDir, "kube-apiserver"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking kube-apiserver for its version: %w", err)
	}
	number, is := strings.CutPrefix(strings.TrimSpace(string(output)), "Kubernetes v")
	if !is {
		return "", fmt.Errorf("want Kubernetes vX from kube-apiserver --version, got %q", output)
	}
	return number, nil
}

// atLeast reports whether the kube-apiserver that Start runs by default is of the minor version, or of a later one.
func atLeast(ctx context.Context, minor string) (bool, error) {
	tested, err := KubernetesVersion(ctx)
	if err != nil {
		return false, err
	}
	parsed, err := version.ParseSemantic(tested)
	if err != nil {
		return false, fmt.Errorf("reading the version of kube-apiserver: %w", err)
	}
	return parsed.AtLeast(version.MustParseGeneric(minor)), nil
}
