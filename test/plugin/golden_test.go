/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
