// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bundle writes the OLM bundle of the operator. It reads what kustomize
// builds of config/manifests, and has nothing of its own to say: what is
// installed comes from config/, what a field means from the types.
//
// What a bundle can't hold is written beside it, for an administrator to apply.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/blang/semver/v4"
)

// options are what a release decides, and where files are.
type options struct {
	// Package is the name under which a catalog lists the operator.
	Package string
	// Version of the operator.
	Version semver.Version
	// Channels of the catalog that offer this version, and the one that is taken
	// where none is named.
	Channels       string
	DefaultChannel string
	// Image is the operator's own.
	Image string
	// Icon is the file of an SVG image.
	Icon string
	// Out is the directory that stands for the repository's root.
	Out string
}

func bindFlags(o *options) (version *string) {
	flag.StringVar(&o.Package, "package", "shared-quota-operator", "Name of the package in a catalog.")
	flag.StringVar(&o.Channels, "channels", "", "Channels that offer this version, separated by commas.")
	flag.StringVar(&o.DefaultChannel, "default-channel", "", "Channel for whoever names none.")
	flag.StringVar(&o.Image, "image", "", "Image of the operator.")
	flag.StringVar(&o.Icon, "icon", "", "File with the icon, an SVG image.")
	flag.StringVar(&o.Out, "out", "", "Directory to write to, as it were the repository's root.")
	return flag.String("version", "", "Version of the operator, such as 1.2.3.")
}

// complete tells what is missing, or doesn't fit.
func (o *options) complete(version string) error {
	for name, value := range map[string]string{
		"-channels": o.Channels, "-default-channel": o.DefaultChannel, "-image": o.Image, "-icon": o.Icon, "-out": o.Out,
	} {
		if value == "" {
			return fmt.Errorf("%s is missing", name)
		}
	}
	var err error
	if o.Version, err = semver.Parse(version); err != nil {
		return fmt.Errorf("-version %q: %w", version, err)
	}
	if !strings.Contains(","+o.Channels+",", ","+o.DefaultChannel+",") {
		return fmt.Errorf("-default-channel %s is none of -channels %s", o.DefaultChannel, o.Channels)
	}
	return nil
}

func main() {
	var o options
	version := bindFlags(&o)
	flag.Parse()
	err := o.complete(*version)
	if err == nil {
		err = run(os.Stdin, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(built io.Reader, o options) error {
	icon, err := os.ReadFile(o.Icon)
	if err != nil {
		return fmt.Errorf("reading the icon: %w", err)
	}
	given, err := read(built)
	if err != nil {
		return fmt.Errorf("reading what kustomize built: %w", err)
	}
	files, err := generate(given, o, icon)
	if err != nil {
		return err
	}
	return files.write(o.Out)
}
