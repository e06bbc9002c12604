// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// etcdArchive is laid out as a release's.
func etcdArchive(t *testing.T, version string) []byte {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	for _, name := range []string{"README.md", "Documentation/etcd", "etcdctl", etcdName} {
		content := []byte("official " + name)
		header := tar.Header{Typeflag: tar.TypeReg, Name: "etcd-" + version + "-os-arch/" + name, Mode: 0o755, Size: int64(len(content))}
		if err := files.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(files.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// world is a mirror of made-up releases of the pinned versions, with their sums.
type world struct {
	options
	plane    plane
	requests atomic.Int64
	files    map[string][]byte // path below the mirror -> content
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{files: map[string][]byte{}}
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, r *http.Request) {
		w.requests.Add(1)
		content, ok := w.files[strings.TrimPrefix(r.URL.Path, "/copy/")]
		if !ok {
			http.NotFound(writer, r)
			return
		}
		_, _ = writer.Write(content)
	}))
	t.Cleanup(server.Close)
	w.options = options{
		out: filepath.Join(dir, "bin", "k8s"), mirror: server.URL + "/copy/", sums: filepath.Join(dir, "sums"), cache: filepath.Join(dir, "cache"),
	}
	w.writeSums(t)
	var err error
	if w.plane, err = describe(t.Context(), w.options); err != nil {
		t.Fatal(err)
	}
	for _, name := range binaryNames() {
		w.files[w.published(name)] = []byte("official " + name)
	}
	w.files[w.published(etcdName)] = etcdArchive(t, w.plane.etcd)
	w.writeSums(t)
	return w
}

// published is the file that is the binary here, or holds it.
func (w *world) published(name string) string { return w.plane.published(name) }

