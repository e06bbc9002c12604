// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/blang/semver/v4"
)

// options are what a release decides about its bundle, and where files are.
type options struct {
	// Package is the name under which a catalog lists the operator.
	Package string
	// Version of the operator.
	Version semver.Version
	// Channels of the catalog that offer this version, and the one that is taken
	// where none is named.
	Channels       string
	DefaultChannel string
	// Edges are the versions that OLM upgrades from.
	Edges edges
	// Image is the operator's own.
	Image string
	// Icon is the file of an SVG image.
	Icon string
	// Out is the directory that stands for the repository's root.
	Out string
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.Package, "package", "shared-quota-operator", "Name of the package in a catalog.")
	flags.StringVar(&o.Channels, "channels", "", "Channels that offer this version, separated by commas.")
	flags.StringVar(&o.DefaultChannel, "default-channel", "", "Channel if none is named.")
	flags.StringVar(&o.Icon, "icon", "", "File with the icon, an SVG image.")
	flags.StringVar(&o.Out, "out", "", "Directory to write to, as if it were the repository's root.")
	flags.StringVar(&o.Image, "image", "", "Image of the operator.")
	o.Edges.bind(flags)
}

// complete returns an error if something is missing or doesn't fit.
func (o *options) complete(version string) error {
	err := required(map[string]string{
		"-channels": o.Channels, "-default-channel": o.DefaultChannel, "-image": o.Image, "-icon": o.Icon, "-out": o.Out,
	})
	if err != nil {
		return err
	}
	if o.Version, err = parseVersion(version); err != nil {
		return err
	}
	if err := checkImage(o.Image); err != nil {
		return err
	}
	if !strings.Contains(","+o.Channels+",", ","+o.DefaultChannel+",") {
		return fmt.Errorf("-default-channel %s is none of -channels %s", o.DefaultChannel, o.Channels)
	}
	return o.Edges.check(o.Version)
}

// writeBundle writes the OLM bundle. It reads what kustomize builds of
// config/manifests, and has nothing of its own to say: what is installed comes
// from config/, what a field means from the types. What a bundle can't hold is
// written beside it, for an administrator to apply.
func writeBundle(args []string) error {
	var o options
	flags := newFlags("bundle")
	version := flags.String("version", "", versionUsage)
	o.bind(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := o.complete(*version); err != nil {
		return err
	}
	return run(os.Stdin, o)
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
