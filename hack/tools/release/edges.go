// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// skipRangeAnnotation is where OLM looks for the range of versions that may go to this one directly.
const skipRangeAnnotation = "olm.skipRange"

// edges are the versions that OLM upgrades from, as versions without the package's name.
type edges struct {
	replaces string
	skips    string
	// skipRange of "-" is none.
	skipRange string
}

// check returns an error if an edge leads backwards, or would leave a version behind.
func (e *edges) check(version semver.Version) error {
	if e.replaces != "" {
		if err := earlier("REPLACES", e.replaces, version); err != nil {
			return err
		}
	}
	skipped := e.skipped()
	for _, skip := range skipped {
		if err := earlier("SKIPS", skip, version); err != nil {
			return err
		}
	}
	switch {
	case len(skipped) > 0 && e.replaces == "":
		return errors.New("SKIPS without REPLACES: OLM needs the version before the skipped ones")
	case slices.Contains(skipped, e.replaces):
		return fmt.Errorf("REPLACES %s is also in SKIPS: a version that nobody should stop at isn't followed", e.replaces)
	}
	if _, err := semver.ParseRange(e.rangeBefore(version)); e.skipRange != "-" && err != nil {
		return fmt.Errorf("SKIP_RANGE %q is no range of versions, such as >=1.0.0 <1.2.0: %w", e.skipRange, err)
	}
	return nil
}

func earlier(name, text string, version semver.Version) error {
	from, err := semver.Parse(text)
	if err != nil {
		return fmt.Errorf("%s %q is no semantic version, such as 1.2.3: %w", name, text, err)
	}
	if from.GE(version) {
		return fmt.Errorf("%s %s isn't earlier than VERSION %s", name, text, version)
	}
	return nil
}

func (e *edges) skipped() []string {
	if e.skips == "" {
		return nil
	}
	return strings.Split(e.skips, ",")
}

// rangeBefore is the range of versions that may go to this one directly.
func (e *edges) rangeBefore(version semver.Version) string {
	if e.skipRange != "" {
		return e.skipRange
	}
	return "<" + version.String()
}

// set writes the edges to a ClusterServiceVersion.
func (e *edges) set(csv *operatorsv1alpha1.ClusterServiceVersion, version semver.Version) error {
	if csv.Spec.Replaces != "" || len(csv.Spec.Skips) > 0 {
		return errors.New("the base of the ClusterServiceVersion has replaces or skips: leave them to REPLACES and SKIPS of make bundle")
	}
	if e.replaces != "" {
		csv.Spec.Replaces = named(e.replaces)
	}
	for _, skip := range e.skipped() {
		csv.Spec.Skips = append(csv.Spec.Skips, named(skip))
	}
	if e.skipRange != "-" {
		csv.Annotations[skipRangeAnnotation] = e.rangeBefore(version)
	}
	return nil
}

// named is a ClusterServiceVersion's name.
func named(version string) string { return packageName + ".v" + version }