// writeSums records the sums of all files but the named ones.
func (w *world) writeSums(t *testing.T, without ...string) {
	t.Helper()
	var list strings.Builder
	for file, content := range w.files {
		if !slices.ContainsFunc(without, func(name string) bool { return w.published(name) == file }) {
			fmt.Fprintf(&list, "%s  %s\n", sumOf(content), file)
		}
	}
	if err := os.WriteFile(w.sums, []byte(list.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// check runs the program, and compares what it built and what it asked the mirror for.
func (w *world) check(t *testing.T, requests int64, built ...string) {
	t.Helper()
	before := w.requests.Load()
	var got []string
	err := run(t.Context(), w.options, func(_ context.Context, _ plane, names []string, dir string) error {
		got = names
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("built "+name), 0o600); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, built) {
		t.Errorf("built %v, want %v", got, built)
	}
	if made := w.requests.Load() - before; made != requests {
		t.Errorf("asked the mirror %d times, want %d", made, requests)
	}
	for _, name := range binaryNames() {
		want := "official " + name
		if slices.Contains(built, name) {
			want = "built " + name
		}
		if content, err := os.ReadFile(filepath.Join(w.out, name)); err != nil || string(content) != want {
			t.Errorf("%s has %q and %v, want %q", name, content, err, want)
		}
	}
	if p, err := describe(t.Context(), w.options); err != nil || !p.upToDate(w.out) {
		t.Errorf("with %v, all would be made again though nothing changed", err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(w.out), ".k8s-build-*")); err != nil || len(left) > 0 {
		t.Errorf("%v and %v stay, want nothing", left, err)
	}
}

func TestOfficialBinaries(t *testing.T) {
	w := newWorld(t)
	w.check(t, 4)
	w.check(t, 0) // The stamp says so.
	info, err := os.Stat(filepath.Join(w.out, etcdName))
	if err != nil || info.Mode()&0o111 != 0o111 {
		t.Errorf("etcd has the mode %v and %v, want one to run it", info.Mode(), err)
	}

	w.out += "-of-another-clone"
	w.check(t, 0) // The cache has them.

	damaged := filepath.Join(w.cache, sumOf(w.files[w.published("kubectl")]))
	if err := os.WriteFile(damaged, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.check(t, 0) // What the stamp vouches for doesn't come from the cache.
	w.out += "-and-a-third"
	w.check(t, 1)
}

func TestWhatIsNotDownloadedIsBuilt(t *testing.T) {
	t.Run("without a sum", func(t *testing.T) {
		w := newWorld(t)
		w.writeSums(t, "kubectl")
		w.check(t, 3, "kubectl")
	})
	t.Run("with another sum", func(t *testing.T) {
		w := newWorld(t)
		w.files[w.published(etcdName)] = []byte("not what was recorded")
		w.check(t, 4, etcdName)
	})
	t.Run("without the file", func(t *testing.T) {
		w := newWorld(t)
		delete(w.files, w.published("kube-apiserver"))
		w.check(t, 4, "kube-apiserver")
	})
	t.Run("with an archive that lacks the binary", func(t *testing.T) {
		w := newWorld(t)
		w.files[w.published(etcdName)] = []byte("no archive")
		w.writeSums(t)
		w.check(t, 4, etcdName)
	})
	t.Run("without a network", func(t *testing.T) {
		w := newWorld(t)
		server := httptest.NewServer(http.NotFoundHandler())
		w.mirror = server.URL
		server.Close()
		w.check(t, 0, binaryNames()...)
	})
	t.Run("as the user says", func(t *testing.T) {
		w := newWorld(t)
		w.mirror = mirrorOff
		w.check(t, 0, binaryNames()...)
	})
}

func TestStampKnowsWhatTheBinariesAre(t *testing.T) {
	w := newWorld(t)
	official := w.mirror
	w.mirror = mirrorOff
	w.check(t, 0, binaryNames()...)
	stamp, err := os.ReadFile(filepath.Join(w.out, stampFile))
	if err != nil || strings.Count(string(stamp), " built by go") != 4 {
		t.Errorf("the stamp is %q and %v, want four that are built", stamp, err)
	}
	if err := os.Remove(filepath.Join(w.out, "kubectl")); err != nil {
		t.Fatal(err)
	}
	w.mirror = official
	w.check(t, 4)
	stamp, err = os.ReadFile(filepath.Join(w.out, stampFile))
	if err != nil || strings.Count(string(stamp), " downloaded as ") != 4 {
		t.Errorf("the stamp is %q and %v, want four that are downloaded", stamp, err)
	}
}

func TestOneOfTwoProcessesBuilds(t *testing.T) {
	w := newWorld(t)
	w.mirror = mirrorOff
	var builds atomic.Int64
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if err := run(t.Context(), w.options, func(_ context.Context, _ plane, names []string, dir string) error {
				builds.Add(1)
				for _, name := range names {
					if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if got := builds.Load(); got != 1 {
		t.Errorf("built %d times, want once", got)
	}
}

// Each file's sum is published beside it, or in a list for all.
func TestRecordSums(t *testing.T) {
	w := newWorld(t)
	pinned, err := pinnedVersions()
	if err != nil {
		t.Fatal(err)
	}
	want := sums{}
	etcdSums := "etcd/" + w.plane.etcd + "/SHA256SUMS"
	for _, name := range append(pinned, "") {
		p, err := describe(t.Context(), options{kubernetes: name, sums: w.sums})
		if err != nil {
			t.Fatal(err)
		}
		p.goos = "linux"
		for _, p.goarch = range []string{"amd64", "arm64"} {
			for _, binary := range binaryNames() {
				file := p.published(binary)
				want[file] = sumOf([]byte(file))
				if binary == etcdName {
					w.files[etcdSums] = fmt.Appendf(w.files[etcdSums], "%s  %s\n", want[file], filepath.Base(file))
				} else {
					w.files[file+".sha256"] = []byte(want[file])
				}
			}
		}
	}
	if err := recordSums(t.Context(), w.options); err != nil {
		t.Fatal(err)
	}
	if got, err := readSums(w.sums); err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v and %v, want %v", got, err, want)
	}
	delete(w.files, etcdSums)
	if err := recordSums(t.Context(), w.options); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v, want that a list isn't there", err)
	}
	if got, err := readSums(w.sums); err != nil || !maps.Equal(got, want) {
		t.Errorf("the sums changed to %v though some are missing (%v)", got, err)
	}
}

func TestBadInput(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		change func(o *options)
		sums   string
		want   string
	}{
		"a version that isn't pinned": {change: func(o *options) { o.kubernetes = "v1.1" }, want: `version "v1.1" of Kubernetes isn't pinned here`},
		"a path":                      {change: func(o *options) { o.kubernetes = "../v1.1" }, want: "isn't pinned here"},
		"a mirror that is no URL":     {change: func(o *options) { o.mirror = "mirror.example" }, want: "must be an http or https URL, or off"},
		"no sums":                     {change: func(o *options) { o.sums += "-missing" }, want: "no such file"},
		"a sum that is too short":     {sums: "abc  kubectl\n", want: ":1: "},
		"a sum twice":                 {sums: strings.Repeat(sumOf(nil)+"  kubectl\n", 2), want: ":2: "},
	} {
		t.Run(name, func(t *testing.T) {
			o := w.options
			if test.change != nil {
				test.change(&o)
			}
			if test.sums != "" {
				o.sums = filepath.Join(t.TempDir(), "sums")
				if err := os.WriteFile(o.sums, []byte(test.sums), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := describe(t.Context(), o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// The sums of the pinned versions are recorded, so that a clone can download.
func TestSumsOfPinnedVersions(t *testing.T) {
	recorded, err := readSums("SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := pinnedVersions()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(pinned, "") {
		o := options{kubernetes: name, sums: "SHA256SUMS", cache: t.TempDir()}
		p, err := describe(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		p.goos = "linux"
		for _, p.goarch = range []string{"amd64", "arm64"} {
			for _, binary := range binaryNames() {
				if file := p.published(binary); recorded[file] == "" {
					t.Errorf("%s has no sum; run make controlplane-sums", file)
				}
			}
		}
	}
}
