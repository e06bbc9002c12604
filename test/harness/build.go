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
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// OperatorBinary returns the binary that MANAGER_BINARY names, or builds the
// operator of this repository into the directory.
func OperatorBinary(ctx context.Context, dir string) (string, error) {
	if given := os.Getenv("MANAGER_BINARY"); given != "" {
		return given, nil
	}
	return BuildOperator(ctx, filepath.Join(dir, "manager"))
}

// BuildOperator builds the operator of this repository, with the race detector
// where the caller has it, and with further flags of go build. It returns path.
func BuildOperator(ctx context.Context, path string, flags ...string) (string, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return "", err
	}
	args := append(append([]string{"build"}, raceFlags()...), flags...)
	build := exec.CommandContext(ctx, "go", append(args, "-o", path, ".")...)
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the operator: %w\n%s", err, output)
	}
	return path, nil
}
