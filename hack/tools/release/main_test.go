// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	for text, want := range map[string]string{
		"1.2.3": "", "0.1.0-rc.1": "",
		"":        "VERSION is missing: name one, such as VERSION=1.2.3",
		"v1.2.3":  `VERSION "v1.2.3" begins with a v: write 1.2.3`,
		"1.2":     `VERSION "1.2" is no semantic version, such as 1.2.3 or 1.2.3-rc.1: `,
		"latest":  `VERSION "latest" is no semantic version, such as 1.2.3 or 1.2.3-rc.1: `,
		"1.2.3+b": `VERSION "1.2.3+b" has build metadata, which an image's tag can't hold: leave out +b`,
	} {
		_, err := parseVersion(text)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestImages(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for name, want := range map[string]bool{
		"shared-quota-operator:dev": true, "registry.example:5000/a/b:v1.2.3": true, "ghcr.io/a/b" + digest: true,
		"": false, "a/b": false, "A/b:1": false, "a:b|c": false, "a:b c": false, "a:b&": false, "https://a/b:1": false,
	} {
		if err := checkImage(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The SBOM has the sum of the operator that goreleaser builds, which must be that of the image.
func TestTheImageIsBuiltAlike(t *testing.T) {
	var files [2]string
	for i, name := range []string{"../../../Dockerfile", "../../../.goreleaser.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = strings.ReplaceAll(string(text), "\\\n", "")
	}
	for _, want := range []string{
		`CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH     go build -trimpath -buildvcs=false -ldflags="-s -w -X main.version=$VERSION" -o /manager .`,
		"  main: .\n  binary: manager\n  env: &env [CGO_ENABLED=0, GOFLAGS=-mod=readonly, GOWORK=off, GOEXPERIMENT=, GOFIPS140=off]\n" +
			"  flags: &flags [-trimpath, -buildvcs=false]\n  ldflags: [\"-s -w -X main.version={{ .Tag }}\"]\n",
	} {
		if !strings.Contains(files[0]+files[1], want) {
			t.Errorf("neither the Dockerfile nor .goreleaser.yaml has %s", want)
		}
	}
}
