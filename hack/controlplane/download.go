// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// sites maps the first element of a file's name -> where the project publishes
// the rest of it.
func sites() map[string]string {
	return map[string]string{
		"kubernetes": "https://dl.k8s.io",
		"etcd":       "https://github.com/etcd-io/etcd/releases/download",
	}
}

// published is the name of the file that is the binary, or holds it: its path
// below the mirror, and its name in SHA256SUMS.
func (p plane) published(name string) string {
	goos, goarch := platform()
	if name == etcdName {
		return publishedEtcd(p.etcd, goos, goarch)
	}
	return publishedKubernetes(p.kubernetes, goos, goarch, name)
}

func publishedEtcd(version, goos, goarch string) string {
	return fmt.Sprintf("etcd/%[1]s/etcd-%[1]s-%[2]s-%[3]s.tar.gz", version, goos, goarch)
}

func publishedKubernetes(version, goos, goarch, name string) string {
	return path.Join("kubernetes", version, "bin", goos, goarch, name)
}

// address is where to download the file from.
func address(mirror, file string) string {
	if mirror != "" {
		return mirror + "/" + file
	}
	site, rest, _ := strings.Cut(file, "/")
	return sites()[site] + "/" + rest
}

// download puts the binaries that can be had into the directory, writes the
// origin of each to origins, and returns the names of the others. One line says
// why those can't be had.
func (p plane) download(ctx context.Context, dir string, origins map[string]string) (missing []string) {
	if p.mirror == mirrorOff {
		return binaryNames()
	}
	reasons := map[string]string{} // binary -> why it can't be had
	var wanted []string
	for _, name := range binaryNames() {
		if p.downloaded(name) == "" {
			reasons[name] = "no sum of " + p.published(name) + " is recorded"
			continue
		}
		wanted = append(wanted, name)
	}
	for name, file := range p.fetch(ctx, wanted, reasons) {
		if err := place(name, file, dir); err != nil {
			reasons[name] = err.Error()
			continue
		}
		origins[name] = p.downloaded(name)
	}
	if len(reasons) > 0 && ctx.Err() == nil {
		fmt.Println("Not downloaded: " + grouped(reasons))
	}
	return slices.Sorted(maps.Keys(reasons))
}

// grouped names each reason once, with all that it applies to.
func grouped(reasons map[string]string) string {
	var order []string
	names := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		reason := reasons[name]
		if names[reason] == nil {
			order = append(order, reason)
		}
		names[reason] = append(names[reason], name)
	}
	var parts []string
	for _, reason := range order {
		parts = append(parts, strings.Join(names[reason], ", ")+" ("+reason+")")
	}
	return strings.Join(parts, "; ") + "."
}

// fetch returns the path in the cache of each wanted file that is there or can
// be downloaded, and adds to reasons why others can't.
func (p plane) fetch(ctx context.Context, wanted []string, reasons map[string]string) map[string]string {
	files := map[string]string{} // binary -> path
	if len(wanted) == 0 {
		return files
	}
	s, unlock, err := openStore(ctx, p.cache)
	if err != nil {
		for _, name := range wanted {
			reasons[name] = err.Error()
		}
		return files
	}
	defer unlock()
	var missing []string
	for _, name := range wanted {
		file, err := s.cached(p.sums[p.published(name)])
		switch {
		case err == nil:
			files[name] = file
		case errors.Is(err, os.ErrNotExist):
			missing = append(missing, name)
		default:
			reasons[name] = err.Error()
		}
	}
	if len(missing) > 0 {
		p.fetchFrom(ctx, s, missing, files, reasons)
	}
	return files
}

// fetchFrom downloads all files at the same time, so that several that can't be
// reached cost the time of one.
func (p plane) fetchFrom(ctx context.Context, s *store, missing []string, files, reasons map[string]string) {
	fmt.Printf("Downloading %s of Kubernetes %s and etcd %s, once for all clones.\n",
		strings.Join(missing, ", "), p.kubernetes, p.etcd)
	var mu sync.Mutex // guards files, reasons and failed
	var failed error
	var group sync.WaitGroup
	finish := showProgress(s.String)
	for _, name := range missing {
		group.Go(func() {
			published := p.published(name)
			file, err := s.get(ctx, address(p.mirror, published), p.sums[published])
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				reasons[name], failed = shortened(err), err
				return
			}
			files[name] = file
		})
	}
	group.Wait()
	finish(failed)
}

// shortened is one line without the address, but with its host.
func shortened(err error) string {
	text := err.Error()
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		text = failed.Err.Error()
		if parsed, parseErr := url.Parse(failed.URL); parseErr == nil {
			text = parsed.Host + ": " + text
		}
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// place copies the binary from the file in the cache to the directory.
func place(name, file, dir string) error {
	source, err := os.Open(file)
	if err != nil {
		return err
	}
	defer source.Close()
	var content io.Reader = source
	if name == etcdName {
		if content, err = unpack(source, etcdName); err != nil {
			return err
		}
	}
	target, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, io.LimitReader(content, maxFile))
	return errors.Join(err, target.Close())
}

// unpack finds the file in the one directory of a release's archive.
func unpack(archive io.Reader, name string) (io.Reader, error) {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		if err != nil {
			return nil, fmt.Errorf("looking for %s in the archive: %w", name, err)
		}
		if header.Typeflag == tar.TypeReg && path.Base(header.Name) == name && strings.Count(path.Clean(header.Name), "/") == 1 {
			return files, nil
		}
	}
}

// sums maps the name of a file -> its SHA-256 sum in hexadecimal.
type sums map[string]string

// readSums reads what sha256sum writes.
func readSums(file string) (sums, error) {
	content, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	read := sums{}
	scanner := bufio.NewScanner(content)
	for line := 1; scanner.Scan(); line++ {
		sum, name, ok := strings.Cut(scanner.Text(), "  ")
		if !ok || !isSum(sum) || name == "" {
			return nil, fmt.Errorf("%s:%d: want a SHA-256 sum, two spaces and a name", file, line)
		}
		if read[name] != "" {
			return nil, fmt.Errorf("%s:%d: %s is named a second time", file, line, name)
		}
		read[name] = strings.ToLower(sum)
	}
	return read, scanner.Err()
}

func isSum(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == sha256.Size
}
