// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release makes what OLM needs of a release, and goreleaser doesn't know:
//
//	release bundle   writes the OLM bundle
//	release catalog  writes the package and channels of a catalog of several bundles
package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/blang/semver/v4"
)

var commands = map[string]func(args []string) error{
	"bundle":  writeBundle,
	"catalog": writeCatalog,
}

func main() {
	err := errors.New("name a command: bundle or catalog")
	if len(os.Args) > 1 {
		if command, ok := commands[os.Args[1]]; ok {
			err = command(os.Args[2:])
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// parseVersion parses a version that may be released: it names files, an image's tag and a
// ClusterServiceVersion, none of which can hold build metadata.
func parseVersion(text string) (semver.Version, error) {
	if text == "" {
		return semver.Version{}, errors.New("VERSION is missing: name one, such as VERSION=1.2.3")
	}
	version, err := semver.Parse(text)
	switch {
	case strings.HasPrefix(text, "v"):
		return version, fmt.Errorf("VERSION %q begins with a v: write %s", text, strings.TrimLeft(text, "v"))
	case err != nil:
		return version, fmt.Errorf("VERSION %q is no semantic version, such as 1.2.3 or 1.2.3-rc.1: %w", text, err)
	case len(version.Build) > 0:
		return version, fmt.Errorf("VERSION %q has build metadata, which an image's tag can't hold: leave out +%s",
			text, strings.Join(version.Build, "."))
	}
	return version, nil
}

// image is a reference with a tag or a digest. The tag of a release never moves, so one must be named.
var image = regexp.MustCompile(
	`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:\w[\w.-]{0,127}|@sha256:[0-9a-f]{64})$`)

func checkImage(name string) error {
	if !image.MatchString(name) {
		return fmt.Errorf("IMG %q is no name of an image with a tag, such as registry.example/shared-quota-operator:v1.2.3", name)
	}
	return nil
}
