// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	versioninfo "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// toldOf returns the lines that a replica logs about an API server that serves this.
func toldOf(t *testing.T, gitVersion string, served map[string][]string) []string {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		groupVersion := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/")
		resources, ok := served[groupVersion]
		var answer any
		switch {
		case r.URL.Path == "/version":
			answer = versioninfo.Info{GitVersion: gitVersion}
		case ok && resources == nil:
			w.WriteHeader(http.StatusInternalServerError)
			return
		case ok:
			list := metav1.APIResourceList{GroupVersion: groupVersion}
			for _, name := range resources {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
			}
			answer = list
		default:
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer api.Close()
	asked, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	if err := (lacking{log: log, asked: asked}).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestWhatAnAPIServerLacksIsTold(t *testing.T) {
	all := map[string][]string{}
	for _, f := range features() {
		all[f.groupVersion] = append(all[f.groupVersion], f.resource)
	}
	if told := toldOf(t, "v1.37.1", all); len(told) != 1 || !strings.Contains(told[0], `"lacking"=0`) {
		t.Errorf("of a server that has everything it tells %q", told)
	}
	told := toldOf(t, "v1.29.2-vendor.7", map[string][]string{"v1": {"pods"}})
	if len(told) != len(features())+2 || !strings.Contains(told[0], `"oldest"="1.30"`) {
		t.Fatalf("it tells %q, want that the version is too old, a line for each feature, and their number", told)
	}
	if last := told[len(told)-1]; !strings.Contains(last, fmt.Sprintf(`"lacking"=%d`, len(features()))) {
		t.Errorf("at last it tells %q, want how many features are lacking", last)
	}
	for i, f := range features() {
		if line := told[i+1]; !strings.Contains(line, f.resource) || !strings.Contains(line, f.without) || !strings.Contains(line, "v1.29.2-vendor.7") {
			t.Errorf("it tells %q, want the version, %s and what follows", line, f.resource)
		}
	}
}

func TestAServerThatDoesNotSayWhatItLacksStopsNothing(t *testing.T) {
	if told := toldOf(t, "v1.37.1", nil); len(told) != len(features())+1 {
		t.Errorf("it tells %q, want a line for each feature, and their number", told)
	}
	told := toldOf(t, "v1.37.1", map[string][]string{"v1": nil})
	if len(told) != len(features())+1 || !strings.Contains(told[len(told)-1], "asking what the API server serves of v1: ") ||
		strings.Contains(strings.Join(told, ""), "pods/resize") {
		t.Errorf("it tells %q, want a line for each other feature, their number, and why one isn't known", told)
	}
	api := httptest.NewServer(http.NotFoundHandler())
	api.Close()
	asked, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	if err := (lacking{log: log, asked: asked}).Start(t.Context()); err != nil || len(lines) != 1 {
		t.Errorf("it returns %v and tells %q, want one line", err, lines)
	}
}

// The documentation has a row for each feature, and names the oldest version.
func TestFeaturesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/installation.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "Kubernetes "+oldestKubernetes+" or later") {
		t.Errorf("docs/installation.md doesn't name %s as the oldest version", oldestKubernetes)
	}
	for _, f := range features() {
		if !strings.Contains(string(page), "| `"+f.resource+"` | "+f.since+" |") {
			t.Errorf("docs/installation.md has no row for %s since %s", f.resource, f.since)
		}
	}
}
