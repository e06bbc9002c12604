// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// notesFile is what the changelog says of the release, if it says something.
const notesFile = "NOTES.md"

// sumsFile lists the sums of all other files, as sha256sum does.
const sumsFile = "SHA256SUMS"

// release is what is published, and what it is made of.
type release struct {
	version string
	// root is the repository's, build a directory that make has put the manifests into, out that of the release.
	root, build, out string
	chart, image     string
	homepage, url    string
	platforms        []string
	at               time.Time
	// files are name -> content.
	files map[string][]byte
}

// writeFiles makes all files of a release, and replaces the directory of the last one.
func writeFiles(args []string) error {
	r := release{files: map[string][]byte{}}
	flags := newFlags("files")
	text := flags.String("version", "", versionUsage)
	flags.StringVar(&r.root, "root", ".", "Root of the repository.")
	flags.StringVar(&r.build, "build", "", "Directory with install.yaml and the bundle.")
	flags.StringVar(&r.out, "out", "", "Directory to write to; what it holds is deleted.")
	flags.StringVar(&r.chart, "chart", "", "Directory of the Helm chart.")
	flags.StringVar(&r.image, "image", "", "Image that the chart installs, with a tag.")
	flags.StringVar(&r.homepage, "homepage", "", "Address of the repository.")
	only := flags.String("platforms", "", "Platforms to build for, such as linux/amd64, separated by commas. By default all.")
	if err := parse(flags, args); err != nil {
		return err
	}
	err := required(map[string]string{
		"-build": r.build, "-out": r.out, "-chart": r.chart, "-image": r.image, "-homepage": r.homepage,
	})
	if err != nil {
		return err
	}
	version, err := parseVersion(*text)
	if err != nil {
		return err
	}
	r.version, r.platforms = version.String(), wanted(*only)
	r.url = r.homepage + "/releases/download/v" + r.version
	if err := checkImage(r.image); err != nil {
		return err
	}
	if err := checkPlatforms(r.platforms); err != nil {
		return err
	}
	if r.at, err = commitTime(r.root); err != nil {
		return err
	}
	if text, err := notes(r.root, r.version); err == nil {
		r.files[notesFile] = []byte(text)
	}
	if err := errors.Join(r.programs(), r.manifests(), r.helm()); err != nil {
		return err
	}
	return r.write()
}

// programs builds the plugin and the operator, packs the plugin, and lists what both were linked from.
func (r *release) programs() error {
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var plugins, operators []binary
	for _, each := range []struct {
		program program
		built   *[]binary
	}{{plugin, &plugins}, {operator, &operators}} {
		for _, on := range each.program.platforms(r.platforms) {
			made, err := each.program.build(r.root, dir, on, r.version)
			if err != nil {
				return err
			}
			*each.built = append(*each.built, made)
		}
	}
	if err := r.pack(plugins); err != nil {
		return err
	}
	return r.bills(plugins, operators)
}

// pack archives the plugin for each platform, and writes the manifest by which Krew installs it.
func (r *release) pack(plugins []binary) error {
	licence, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	for _, built := range plugins {
		content, err := built.archive(licence, r.at)
		if err != nil {
			return err
		}
		r.files[built.archiveName(r.version)] = content
	}
	if r.files[krewFile], err = r.krewManifest(plugins); err != nil {
		return err
	}
	return nil
}

func (r *release) bills(plugins, operators []binary) error {
	licences, err := licencesOf(r.root, slices.Concat(plugins, operators))
	if err != nil {
		return err
	}
	var archives, inImage []shipped
	for _, built := range plugins {
		name := built.archiveName(r.version)
		archives = append(archives, shipped{built, name, sum(r.files[name])})
	}
	for _, built := range operators {
		content, err := os.ReadFile(built.path)
		if err != nil {
			return err
		}
		// Where the image has it.
		inImage = append(inImage, shipped{built, "/" + built.program.name, sum(content)})
	}
	for name, all := range map[string][]shipped{"kubectl-crq": archives, "shared-quota-operator": inImage} {
		if len(all) == 0 {
			continue
		}
		file := name + "_v" + r.version + ".spdx.json"
		if r.files[file], err = billOf(name, r.version, r.url, all, licences, r.at); err != nil {
			return err
		}
	}
	return nil
}

// manifests takes what make has built: the one file to install by, and the OLM bundle.
func (r *release) manifests() error {
	var err error
	if r.files["install.yaml"], err = os.ReadFile(filepath.Join(r.build, "install.yaml")); err != nil {
		return err
	}
	bundle := contents{}
	if err := bundle.addTree(r.build, ""); err != nil {
		return err
	}
	delete(bundle, "install.yaml")
	r.files["shared-quota-operator-bundle_v"+r.version+".tar.gz"], err = bundle.targz(r.at)
	return err
}

// chartVersions are the lines of Chart.yaml that name the release.
var chartVersions = regexp.MustCompile(`(?m)^(version|appVersion):.*$`)

// chartImage is the image in values.yaml: its repository, tag and digest.
var chartImage = regexp.MustCompile(`(?m)^(image:\n(?:  #.*\n)*  repository: )(.*)(\n  tag: )(.*)((?:\n  #.*)*\n  digest: )(.*)$`)

// helm packs the chart with the release's version and image.
func (r *release) helm() error {
	name, files := filepath.Base(r.chart), contents{}
	if err := files.addTree(filepath.Join(r.root, r.chart), name); err != nil {
		return err
	}
	about := files[name+"/Chart.yaml"]
	if found := len(chartVersions.FindAll(about.content, -1)); found != 2 {
		return fmt.Errorf("%s/Chart.yaml has %d lines with version or appVersion, want 2", r.chart, found)
	}
	about.content = chartVersions.ReplaceAll(about.content, []byte(`$1: "`+r.version+`"`))
	files[name+"/Chart.yaml"] = about
	values := files[name+"/values.yaml"]
	if found := len(chartImage.FindAll(values.content, -1)); found != 1 {
		return fmt.Errorf("%s/values.yaml names %d images, want 1", r.chart, found)
	}
	repository, digest, pinned := strings.Cut(r.image, "@")
	named := `${1}"` + repository + `"${3}${4}${5}"` + digest + `"`
	if colon := strings.LastIndex(repository, ":"); !pinned {
		named = `${1}"` + repository[:colon] + `"${3}"` + repository[colon+1:] + `"${5}${6}`
	}
	values.content = chartImage.ReplaceAll(values.content, []byte(named))
	files[name+"/values.yaml"] = values
	var err error
	r.files[name+"-"+r.version+".tgz"], err = files.targz(r.at)
	return err
}

// write replaces the directory of the release.
func (r *release) write() error {
	var sums bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		fmt.Fprintf(&sums, "%s  %s\n", sum(r.files[name]), name)
	}
	r.files[sumsFile] = sums.Bytes()
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for name, content := range r.files {
		if err := os.WriteFile(filepath.Join(r.out, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
