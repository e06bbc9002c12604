// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var commitAt = time.Date(2026, 5, 17, 12, 30, 20, 0, time.UTC)

// writeTree writes files of the given mode and time.
func writeTree(t *testing.T, root string, mode os.FileMode, at time.Time, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chmod(path, mode), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
}

// releasedFrom packs a release of small files that have the given mode and time, in a zone of its own.
func releasedFrom(t *testing.T, mode os.FileMode, at time.Time) *release {
	t.Helper()
	root := t.TempDir()
	writeTree(t, root, mode, at, map[string]string{
		"LICENSE": "Apache\n", "build/install.yaml": "kind: Namespace\n", "build/bundle/manifests/csv.yaml": "kind: X\n",
		"build/bundle.Dockerfile": "FROM scratch\n", "charts/toy/Chart.yaml": "name: toy\nversion: 0.0.0\nappVersion: 0.0.0\n",
		"charts/toy/templates/a.yaml": "kind: Y\n", "charts/toy/values.yaml": "image:\n  # Yours.\n  repository: toy\n  tag: dev\n  digest: ''\n",
		"kubectl-crq": "program", "kubectl-crq.exe": "program",
	})
	r := &release{
		version: "1.2.3", root: root, build: filepath.Join(root, "build"), out: filepath.Join(root, "out"), chart: "charts/toy",
		image:    "registry.example:5000/toy:v1.2.3",
		homepage: "https://example.org/toy", url: "https://example.org/toy/releases/download/v1.2.3",
		at: commitAt.In(at.Location()), files: map[string][]byte{},
	}
	var plugins []binary
	for _, on := range plugin.platforms(nil) {
		one := binary{program: plugin, platform: on, info: built()}
		one.path = filepath.Join(root, one.fileName())
		plugins = append(plugins, one)
	}
	if err := errors.Join(r.pack(plugins), r.manifests(), r.helm(), r.write()); err != nil {
		t.Fatal(err)
	}
	return r
}

func built() *debug.BuildInfo {
	return &debug.BuildInfo{
		GoVersion: "go1.26.0", Main: debug.Module{Path: "example.org/toy"},
		Deps: []*debug.Module{
			{Path: "example.org/lib", Version: "v1.0.0+incompatible", Sum: "h1:abc="},
			{Path: "example.org/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/new", Version: "v2.0.0", Sum: "h1:def="}},
		},
	}
}

func TestFilesAreTheSameWhateverModeTimeAndZone(t *testing.T) {
	one := releasedFrom(t, 0o644, time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))
	two := releasedFrom(t, 0o755, time.Date(2020, 2, 3, 4, 5, 6, 7, time.FixedZone("far", 20700)))
	if diff := cmp.Diff(one.files, two.files); diff != "" {
		t.Errorf("made twice, they differ:\n%s", diff)
	}
	want := []string{
		"SHA256SUMS", "crq.yaml", "install.yaml",
		"kubectl-crq_v1.2.3_darwin_amd64.tar.gz", "kubectl-crq_v1.2.3_darwin_arm64.tar.gz",
		"kubectl-crq_v1.2.3_linux_amd64.tar.gz", "kubectl-crq_v1.2.3_linux_arm64.tar.gz",
		"kubectl-crq_v1.2.3_windows_amd64.zip", "kubectl-crq_v1.2.3_windows_arm64.zip",
		"shared-quota-operator-bundle_v1.2.3.tar.gz", "toy-1.2.3.tgz",
	}
	entries, err := os.ReadDir(one.out)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want,+got)\n%s", diff)
	}
}

// inTar returns what an archive has, as MODE OWNER TIME NAME, and the text of each file.
func inTar(t *testing.T, content []byte) (listed []string, texts map[string]string) {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(plain)
	texts = map[string]string{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return listed, texts
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		texts[header.Name] = string(text)
		listed = append(listed, fmt.Sprintf("%o %d%d%s%s %s %s", header.Mode, header.Uid, header.Gid, header.Uname, header.Gname,
			header.ModTime.UTC().Format(time.RFC3339), header.Name))
	}
}

