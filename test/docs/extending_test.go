// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// What docs/extending.md tells people to touch is there: files and tests, which it has as
// code, and functions, which have ().
func TestExtendingNamesWhatIsThere(t *testing.T) {
	root, err := harness.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "extending.md"))
	if err != nil {
		t.Fatal(err)
	}
	code := goCode(t, root)
	named := 0
	for _, match := range regexp.MustCompile("`([\\w.-]+/[\\w./-]+)`").FindAllStringSubmatch(string(page), -1) {
		if strings.HasPrefix(match[1], "count/") { // a name that quotas limit
			continue
		}
		named++
		if _, err := os.Stat(filepath.Join(root, match[1])); err != nil {
			t.Error(err)
		}
	}
	for _, match := range regexp.MustCompile("`(Test\\w+)`|\\b([a-zA-Z]+)\\(\\)").FindAllStringSubmatch(string(page), -1) {
		named++
		name := match[1] + match[2]
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^func (\([^)]*\) )?%s\(`, name)).MatchString(code) {
			t.Errorf("there is no function %s", name)
		}
	}
	if named < 40 {
		t.Errorf("%d names were found in the page, which are too few to be true", named)
	}
}

// goCode returns the text of all Go files of the repository.
func goCode(t *testing.T, root string) string {
	t.Helper()
	var code strings.Builder
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == "bin" || path == ".git" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		content, err := os.ReadFile(filepath.Join(root, path))
		code.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return code.String()
}
