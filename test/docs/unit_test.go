// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

func TestParse(t *testing.T) {
	page := "# Title\n\n<!-- test: kubectl create namespace shop -->\n\n```yaml\n# quota.yaml\nkind: X\n```\n\n" +
		"<!-- not run: needs an engine -->\n\n```sh\ndocker build \\\n  .\n```\n\n1. In a list:\n\n   ```console\n   $ kubectl get crq\n   NAME\n   ```\n"
	got, err := parse([]byte(page))
	if err != nil {
		t.Fatal(err)
	}
	want := []block{
		{kind: hidden, line: 3, text: "kubectl create namespace shop"},
		{kind: manifests, line: 6, text: "# quota.yaml\nkind: X\n"},
		{kind: shell, line: 13, text: "docker build \\\n  .\n", unrun: "needs an engine"},
		{kind: console, line: 20, text: "$ kubectl get crq\nNAME\n"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(block{})); diff != "" {
		t.Errorf("blocks (-want,+got):\n%s", diff)
	}
	if file := got[1].file(); file != "quota.yaml" {
		t.Errorf("file %q, want quota.yaml", file)
	}
	if diff := cmp.Diff([]command{{line: "docker build    ."}}, got[2].commands(), cmp.AllowUnexported(command{})); diff != "" {
		t.Errorf("commands (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff([]command{{line: "kubectl get crq", output: "NAME\n\n"}}, got[3].commands(), cmp.AllowUnexported(command{})); diff != "" {
		t.Errorf("commands (-want,+got):\n%s", diff)
	}
}

func TestParseTakesNoBlockThatNobodyWouldRun(t *testing.T) {
	for name, page := range map[string]string{
		"indented":              "text\n\n    make demo\n",
		"without a language":    "```\nmake demo\n```\n",
		"with another language": "```bash\nmake demo\n```\n",
	} {
		t.Run(name, func(t *testing.T) {
			if blocks, err := parse([]byte(page)); err == nil {
				t.Errorf("got %v, want an error", blocks)
			}
		})
	}
}

func TestSame(t *testing.T) {
	for name, test := range map[string]struct {
		shown, output string
		want          bool
	}{
		"blanks don't matter":         {"A   B\n", "A B\n", true},
		"nor do ages":                 {"x 6s y", "x 2m15s y", true},
		"amounts of CPU do":           {"cpu: 500m/2", "cpu: 400m/2", false},
		"words do":                    {"pods: 1/3", "pods: 2/3", false},
		"and what is missing":         {"a", "a\nb", false},
		"an ellipsis is anything":     {"a\n…\nd", "a\nb\nc\nd", true},
		"also within a line":          {"a … d", "a b c d", true},
		"but not what stands outside": {"a … e", "a b c d", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := same(test.shown, test.output); got != test.want {
				t.Errorf("same(%q, %q) = %t", test.shown, test.output, got)
			}
		})
	}
}

func TestCommandsThatFail(t *testing.T) {
	for output, want := range map[string]bool{
		"Error from server (Forbidden): no": true, "error: no": true, "Warning: hm\nError from server: no": true,
		"It doesn't fit: crq/team is short of pods: 2.": true, "It fits.": false,
		"Deployment/web lacks all 3 pods: crq/team is short of pods: 2.": true, "NAME\n": false, "": false,
	} {
		if got := (command{output: output}).fails(); got != want {
			t.Errorf("%q: got %t", output, got)
		}
	}
}

func TestCheckLinks(t *testing.T) {
	repository := fstest.MapFS{
		"README.md":        {Data: []byte("# Title\n\n![picture](docs/picture.svg) | [guide](docs/guide.md#hard-used) [elsewhere](https://x.example/#y)\n")},
		"docs/guide.md":    {Data: []byte("# Guide\n\n## Hard, `used`\n\n## Again\n\n## Again\n\n[up](../README.md#title) [second](#again-1)\n")},
		"docs/broken.md":   {Data: []byte("| a |\n| --- |\n| [gone](gone.md) [no heading](guide.md#hard) [nor here](#top) |\n")},
		"docs/picture.svg": {},
	}
	for _, page := range []string{"README.md", "docs/guide.md"} {
		if err := checkLinks(repository, page); err != nil {
			t.Error(err)
		}
	}
	err := checkLinks(repository, "docs/broken.md")
	for _, want := range []string{`"gone.md"`, `docs/guide.md has no heading of anchor "hard"`, `docs/broken.md has no heading of anchor "top"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	root, err := harness.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	listed, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "*.md", ":!:hack/vale/testdata").Output()
	if err != nil {
		t.Fatal(err)
	}
	pages := strings.Fields(string(listed))
	if !slices.Contains(pages, "README.md") || !slices.Contains(pages, "docs/concepts.md") {
		t.Fatalf("git lists %v", pages)
	}
	for _, page := range pages {
		if err := checkLinks(os.DirFS(root), page); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryBlockIsOneThatIsUnderstood(t *testing.T) {
	root, err := harness.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pages() {
		page, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(page); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
