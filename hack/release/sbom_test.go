// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// bill is the SBOM of two archives.
func bill(t *testing.T) []byte {
	t.Helper()
	var all []shipped
	for _, on := range plugin.platforms([]string{"linux/amd64", "linux/arm64"}) {
		one := binary{program: plugin, platform: on, info: built()}
		all = append(all, shipped{one, one.archiveName("1.2.3"), sum([]byte(on.String()))})
	}
	found := licences{"stdlib": "BSD-3-Clause", "example.org/lib": "MIT", "example.org/old": "ISC"}
	text, err := billOf("kubectl-crq", "1.2.3", "https://example.org/toy", all, found, commitAt)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What SPDX 2.3 obliges a document to have, by the library of its authors and by its schema.
func TestTheBillIsSPDX(t *testing.T) {
	text := bill(t)
	document, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	described, err := spdxlib.GetDescribedPackageIDs(document)
	if err != nil || len(described) != 2 {
		t.Errorf("it describes %v, want both archives: %v", described, err)
	}
	var fields struct {
		SPDXID            string           `json:"SPDXID"`
		SPDXVersion       string           `json:"spdxVersion"`
		DataLicense       string           `json:"dataLicense"`
		DocumentNamespace string           `json:"documentNamespace"`
		Packages          []map[string]any `json:"packages"`
		CreationInfo      struct {
			Created  string   `json:"created"`
			Creators []string `json:"creators"`
		} `json:"creationInfo"`
	}
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for name, diff := range map[string]string{
		"SPDXID":      cmp.Diff("SPDXRef-DOCUMENT", fields.SPDXID),
		"spdxVersion": cmp.Diff("SPDX-2.3", fields.SPDXVersion),
		"dataLicense": cmp.Diff("CC0-1.0", fields.DataLicense),
		"created":     cmp.Diff("2026-05-17T12:30:20Z", fields.CreationInfo.Created),
		"creators":    cmp.Diff(2, len(fields.CreationInfo.Creators)),
		"namespace":   cmp.Diff(true, regexp.MustCompile(`^https://[^#]+$`).MatchString(fields.DocumentNamespace)),
	} {
		if diff != "" {
			t.Errorf("%s (-want,+got)\n%s", name, diff)
		}
	}
	identifiers := map[string]bool{}
	for _, one := range fields.Packages {
		id, _ := one["SPDXID"].(string)
		if !regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`).MatchString(id) || identifiers[id] {
			t.Errorf("the identifier %q is not allowed, or another package's", id)
		}
		identifiers[id] = true
		for _, field := range []string{"name", "downloadLocation", "licenseDeclared", "versionInfo", "externalRefs"} {
			if one[field] == nil || one[field] == "" {
				t.Errorf("%s lacks %s", id, field)
			}
		}
		if analyzed, said := one["filesAnalyzed"].(bool); !said || analyzed || one["packageVerificationCode"] != nil {
			t.Errorf("%s: no file is analyzed, so it must say so, and have no code to verify them by", id)
		}
	}
}

func TestTheBillListsWhatIsLinked(t *testing.T) {
	document, err := spdxjson.Read(bytes.NewReader(bill(t)))
	if err != nil {
		t.Fatal(err)
	}
	got, licence := map[string]string{}, map[string]string{}
	for _, one := range document.Packages {
		if one.PackageFileName != "" {
			got[one.PackageFileName] = one.PackageChecksums[0].Value
			continue
		}
		got[one.PackageExternalReferences[0].Locator] = one.PackageSourceInfo
		licence[one.PackageName] = one.PackageLicenseDeclared
	}
	want := map[string]string{
		"kubectl-crq_v1.2.3_linux_amd64.tar.gz":            sum([]byte("linux/amd64")),
		"kubectl-crq_v1.2.3_linux_arm64.tar.gz":            sum([]byte("linux/arm64")),
		"pkg:golang/stdlib@1.26.0":                         "",
		"pkg:golang/example.org/lib@v1.0.0%2Bincompatible": "hash of the module in go.sum: h1:abc=",
		"pkg:golang/example.org/new@v2.0.0":                "hash of the module in go.sum: h1:def=",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
	wantLicence := map[string]string{"stdlib": "BSD-3-Clause", "example.org/lib": "MIT", "example.org/new": "ISC"}
	if diff := cmp.Diff(wantLicence, licence); diff != "" {
		t.Errorf("licences (-want,+got)\n%s", diff)
	}
	depends := 0
	for _, one := range document.Relationships {
		if one.Relationship == "DEPENDS_ON" {
			depends++
		}
	}
	if depends != 6 {
		t.Errorf("%d dependencies, want 3 of each archive", depends)
	}
}

func TestLicences(t *testing.T) {
	apache, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a known one":       {files: map[string]string{"LICENSE": string(apache)}, want: "Apache-2.0"},
		"an unknown one":    {files: map[string]string{"LICENSE": "Do whatever seems right to you."}, want: noAssertion},
		"one of two":        {files: map[string]string{"LICENSE": string(apache), "LICENSE.more": "Secret."}, want: noAssertion},
		"none":              {files: map[string]string{"README": "Apache"}, want: noAssertion},
		"a directory of it": {files: map[string]string{"LICENSE/a": string(apache)}, want: noAssertion},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeTree(t, dir, 0o600, commitAt, test.files)
			if got, err := licenceIn(filepath.Clean(dir)); err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}
