// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var update = flag.Bool("update", false, "write the files under testdata anew")

// variable is what differs from run to run -> what stands for it.
var variable = []struct {
	pattern *regexp.Regexp
	becomes string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	// An age of less than ten minutes, as kubectl writes it: 5s, 2m10s, 3m. It stands
	// alone. Amounts such as 300m are none.
	{regexp.MustCompile(`(?m)(^|[ (])(\dm)?\d+s( |[,)]|$)`), "${1}AGE${3}"},
	{regexp.MustCompile(`(?m)(^|[ (])\dm( |[,)]|$)`), "${1}AGE${2}"},
	{regexp.MustCompile(`"resourceVersion": "\d+"`), `"resourceVersion": "N"`},
	// What an age leaves of a column's width.
	{regexp.MustCompile(` {2,}`), "  "},
	{regexp.MustCompile(`(?m) +$`), ""},
}

// wantGolden compares what was printed with testdata/NAME.golden.
func wantGolden(name, printed string) {
	GinkgoHelper()
	for _, v := range variable {
		printed = v.pattern.ReplaceAllString(printed, v.becomes)
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		Expect(os.WriteFile(path, []byte(printed), 0o600)).To(Succeed())
		return
	}
	want, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	if diff := cmp.Diff(string(want), printed); diff != "" {
		Fail("unlike " + path + " (-want,+got):\n" + diff)
	}
}
