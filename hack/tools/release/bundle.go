// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/blang/semver/v4"
)

// options are what a release decides about its bundle.
type options struct {
	version semver.Version
	// channels of the catalog that offer this version, and the one that is taken
	// if none is named.
	channels, defaultChannel string
	// edges are the versions that OLM upgrades from.
	edges edges
	// image is the operator's own.
	image string
}

// writeBundle writes the OLM bundle from what kustomize builds of config/manifests.
func writeBundle(args []string) error {
	var o options
	flags := flag.NewFlagSet("release bundle", flag.ExitOnError)
	version := flags.String("version", "", "Version of the operator, such as 1.2.3.")
	flags.StringVar(&o.channels, "channels", "", "Channels that offer this version, separated by commas.")
	flags.StringVar(&o.defaultChannel, "default-channel", "", "Channel if none is named.")
	flags.StringVar(&o.image, "image", "", "Image of the operator.")
	flags.StringVar(&o.edges.replaces, "replaces", "", "Version that this one follows in its channels; empty for the first.")
	flags.StringVar(&o.edges.skips, "skips", "", "Versions that nobody should stop at, separated by commas.")
	flags.StringVar(&o.edges.skipRange, "skip-range", "",
		"Range of versions that may go to this one directly; - for none. By default all earlier ones.")
	icon := flags.String("icon", "", "File with the icon, an SVG image.")
	out := flags.String("out", "", "Directory to write to, as if it were the repository's root.")
	_ = flags.Parse(args)
	var err error
	if o.version, err = parseVersion(*version); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	image, err := os.ReadFile(*icon)
	if err != nil {
		return fmt.Errorf("reading the icon: %w", err)
	}
	given, err := read(os.Stdin)
	if err != nil {
		return fmt.Errorf("reading what kustomize built: %w", err)
	}
	made, err := generate(given, o, image)
	if err != nil {
		return err
	}
	return made.write(*out)
}

func (o *options) check() error {
	if err := checkImage(o.image); err != nil {
		return err
	}
	if !strings.Contains(","+o.channels+",", ","+o.defaultChannel+",") {
		return fmt.Errorf("-default-channel %s is none of -channels %s", o.defaultChannel, o.channels)
	}
	return o.edges.check(o.version)
}