func TestArchives(t *testing.T) {
	made := releasedFrom(t, 0o640, time.Now())
	at := " 00 " + commitAt.Format(time.RFC3339) + " "
	for name, want := range map[string][]string{
		"kubectl-crq_v1.2.3_darwin_arm64.tar.gz":     {"644" + at + "LICENSE", "755" + at + "kubectl-crq"},
		"shared-quota-operator-bundle_v1.2.3.tar.gz": {"644" + at + "bundle.Dockerfile", "644" + at + "bundle/manifests/csv.yaml"},
		"toy-1.2.3.tgz": {"644" + at + "toy/Chart.yaml", "644" + at + "toy/templates/a.yaml", "644" + at + "toy/values.yaml"},
	} {
		listed, texts := inTar(t, made.files[name])
		if diff := cmp.Diff(want, listed); diff != "" {
			t.Errorf("%s (-want,+got)\n%s", name, diff)
		}
		if chart, ok := texts["toy/Chart.yaml"]; ok {
			if diff := cmp.Diff("name: toy\nversion: \"1.2.3\"\nappVersion: \"1.2.3\"\n", chart); diff != "" {
				t.Errorf("Chart.yaml (-want,+got)\n%s", diff)
			}
			want := "image:\n  # Yours.\n  repository: \"registry.example:5000/toy\"\n  tag: \"v1.2.3\"\n  digest: ''\n"
			if diff := cmp.Diff(want, texts["toy/values.yaml"]); diff != "" {
				t.Errorf("values.yaml (-want,+got)\n%s", diff)
			}
		}
	}
	zipped := made.files["kubectl-crq_v1.2.3_windows_amd64.zip"]
	archive, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, file := range archive.File {
		listed = append(listed, fmt.Sprintf("%o %s %s", file.Mode(), file.Modified.UTC().Format(time.RFC3339), file.Name))
	}
	want := []string{"644 " + commitAt.Format(time.RFC3339) + " LICENSE", "755 " + commitAt.Format(time.RFC3339) + " kubectl-crq.exe"}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("the zip (-want,+got)\n%s", diff)
	}
}

// The chart of the repository has the lines that a release replaces.
func TestTheRepositorysChartNamesTheRelease(t *testing.T) {
	for image, want := range map[string][]string{
		"registry.example/a:v1.2.3": {`repository: "registry.example/a"`, `tag: "v1.2.3"`, `digest: ""`},
		"registry.example/a@sha256:" + strings.Repeat("0", 64): {
			`repository: "registry.example/a"`, "tag: dev", `digest: "sha256:` + strings.Repeat("0", 64) + `"`,
		},
	} {
		r := &release{
			version: "1.2.3", root: "../..", chart: "charts/shared-quota-operator", image: image, at: commitAt, files: map[string][]byte{},
		}
		if err := r.helm(); err != nil {
			t.Fatal(err)
		}
		_, texts := inTar(t, r.files["shared-quota-operator-1.2.3.tgz"])
		for _, line := range want {
			if got := texts["shared-quota-operator/values.yaml"]; !strings.Contains(got, line) {
				t.Errorf("with the image %s, values.yaml lacks %s", image, line)
			}
		}
	}
}

func TestSums(t *testing.T) {
	made := releasedFrom(t, 0o640, time.Now())
	var names []string
	for _, line := range lines(string(made.files[sumsFile])) {
		found := regexp.MustCompile(`^([0-9a-f]{64}) {2}(\S+)$`).FindStringSubmatch(line)
		if len(found) != 3 || sum(made.files[found[2]]) != found[1] {
			t.Fatalf("%q is no line of sha256sum, or another file's", line)
		}
		names = append(names, found[2])
	}
	if len(names) != len(made.files)-1 || !slices.IsSorted(names) {
		t.Errorf("got %v, want all of %d files but %s", names, len(made.files), sumsFile)
	}
}

// The rules are those of Krew's documentation, and of its validation.
func TestKrewManifest(t *testing.T) {
	made := releasedFrom(t, 0o640, time.Now())
	var manifest krewPlugin
	if err := yaml.UnmarshalStrict(made.files[krewFile], &manifest); err != nil {
		t.Fatal(err)
	}
	spec := manifest.Spec
	for name, diff := range map[string]string{
		"apiVersion": cmp.Diff("krew.googlecontainertools.github.com/v1alpha2", manifest.APIVersion),
		"kind":       cmp.Diff("Plugin", manifest.Kind),
		"name":       cmp.Diff(strings.TrimSuffix(krewFile, ".yaml"), manifest.Metadata.Name),
		"version":    cmp.Diff("v1.2.3", spec.Version),
		"platforms":  cmp.Diff(6, len(spec.Platforms)),
		"short":      cmp.Diff(true, regexp.MustCompile(`^.{1,50}$`).MatchString(spec.ShortDescription)),
	} {
		if diff != "" {
			t.Errorf("%s (-want,+got)\n%s", name, diff)
		}
	}
	selected := map[string]bool{}
	for _, one := range spec.Platforms {
		labels := one.Selector.MatchLabels
		on := labels["os"] + "/" + labels["arch"]
		if selected[on] || len(labels) != 2 {
			t.Errorf("%v selects what another platform does, or by more than os and arch", labels)
		}
		selected[on] = true
		name, ok := strings.CutPrefix(one.URI, "https://example.org/toy/releases/download/v1.2.3/")
		content := made.files[name]
		if !ok || content == nil || sum(content) != one.SHA256 || !strings.Contains(name, "_"+labels["os"]+"_"+labels["arch"]+".") {
			t.Errorf("%s: the archive is not there, is another platform's, or has another sum", one.URI)
		}
		wantBin := "kubectl-crq"
		if labels["os"] == "windows" {
			wantBin += ".exe"
		}
		if diff := cmp.Diff([]krewFrom{{wantBin, "."}, {"LICENSE", "."}}, one.Files); diff != "" || one.Bin != wantBin {
			t.Errorf("%s: bin %s, files (-want,+got)\n%s", on, one.Bin, diff)
		}
	}
}
