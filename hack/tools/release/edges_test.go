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
	"github.com/google/go-cmp/cmp/cmpopts"
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
		o.version, o.edges = semver.MustParse(bundle.version), bundle.edges
		o.channels, o.defaultChannel = "stable", "stable"
		if err := o.check(); err != nil {
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

func TestEveryVersionLeadsToTheHead(t *testing.T) {
	first := releasedAs{version: "1.0.0", edges: edges{}}
	for name, bundles := range map[string][]releasedAs{
		"one version":                      {first},
		"by the range that is the default": {first, {"1.1.0", edges{replaces: "1.0.0"}}, {"1.2.0", edges{replaces: "1.1.0"}}},
		"without a range": {
			first, {"1.1.0", edges{replaces: "1.0.0", skipRange: "-"}}, {"1.2.0", edges{replaces: "1.1.0", skipRange: "-"}},
		},
		"past a skipped version": {
			first, {"1.1.0", edges{replaces: "1.0.0"}}, {"1.2.0", edges{replaces: "1.0.0", skips: "1.1.0", skipRange: "-"}},
		},
		"by a stop that a narrow range makes": {
			first, {"1.1.0", edges{replaces: "1.0.0"}}, {"1.2.0", edges{replaces: "1.1.0", skipRange: ">=1.1.0 <1.2.0"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			slices.Reverse(bundles) // in whatever order they are named
			made, err := catalogued(t, bundles...)
			if err != nil {
				t.Fatal(err)
			}
			var want []entry
			for _, one := range slices.Backward(bundles) {
				edge := entry{Name: named(one.version), SkipRange: one.edges.rangeBefore(semver.MustParse(one.version))}
				if one.edges.replaces != "" {
					edge.Replaces = named(one.edges.replaces)
				}
				for _, skip := range one.edges.skipped() {
					edge.Skips = append(edge.Skips, named(skip))
				}
				if edge.SkipRange == "-" {
					edge.SkipRange = ""
				}
				want = append(want, edge)
			}
			if diff := cmp.Diff(want, made.Entries, cmpopts.IgnoreUnexported(entry{})); diff != "" {
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
			want: "channel stable: it has 2 heads, shared-quota-operator.v1.0.0, shared-quota-operator.v1.1.0: " +
				"each version but the last must be replaced or skipped by another one",
		},
		"the way branches": {
			bundles: []releasedAs{
				first, {"1.1.0", edges{replaces: "1.0.0", skipRange: "-"}}, {"1.2.0", edges{replaces: "1.0.0", skipRange: "-"}},
			},
			want: "channel stable: it has 2 heads, shared-quota-operator.v1.1.0, shared-quota-operator.v1.2.0: " +
				"each version but the last must be replaced or skipped by another one",
		},
		"only a range leads on": {
			bundles: []releasedAs{first, {"1.1.0", edges{replaces: "1.0.0"}}, {"1.2.0", edges{replaces: "0.9.0", skips: "1.1.0"}}},
			want:    "channel stable: shared-quota-operator.v1.0.0 doesn't lead to shared-quota-operator.v1.2.0",
		},
		"a version twice": {bundles: []releasedAs{first, first}, want: "channel stable: shared-quota-operator.v1.0.0 is in it twice"},
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
