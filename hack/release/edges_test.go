// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// releasedAs is a bundle's version, and the edges to it.
type releasedAs struct {
	version string
	edges   edges
}

// catalogued writes the bundles as make bundle does, and returns their catalog.
func catalogued(t *testing.T, bundles ...releasedAs) (channel, error) {
	t.Helper()
	var dirs []string
	for _, bundle := range bundles {
		o := released()
		o.Version, o.Edges = semver.MustParse(bundle.version), bundle.edges
		o.Channels, o.DefaultChannel = "stable", "stable"
		if err := o.Edges.check(o.Version); err != nil {
			return channel{}, err
		}
		given, err := read(strings.NewReader(installation))
		if err != nil {
			t.Fatal(err)
		}
		files, err := generate(given, o, []byte("<svg/>"))
		if err != nil {
			return channel{}, err
		}
		root := t.TempDir()
		if err := files.write(root); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, filepath.Join(root, bundleDir))
	}
	text, err := catalogOf(dirs)
	if err != nil {
		return channel{}, err
	}
	blobs := strings.Split(string(text), "---\n")
	if len(blobs) != 2 {
		t.Fatalf("want a package and a channel:\n%s", text)
	}
	for _, blob := range blobs {
		if !strings.Contains(blob, "\nschema: olm.") {
			t.Errorf("opm refuses what has no schema:\n%s", blob)
		}
	}
	var made channel
	if err := yaml.UnmarshalStrict([]byte(blobs[1]), &made); err != nil {
		t.Fatal(err)
	}
	return made, nil
}

// ways returns how OLM goes from each version of the channel.
func ways(t *testing.T, made channel) []string {
	t.Helper()
	var ways []string
	for i := range made.Entries {
		made.Entries[i].version = semver.MustParse(strings.TrimPrefix(made.Entries[i].Name, "toy.v"))
	}
	for _, from := range made.Entries {
		ways = append(ways, strings.ReplaceAll(strings.Join(made.way(from), " "), "toy.v", ""))
	}
	return ways
}

func TestEveryVersionReachesTheHead(t *testing.T) {
	first := releasedAs{version: "1.0.0", edges: edges{}}
	for name, test := range map[string]struct {
		bundles []releasedAs
		want    []string
	}{
		"one version": {bundles: []releasedAs{first}, want: []string{"1.0.0"}},
		"directly, by the range that is the default": {
			bundles: []releasedAs{first, {"1.1.0", edges{replaces: "1.0.0"}}, {"1.2.0", edges{replaces: "1.1.0"}}},
			want:    []string{"1.0.0 1.2.0", "1.1.0 1.2.0", "1.2.0"},
		},
		"one after the other, without a range": {
			bundles: []releasedAs{
				first, {"1.1.0", edges{replaces: "1.0.0", skipRange: "-"}}, {"1.2.0", edges{replaces: "1.1.0", skipRange: "-"}},
			},
			want: []string{"1.0.0 1.1.0 1.2.0", "1.1.0 1.2.0", "1.2.0"},
		},
		"past a skipped version, and from it": {
			bundles: []releasedAs{
				first, {"1.1.0", edges{replaces: "1.0.0", skipRange: "-"}},
				{"1.2.0", edges{replaces: "1.0.0", skips: "1.1.0", skipRange: "-"}},
			},
			want: []string{"1.0.0 1.2.0", "1.1.0 1.2.0", "1.2.0"},
		},
		"by a stop that a narrow range makes": {
			bundles: []releasedAs{
				first, {"1.1.0", edges{replaces: "1.0.0"}}, {"1.2.0", edges{replaces: "1.1.0", skipRange: ">=1.1.0 <1.2.0"}},
			},
			want: []string{"1.0.0 1.1.0 1.2.0", "1.1.0 1.2.0", "1.2.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			slices.Reverse(test.bundles) // in whatever order they are named
			made, err := catalogued(t, test.bundles...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, ways(t, made)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestACatalogThatStrandsAVersionIsRefused(t *testing.T) {
	first := releasedAs{version: "1.0.0", edges: edges{}}
	for name, test := range map[string]struct {
		bundles []releasedAs
		want    string
	}{
		"nothing replaces the first": {
			bundles: []releasedAs{first, {"1.1.0", edges{}}},
			want: "channel stable: it has 2 heads, toy.v1.0.0, toy.v1.1.0: " +
				"each version but the last must be replaced or skipped by another one",
		},
		"the way branches": {
			bundles: []releasedAs{
				first, {"1.1.0", edges{replaces: "1.0.0", skipRange: "-"}}, {"1.2.0", edges{replaces: "1.0.0", skipRange: "-"}},
			},
			want: "channel stable: it has 2 heads, toy.v1.1.0, toy.v1.2.0: " +
				"each version but the last must be replaced or skipped by another one",
		},
		"a version twice": {bundles: []releasedAs{first, first}, want: "channel stable: toy.v1.0.0 is in it twice"},
		"an edge backwards": {
			bundles: []releasedAs{{"1.0.0", edges{replaces: "1.0.0"}}}, want: "REPLACES 1.0.0 isn't earlier than VERSION 1.0.0",
		},
		"a skip backwards": {
			bundles: []releasedAs{{"1.0.0", edges{replaces: "0.1.0", skips: "2.0.0"}}}, want: "SKIPS 2.0.0 isn't earlier than VERSION 1.0.0",
		},
		"skipped and replaced": {
			bundles: []releasedAs{{"1.0.0", edges{replaces: "0.1.0", skips: "0.1.0"}}},
			want:    "REPLACES 0.1.0 is also in SKIPS: a version that nobody should stop at isn't followed",
		},
		"skips alone": {
			bundles: []releasedAs{{"1.0.0", edges{skips: "0.1.0"}}},
			want:    "SKIPS without REPLACES: OLM needs the version before the skipped ones",
		},
		"no version": {
			bundles: []releasedAs{{"1.0.0", edges{replaces: "v0.1.0"}}},
			want:    `REPLACES "v0.1.0" is no semantic version, such as 1.2.3: Invalid character(s) found in major number "v0"`,
		},
		"no range": {
			bundles: []releasedAs{{"1.0.0", edges{skipRange: "all"}}},
			want: `SKIP_RANGE "all" is no range of versions, such as >=1.0.0 <1.2.0: ` +
				`Could not get version from string: "all"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := catalogued(t, test.bundles...)
			if err == nil {
				t.Fatalf("want %s", test.want)
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}
