// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const (
	noAssertion = "NOASSERTION"
	authors     = "The Shared Quota Authors"
)

// shipped is what a user gets of a binary: an archive, or the file in the image.
type shipped struct {
	binary
	fileName string
	sum      string
}

// sbom lists what the shipped binaries of one program were linked from, by their own build information.
type sbom struct {
	document *spdx.Document
	licences licences
	// listed are the identifiers of packages that the document has.
	listed map[common.ElementID]bool
}

// billOf returns the document in JSON. The namespace is unique to what is shipped.
func billOf(name, version, url string, all []shipped, licences licences, at time.Time) ([]byte, error) {
	bill := sbom{
		licences: licences, listed: map[common.ElementID]bool{},
		document: &spdx.Document{
			SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name + " v" + version,
			CreationInfo: &spdx.CreationInfo{
				Creators: []common.Creator{
					{CreatorType: "Organization", Creator: authors}, {CreatorType: "Tool", Creator: "shared-quota-operator/hack/release"},
				},
				Created: at.UTC().Format(time.RFC3339),
			},
		},
	}
	var sums []string
	for _, one := range all {
		sums = append(sums, one.sum)
		bill.add(name, version, url, one)
	}
	bill.document.DocumentNamespace = url + "/" + name + "-" + sum([]byte(strings.Join(sums, "\n")))
	var text bytes.Buffer
	if err := spdxjson.Write(bill.document, &text, spdxjson.Indent("  "), spdxjson.EscapeHTML(false)); err != nil {
		return nil, fmt.Errorf("writing the SBOM of %s: %w", name, err)
	}
	return text.Bytes(), nil
}

// add describes what is shipped, and all that is linked into it.
func (b *sbom) add(name, version, url string, one shipped) {
	program := identifier("Program", name, one.platform.os, one.platform.arch)
	location := noAssertion
	if strings.HasPrefix(one.fileName, name) {
		location = url + "/" + one.fileName
	}
	b.document.Packages = append(b.document.Packages, &spdx.Package{
		PackageName: name, PackageSPDXIdentifier: program, PackageVersion: "v" + version, PackageFileName: one.fileName,
		PackageSupplier:         &common.Supplier{SupplierType: "Organization", Supplier: authors},
		PackageDownloadLocation: location,
		PackageChecksums:        []common.Checksum{{Algorithm: common.SHA256, Value: one.sum}},
		PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: noAssertion,
		PackageComment: fmt.Sprintf("For %s. Built by %s.", one.platform, one.info.GoVersion), PrimaryPackagePurpose: "APPLICATION",
		PackageExternalReferences: purl(one.info.Main.Path, "v"+version),
	})
	b.relate("DOCUMENT", "DESCRIBES", program)
	b.require(program, "stdlib", strings.TrimPrefix(one.info.GoVersion, "go"), "", b.licences.of("stdlib"))
	for _, module := range one.info.Deps {
		linked := module
		if module.Replace != nil {
			linked = module.Replace
		}
		b.require(program, linked.Path, linked.Version, linked.Sum, b.licences.of(module.Path))
	}
}

// require says that a program was linked from a module. A replaced one has its licence under the original path.
func (b *sbom) require(program common.ElementID, path, version, sum, licence string) {
	module := identifier("Module", path, version)
	b.relate(program, "DEPENDS_ON", module)
	if b.listed[module] {
		return
	}
	b.listed[module] = true
	one := &spdx.Package{
		PackageName: path, PackageSPDXIdentifier: module, PackageVersion: version,
		PackageDownloadLocation: noAssertion, PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: licence,
		PackageCopyrightText: noAssertion, PrimaryPackagePurpose: "LIBRARY", PackageExternalReferences: purl(path, version),
	}
	if sum != "" {
		one.PackageSourceInfo = "hash of the module in go.sum: " + sum
	}
	b.document.Packages = append(b.document.Packages, one)
}

func (b *sbom) relate(from common.ElementID, how string, to common.ElementID) {
	b.document.Relationships = append(b.document.Relationships, &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(from)), RefB: common.MakeDocElementID("", string(to)), Relationship: how,
	})
}

var notInIdentifiers = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func identifier(parts ...string) common.ElementID {
	return common.ElementID(notInIdentifiers.ReplaceAllString(strings.Join(parts, "-"), "-"))
}

// purl is by what scanners look a module up.
func purl(path, version string) []*spdx.PackageExternalReference {
	return []*spdx.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
		Locator: "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B"),
	}}
}

// modules are the paths of all that was linked.
func modules(binaries []binary) map[string]*debug.Module {
	all := map[string]*debug.Module{}
	for _, one := range binaries {
		for _, module := range one.info.Deps {
			all[module.Path] = module
		}
	}
	return all
}
