// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

var addition = regexp.MustCompile(`^// ([\w./-]+\.go):(?: (.*))?\n$`)

// added returns the files that the go blocks of a page change, by their path in the repository.
func added(repository fs.FS, page []byte) (map[string]string, error) {
	blocks, err := parse(page)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, block := range blocks {
		if block.kind != additions {
			continue
		}
		path, behind := "", 0
		for line := range strings.Lines(block.text) {
			found := addition.FindStringSubmatch(line)
			if found == nil {
				if path == "" {
					return nil, fmt.Errorf("line %d: the block doesn't begin with a file", block.line)
				}
				files[path] = files[path][:behind] + line + files[path][behind:]
				behind += len(line)
				continue
			}
			path = found[1]
			if _, known := files[path]; !known {
				content, err := fs.ReadFile(repository, path)
				if err != nil && found[2] != "" {
					return nil, err
				}
				files[path] = string(content)
			}
			if behind = len(files[path]); found[2] == "" {
				continue
			}
			if strings.Count(files[path], found[2]+"\n") != 1 {
				return nil, fmt.Errorf("line %d: want %q at the end of one line of %s", block.line, found[2], path)
			}
			behind = strings.Index(files[path], found[2]) + len(found[2]) + 1
		}
	}
	return files, nil
}

func TestAdded(t *testing.T) {
	repository := fstest.MapFS{"a/list.go": {Data: []byte("package a\n\nvar list = []int{\n\t1,\n}\n")}}
	page := "```go\n// a/list.go: var list = []int{\n\t2,\n// a/list.go:\nfunc f() {}\n// b/new.go:\npackage b\n```\n"
	got, err := added(repository, []byte(page))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a/list.go": "package a\n\nvar list = []int{\n\t2,\n\t1,\n}\nfunc f() {}\n", "b/new.go": "package b\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want,+got):\n%s", diff)
	}
	for _, wrong := range []string{"```go\nfunc f() {}\n```\n", "```go\n// a/list.go: nothing\n\t2,\n```\n", "```go\n// a/none.go: text\n\t2,\n```\n"} {
		if _, err := added(repository, []byte(wrong)); err == nil {
			t.Errorf("want an error for %q", wrong)
		}
	}
}

// The examples of docs/development.md are compiled into the operator's packages and the plugin, and tested there.
func TestAdditions(t *testing.T) {
	root, err := harness.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	overlay := overlayOf(t, root)
	t.Run("pass the tests of their packages, which name the missing pages", func(t *testing.T) { testAdditions(t, root, overlay) })
	t.Run("work in the plugin", func(t *testing.T) { runAdditions(t, root, overlay) })
}

// overlayOf returns the flag by which go takes the changed files for those of the repository.
func overlayOf(t *testing.T, root string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "development.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := added(os.DirFS(root), page)
	if err != nil || len(files) == 0 {
		t.Fatalf("docs/development.md adds %v, %v", slices.Sorted(maps.Keys(files)), err)
	}
	dir, replaced := t.TempDir(), map[string]string{}
	for path, content := range files {
		copied := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(copied, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(root, path)] = copied
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	// The result of this test is cached until one of these changes.
	for _, read := range []string{"api", "cmd/kubectl-crq", "controllers/status", "internal", "test/builders"} {
		if err := filepath.WalkDir(filepath.Join(root, read), func(string, fs.DirEntry, error) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return "-overlay=" + file
}

func testAdditions(t *testing.T, root, overlay string) {
	tests := exec.CommandContext(t.Context(), "go", "test", overlay, "-vet=off", "-v",
		"-run=^(TestEveryDocumentedName.*|TestEveryNameIs.*|TestLister.*|TestEachTrouble.*|TestEveryReason.*|TestEveryCommand.*)$",
		"./internal/evaluation", "./internal/apiserver", "./controllers/status", "./cmd/kubectl-crq")
	tests.Dir = root
	output, _ := tests.CombinedOutput() // it fails, because pages are missing
	var failed []string
	for _, found := range regexp.MustCompile(`(?m)^--- FAIL: (\w+)`).FindAllStringSubmatch(string(output), -1) {
		failed = append(failed, found[1])
	}
	slices.Sort(failed)
	want := []string{"TestEveryCommandIsDocumented", "TestEveryNameIsDocumented", "TestEveryReasonIsDocumentedUnderItsCondition"}
	if diff := cmp.Diff(want, failed); diff != "" {
		t.Fatalf("failing tests (-want,+got):\n%s\n%s", diff, output)
	}
	for _, want := range []string{
		"--- PASS: TestEveryDocumentedNameIsChargedAndCounted/limit/podtemplates ", "podtemplates is missing",
		"--- PASS: TestListerGivesWhatEvaluatorsLookInto ",
		"--- PASS: TestEachTroubleSaysWhatToDoNext ", `"Empty NoneSelected"`, `"Empty Selected"`,
		"--- PASS: TestEveryCommandSaysThatThereIsNoCluster/fullest ", "(#fullest)",
	} {
		if !strings.Contains(string(output), want) {
			t.Errorf("%q is missing:\n%s", want, output)
		}
	}
}

func runAdditions(t *testing.T, root, overlay string) {
	plugin := filepath.Join(t.TempDir(), "kubectl-crq")
	build := exec.CommandContext(t.Context(), "go", "build", overlay, "-o", plugin, "./cmd/kubectl-crq")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	server := httptest.NewServer(http.HandlerFunc(serveQuota))
	defer server.Close()
	for args, want := range map[string]string{
		"--help":         "fullest      Show full quotas",
		"fullest":        "team    pods       4      0          ?      5      80%",
		"describe team":  "Empty  True     NoneSelected",
		"fullest --help": "Output format.",
	} {
		call := exec.CommandContext(t.Context(), plugin, append(strings.Fields(args), "--server="+server.URL)...)
		call.Env = append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG=")
		output, err := call.CombinedOutput()
		if err != nil || !strings.Contains(normal(string(output)), normal(want)) {
			t.Errorf("%s: want %q, got %v:\n%s", args, want, err, output)
		}
	}
}

// serveQuota answers as an API server that has one quota, with the condition that was added.
func serveQuota(w http.ResponseWriter, r *http.Request) {
	const group = `"groupVersion":"quota.sharedquota.dev/v1"`
	quota := `{"metadata":{"name":"team"},"spec":{"quota":{"hard":{"pods":"5"}}},"status":{
		"total":{"hard":{"pods":"5"},"used":{"pods":"4"}},
		"conditions":[{"type":"Empty","status":"True","reason":"NoneSelected","message":"no namespace matches: correct the selector"}]}}`
	answer, ok := map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","groups":[{"name":"quota.sharedquota.dev","versions":[{` + group + `,"version":"v1"}]}]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"events","kind":"Event","namespaced":true,"verbs":["list"]}]}`,
		"/api/v1/namespaces/default/events": `{"kind":"EventList","apiVersion":"v1","items":[]}`,
		"/apis/quota.sharedquota.dev/v1": `{"kind":"APIResourceList",` + group + `,"resources":[
			{"name":"clusterresourcequotas","kind":"ClusterResourceQuota","verbs":["get","list"]}]}`,
		"/apis/quota.sharedquota.dev/v1/clusterresourcequotas":      `{"items":[` + quota + `]}`,
		"/apis/quota.sharedquota.dev/v1/clusterresourcequotas/team": quota,
	}[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprint(w, answer)
}
