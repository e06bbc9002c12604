// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/licensecheck"
)

const (
	// listTimeout bounds how long go may look modules up that are on the disk.
	listTimeout = 5 * time.Minute
	// covered is how many percent of a licence's text must be known.
	covered = 75
)

// licences are module -> SPDX expression of the licences in its root.
type licences map[string]string

// licencesOf reads the licences of all modules that the binaries were linked from.
func licencesOf(root string, binaries []binary) (licences, error) {
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	args := append([]string{"list", "-m", "-f", "{{.Path}}\t{{.Dir}}"}, slices.Sorted(maps.Keys(modules(binaries)))...)
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = root
	command.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	listed, err := output(command)
	if err != nil {
		return nil, err
	}
	found := licences{"stdlib": "BSD-3-Clause"}
	for _, line := range lines(listed) {
		path, dir, _ := strings.Cut(line, "\t")
		if dir == "" {
			return nil, fmt.Errorf("module %s isn't downloaded", path)
		}
		if found[path], err = licenceIn(dir); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (l licences) of(module string) string {
	if licence, ok := l[module]; ok {
		return licence
	}
	return noAssertion
}

// licenceIn returns the licences in a directory. If a text isn't known for the most part, nothing is
// asserted.
func licenceIn(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	known := map[string]bool{}
	for _, entry := range entries {
		name := strings.ToUpper(entry.Name())
		if !entry.Type().IsRegular() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", err
		}
		coverage := licensecheck.Scan(text)
		if coverage.Percent < covered {
			return noAssertion, nil
		}
		for _, match := range coverage.Match {
			known[match.ID] = true
		}
	}
	if len(known) == 0 {
		return noAssertion, nil
	}
	return strings.Join(slices.Sorted(maps.Keys(known)), " AND "), nil
}
