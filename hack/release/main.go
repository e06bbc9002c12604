// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release makes what a release consists of:
//
//	release check    says in which state the tree is that is released
//	release bundle   writes the OLM bundle
//	release catalog  writes the catalog of several bundles
//	release files    builds the programs, and packs, lists and sums up all files
//
// The same commit and the same Go give the same files, byte for byte: times are
// those of the commit, and no owner, directory or umask gets into a file.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

const versionUsage = "Version of the operator, such as 1.2.3."

var commands = map[string]func(args []string) error{
	"bundle":  writeBundle,
	"catalog": writeCatalog,
	"check":   checkTree,
	"files":   writeFiles,
}

func main() {
	err := errors.New("name a command: bundle, catalog, check or files")
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

func newFlags(command string) *flag.FlagSet {
	return flag.NewFlagSet("release "+command, flag.ExitOnError)
}

func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	return nil
}

// required returns an error that names the first flag without a value.
func required(values map[string]string) error {
	var missing []string
	for name, value := range values {
		if value == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("%s is missing", missing[0])
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
