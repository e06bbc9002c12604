// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"

	"sigs.k8s.io/yaml"
)

// krewFile is the manifest by which Krew installs the plugin; its name is the plugin's.
const krewFile = "crq.yaml"

// krewPlugin is a manifest: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
type krewPlugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec krewSpec `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Caveats          string         `json:"caveats"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string     `json:"uri"`
	SHA256 string     `json:"sha256"`
	Bin    string     `json:"bin"`
	Files  []krewFrom `json:"files"`
}

type krewFrom struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// krewManifest offers the plugin for each platform, by the archives that are packed.
func (r *release) krewManifest(plugins []binary) ([]byte, error) {
	manifest := krewPlugin{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin"}
	manifest.Metadata.Name = "crq"
	manifest.Spec = krewSpec{
		Version: "v" + r.version, Homepage: r.homepage,
		ShortDescription: "Look at quotas that several namespaces share",
		Description: "Shows who uses what of a ClusterResourceQuota of the shared quota operator,\n" +
			"whether a manifest fits, why a workload has no pods, and what a change of a\n" +
			"quota would refuse.\n",
		Caveats: "It needs a cluster with the shared quota operator:\n" + r.homepage + "\n",
	}
	for _, built := range plugins {
		archive, name := built.archiveName(r.version), built.fileName()
		one := krewPlatform{
			URI: r.url + "/" + archive, SHA256: sum(r.files[archive]), Bin: name,
			Files: []krewFrom{{From: name, To: "."}, {From: "LICENSE", To: "."}},
		}
		one.Selector.MatchLabels = map[string]string{"os": built.platform.os, "arch": built.platform.arch}
		manifest.Spec.Platforms = append(manifest.Spec.Platforms, one)
	}
	return yaml.Marshal(manifest)
}

// sum is a file's SHA-256 in hexadecimal.
func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}
