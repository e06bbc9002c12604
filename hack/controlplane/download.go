// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// connectTimeout bounds what a network without a way out costs a build.
	connectTimeout = 3 * time.Second
	answerTimeout  = 10 * time.Second
	// stallTime is how long a download may bring nothing. How long it takes in all doesn't matter.
	stallTime = 15 * time.Second
	// maxAttempts bounds how often a download that was cut off begins again.
	maxAttempts = 3
	// maxFile is twice what the largest of the files has.
	maxFile = 512 << 20
)

var errStalled = errors.New("the download makes no progress")

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
	if name == etcdName {
		return fmt.Sprintf("etcd/%[1]s/etcd-%[1]s-%[2]s-%[3]s.tar.gz", p.etcd, p.goos, p.goarch)
	}
	return path.Join("kubernetes", p.kubernetes, "bin", p.goos, p.goarch, name)
}

// address is where to download the file from.
func (p plane) address(file string) string {
	if p.mirror != "" {
		return p.mirror + "/" + file
	}
	site, rest, _ := strings.Cut(file, "/")
	return sites()[site] + "/" + rest
}

// download puts the binaries that can be had into the directory, and returns the
// names of the others. It fetches all at the same time, so that several that
// can't be reached cost the time of one. A line says why one can't be had.
func (p plane) download(ctx context.Context, dir string) (missing []string) {
	if p.mirror == mirrorOff {
		return binaryNames()
	}
	d := newDownloader()
	failures := make([]error, len(binaryNames()))
	var group sync.WaitGroup
	for i, name := range binaryNames() {
		group.Go(func() { failures[i] = p.fetch(ctx, d, name, dir) })
	}
	group.Wait()
	for i, name := range binaryNames() {
		if failures[i] != nil {
			fmt.Printf("Not downloaded: %s: %v\n", name, failures[i])
			missing = append(missing, name)
		}
	}
	return missing
}

// fetch puts a binary into the directory, from the cache if that has it.
func (p plane) fetch(ctx context.Context, d downloader, name, dir string) error {
	file := p.published(name)
	sum := p.sums[file]
	if sum == "" {
		return fmt.Errorf("no sum of %s is recorded", file)
	}
	cached := filepath.Join(p.cache, sum)
	if sumOfFile(cached) != sum {
		if err := os.MkdirAll(p.cache, 0o755); err != nil {
			return err
		}
		fmt.Printf("Downloading %s, once for all clones.\n", file)
		if err := d.get(ctx, p.address(file), sum, cached); err != nil {
			return err
		}
	}
	return place(name, cached, dir)
}

// sumOfFile returns the SHA-256 sum of a file; empty if it can't be read.
func sumOfFile(name string) string {
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, file); err != nil {
		return ""
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// downloader gets files by HTTP.
type downloader struct {
	client *http.Client
	stall  time.Duration
}

func newDownloader() downloader {
	dialer := net.Dialer{Timeout: connectTimeout}
	return downloader{stall: stallTime, client: &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: answerTimeout,
	}}}
}

// get downloads the file with the sum. It is filled aside and renamed, so that nothing of it stays if that fails.
func (d downloader) get(ctx context.Context, from, sum, to string) error {
	part, err := os.CreateTemp(filepath.Dir(to), ".part-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(part.Name()) }() // It is gone if all went well.
	got, err := d.try(ctx, from, part)
	for attempt := 1; errors.Is(err, io.ErrUnexpectedEOF) && attempt < maxAttempts; attempt++ {
		got, err = d.try(ctx, from, part)
	}
	if err := errors.Join(err, part.Close()); err != nil {
		return err
	}
	if got != sum {
		return fmt.Errorf("%s has the SHA-256 sum %s, want %s", from, got, sum)
	}
	return os.Rename(part.Name(), to)
}

// try downloads to the file from its start, and returns the sum.
func (d downloader) try(ctx context.Context, from string, to *os.File) (sum string, err error) {
	if _, err := to.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if err := to.Truncate(0); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return "", err
	}
	response, err := d.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", from, response.Status)
	}
	watch := time.AfterFunc(d.stall, func() { cancel(fmt.Errorf("%s: %w", from, errStalled)) })
	defer watch.Stop()
	digest := sha256.New()
	progress := io.TeeReader(io.LimitReader(response.Body, maxFile), resetter{watch, d.stall})
	if _, err = io.Copy(io.MultiWriter(to, digest), progress); err != nil && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	return hex.EncodeToString(digest.Sum(nil)), err
}

// resetter starts a timer anew with each write.
type resetter struct {
	timer    *time.Timer
	duration time.Duration
}

func (r resetter) Write(data []byte) (int, error) {
	r.timer.Reset(r.duration)
	return len(data), nil
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
