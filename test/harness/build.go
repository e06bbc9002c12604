// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// OperatorBinary returns the binary that MANAGER_BINARY names, or builds the
// operator of this repository into the directory.
func OperatorBinary(ctx context.Context, dir string) (string, error) {
	if given := os.Getenv("MANAGER_BINARY"); given != "" {
		return given, nil
	}
	return BuildOperator(ctx, filepath.Join(dir, "manager"))
}

// clockOffset is the environment variable by which an operator's clock is wrong, if it is linked so.
const clockOffset = "CLOCK_OFFSET"

// BuildOperator builds the operator of this repository, with the race detector
// where the caller has it, and with further flags of go build. It returns path.
func BuildOperator(ctx context.Context, path string, flags ...string) (string, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return "", err
	}
	args := slices.Concat([]string{"build", "-ldflags", "-X main.clockOffset=" + clockOffset}, raceFlags(), flags)
	build := exec.CommandContext(ctx, "go", append(args, "-o", path, ".")...)
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the operator: %w\n%s", err, output)
	}
	return path, nil
}
