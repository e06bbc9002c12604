// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// buildTimeout bounds the build of one program for one platform, with nothing cached.
const buildTimeout = 30 * time.Minute

// program is what is built of a package.
type program struct {
	name string
	pkg  string
	// version is the variable that holds it.
	version string
	systems []string
}

var (
	operator = program{name: "manager", pkg: ".", version: "main.version", systems: []string{"linux"}}
	plugin   = program{
		name: "kubectl-crq", pkg: "./cmd/kubectl-crq", systems: []string{"linux", "darwin", "windows"},
		version: "github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/command.version",
	}
	machines = []string{"amd64", "arm64"}
)

// platform is what a program runs on.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// platforms are those of the program among the wanted ones, all of which have a name such as linux/amd64.
// If none is wanted, they are all.
func (p program) platforms(wanted []string) []platform {
	var all []platform
	for _, system := range p.systems {
		for _, machine := range machines {
			one := platform{system, machine}
			if len(wanted) == 0 || slices.Contains(wanted, one.String()) {
				all = append(all, one)
			}
		}
	}
	return all
}

// checkPlatforms returns an error if nothing is built for a platform.
func checkPlatforms(wanted []string) error {
	known := plugin.platforms(nil)
	for _, name := range wanted {
		if !slices.ContainsFunc(known, func(one platform) bool { return one.String() == name }) {
			return fmt.Errorf("PLATFORMS: %q is none of %v", name, known)
		}
	}
	return nil
}

// binary is a program that was built.
type binary struct {
	program  program
	platform platform
	path     string
	info     *debug.BuildInfo
}

// fileName is the program's on its platform.
func (b binary) fileName() string {
	if b.platform.os == "windows" {
		return b.program.name + ".exe"
	}
	return b.program.name
}

// build builds a program as the Dockerfile does. No Go setting of the builder's environment has an effect.
func (p program) build(root, dir string, on platform, version string) (binary, error) {
	made := binary{program: p, platform: on}
	made.path = filepath.Join(dir, on.os+"-"+on.arch, made.fileName())
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags="+p.linked("v"+version), "-o", made.path, p.pkg)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+on.os, "GOARCH="+on.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT=", "GOFIPS140=off", "GOFLAGS=-mod=readonly", "GOWORK=off")
	if _, err := output(command); err != nil {
		return made, fmt.Errorf("building %s for %s: %w", p.name, on, err)
	}
	var err error
	if made.info, err = buildinfo.ReadFile(made.path); err != nil {
		return made, fmt.Errorf("reading what %s for %s was built from: %w", p.name, on, err)
	}
	return made, nil
}

// linked are the linker's flags: no symbols, and the version.
func (p program) linked(version string) string { return "-s -w -X " + p.version + "=" + version }

// wanted are the platforms of a list with commas.
func wanted(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
