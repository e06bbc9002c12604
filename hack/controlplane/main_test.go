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
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// asProgram makes the test binary the program itself, but for the build.
const asProgram = "CONTROLPLANE_AS_PROGRAM"

func TestMain(m *testing.M) {
	arguments := os.Getenv(asProgram)
	if arguments == "" {
		os.Exit(m.Run())
	}
	fields := strings.Split(arguments, " ")
	o := options{out: fields[0], mirror: fields[1], sums: fields[2], cache: fields[3]}
	err := run(context.Background(), o, func(context.Context, plane, []string, string) error { return errors.New("no build here") })
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

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
		w.files[w.plane.published(name)] = []byte("official " + name)
	}
	w.files[w.plane.published(etcdName)] = etcdArchive(t, w.plane.etcd)
	w.writeSums(t)
	return w
}

// writeSums records the sums of all files but the named ones.
func (w *world) writeSums(t *testing.T, without ...string) {
	t.Helper()
	var list strings.Builder
	for file, content := range w.files {
		if !slices.ContainsFunc(without, func(name string) bool { return w.plane.published(name) == file }) {
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

	damaged := filepath.Join(w.cache, sumOf(w.files[w.plane.published("kubectl")]))
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
		w.files[w.plane.published(etcdName)] = []byte("not what was recorded")
		w.check(t, 4, etcdName)
	})
	t.Run("without the file", func(t *testing.T) {
		w := newWorld(t)
		delete(w.files, w.plane.published("kube-apiserver"))
		w.check(t, 4, "kube-apiserver")
	})
	t.Run("with an archive that lacks the binary", func(t *testing.T) {
		w := newWorld(t)
		w.files[w.plane.published(etcdName)] = []byte("no archive")
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

func TestTwoProcesses(t *testing.T) {
	w := newWorld(t)
	var processes []*exec.Cmd
	var outputs [4]bytes.Buffer
	for i := range outputs {
		process := exec.CommandContext(t.Context(), os.Args[0])
		out := filepath.Join(t.TempDir(), "k8s")
		process.Env = append(os.Environ(), asProgram+"="+strings.Join([]string{out, w.mirror, w.sums, w.cache}, " "))
		process.Stdout, process.Stderr = &outputs[i], &outputs[i]
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, process)
	}
	for i, process := range processes {
		if err := process.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s", i, err, outputs[i].String())
		}
	}
	if got := w.requests.Load(); got != 4 {
		t.Errorf("asked the mirror %d times, want 4", got)
	}
}

func TestRecordSums(t *testing.T) {
	w := newWorld(t)
	recorded := map[string]string{}
	versions := []string{w.plane.kubernetes}
	dirs, err := filepath.Glob(filepath.Join(versionsDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		p, err := describe(t.Context(), options{kubernetes: filepath.Base(dir), sums: w.sums})
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, p.kubernetes)
	}
	var list strings.Builder
	for _, goarch := range []string{"amd64", "arm64"} {
		for _, version := range versions {
			for _, name := range binaryNames()[1:] {
				file := publishedKubernetes(version, "linux", goarch, name)
				recorded[file] = sumOf([]byte(file))
				w.files[file+".sha256"] = []byte(recorded[file])
			}
		}
		file := publishedEtcd(w.plane.etcd, "linux", goarch)
		recorded[file] = sumOf([]byte(file))
		fmt.Fprintf(&list, "%s  %s\n", recorded[file], filepath.Base(file))
	}
	all := "etcd/" + w.plane.etcd + "/SHA256SUMS"
	w.files[all] = []byte(list.String())
	if err := recordSums(t.Context(), w.options); err != nil {
		t.Fatal(err)
	}
	got, err := readSums(w.sums)
	if err != nil || len(got) != len(recorded) {
		t.Errorf("got %d sums and %v, want %d", len(got), err, len(recorded))
	}
	for file, sum := range recorded {
		if got[file] != sum {
			t.Errorf("%s has the sum %s, want %s", file, got[file], sum)
		}
	}

	delete(w.files, all)
	before, err := os.ReadFile(w.sums)
	if err != nil {
		t.Fatal(err)
	}
	if err := recordSums(t.Context(), w.options); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v, want that a list isn't there", err)
	}
	if after, err := os.ReadFile(w.sums); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the sums changed though some are missing (%v)", err)
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
		"a sum that is too short":     {sums: "abc  kubectl\n", want: ":1: want a SHA-256 sum"},
		"a sum twice":                 {sums: strings.Repeat(sumOf(nil)+"  kubectl\n", 2), want: ":2: kubectl is named a second time"},
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
	dirs, err := filepath.Glob(filepath.Join(versionsDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append([]string{""}, dirs...) {
		o := options{sums: "SHA256SUMS", cache: t.TempDir()}
		if name != "" {
			o.kubernetes = filepath.Base(name)
		}
		p, err := describe(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, goarch := range []string{"amd64", "arm64"} {
			for _, file := range []string{
				publishedEtcd(p.etcd, "linux", goarch), publishedKubernetes(p.kubernetes, "linux", goarch, "kube-apiserver"),
				publishedKubernetes(p.kubernetes, "linux", goarch, "kube-controller-manager"),
				publishedKubernetes(p.kubernetes, "linux", goarch, "kubectl"),
			} {
				if recorded[file] == "" {
					t.Errorf("%s has no sum; run make controlplane-sums", file)
				}
			}
		}
	}
}
