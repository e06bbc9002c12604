// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// connectTimeout bounds what a network without a way out costs a build.
	connectTimeout = 3 * time.Second
	answerTimeout  = 10 * time.Second
	// A download that brings less than stallBytes in stallTime has stalled. How long it takes in all doesn't matter.
	stallTime  = 15 * time.Second
	stallBytes = 64 << 10
	// maxAttempts bounds how often a download that was cut off goes on.
	maxAttempts = 10
	// maxFile is twice what the largest of the files has.
	maxFile = 512 << 20
	// partSuffix ends the name of an unfinished download.
	partSuffix = ".part"
)

var errStalled = errors.New("the download makes no progress")

// store is a directory of downloaded files, each named by its SHA-256 sum. The
// process that has its lock downloads; others wait for it.
type store struct {
	dir        string
	transport  *http.Transport
	stallTime  time.Duration
	stallBytes int64

	received, total atomic.Int64
	start           time.Time
}

// openStore waits for the lock of the directory.
func openStore(ctx context.Context, dir string) (*store, func(), error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	unlock, err := lock(ctx, filepath.Join(dir, ".lock"), 3*stallTime, func() int64 { return unfinished(dir) })
	if err != nil {
		return nil, nil, err
	}
	dialer := net.Dialer{Timeout: connectTimeout}
	s := &store{
		dir: dir, stallTime: stallTime, stallBytes: stallBytes, start: time.Now(),
		transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: answerTimeout,
		},
	}
	return s, func() { s.transport.CloseIdleConnections(); unlock() }, nil
}

// unfinished is how much of unfinished downloads there is.
func unfinished(dir string) int64 {
	var size int64
	parts, _ := filepath.Glob(filepath.Join(dir, "*"+partSuffix))
	for _, part := range parts {
		if info, err := os.Stat(part); err == nil {
			size += info.Size()
		}
	}
	return size
}

// String tells of the downloads so far.
func (s *store) String() string {
	const mega = 1_000_000
	received, total := s.received.Load(), s.total.Load()
	speed := float64(received) / max(time.Since(s.start).Seconds(), 0.001)
	left := ""
	if received > 0 && total > received {
		left = fmt.Sprintf(", %s left", time.Duration(float64(total-received)/speed*float64(time.Second)).Round(time.Second))
	}
	return fmt.Sprintf("downloaded %d of %d MB, %.1f MB/s%s", received/mega, total/mega, speed/mega, left)
}

// cached returns the path of the file with the sum, os.ErrNotExist if it isn't
// there. It removes a file that was damaged.
func (s *store) cached(sum string) (string, error) {
	name := filepath.Join(s.dir, sum)
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, file); err != nil {
		return "", err
	}
	if hex.EncodeToString(digest.Sum(nil)) == sum {
		return name, nil
	}
	return "", errors.Join(os.ErrNotExist, os.Remove(name))
}

// get downloads the file with the sum. Nothing of it stays if that fails.
func (s *store) get(ctx context.Context, from, sum string) (string, error) {
	name := filepath.Join(s.dir, sum)
	part, err := os.Create(name + partSuffix)
	if err != nil {
		return "", err
	}
	d := &transfer{store: s, from: from, part: part, digest: sha256.New()}
	err = errors.Join(d.run(ctx), part.Close())
	if got := hex.EncodeToString(d.digest.Sum(nil)); err == nil && got != sum {
		err = fmt.Errorf("%s has the SHA-256 sum %s, want %s", from, got, sum)
	}
	if err == nil {
		err = os.Rename(part.Name(), name)
	}
	if err != nil {
		s.received.Add(-d.size)
		s.total.Add(-d.announced)
		_ = os.Remove(part.Name()) // Another error is told already.
		return "", err
	}
	return name, nil
}

// transfer is the download of one file.
type transfer struct {
	*store
	from   string
	part   *os.File
	digest hash.Hash
	// size is how much is there, announced how much there will be.
	size, announced int64
}

// run downloads the file, and goes on where it was cut off as long as each
// attempt brings something.
func (t *transfer) run(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		before := t.size
		err := t.attempt(ctx)
		if err == nil || t.size <= before || attempt == maxAttempts {
			return err
		}
	}
}

func (t *transfer) attempt(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.from, nil)
	if err != nil {
		return err
	}
	if t.size > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", t.size))
	}
	response, err := (&http.Client{Transport: t.transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := t.accept(response); err != nil {
		return err
	}
	watch := time.AfterFunc(t.stallTime, func() { cancel(fmt.Errorf("%s: %w", request.URL.Host, errStalled)) })
	defer watch.Stop()
	err = t.copy(response.Body, func() { watch.Reset(t.stallTime) })
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// accept prepares for the body: the rest, or all from the start.
func (t *transfer) accept(response *http.Response) error {
	switch response.StatusCode {
	case http.StatusPartialContent:
		var first int64
		if _, err := fmt.Sscanf(response.Header.Get("Content-Range"), "bytes %d-", &first); err != nil || first != t.size {
			return fmt.Errorf("%s answers with another range", t.from)
		}
	case http.StatusOK:
		if err := t.restart(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s: %s", t.from, response.Status)
	}
	whole := t.size + max(response.ContentLength, 0)
	if whole > maxFile {
		return fmt.Errorf("%s is too big: %d bytes", t.from, whole)
	}
	t.total.Add(whole - t.announced)
	t.announced = whole
	return nil
}

func (t *transfer) restart() error {
	t.received.Add(-t.size)
	t.size = 0
	t.digest.Reset()
	_, err := t.part.Seek(0, io.SeekStart)
	return errors.Join(err, t.part.Truncate(0))
}

// copy calls progress whenever enough has come.
func (t *transfer) copy(body io.Reader, progress func()) error {
	buffer := make([]byte, 256<<10)
	var since int64
	for {
		n, err := body.Read(buffer)
		if _, writeErr := io.MultiWriter(t.part, t.digest).Write(buffer[:n]); writeErr != nil {
			return writeErr
		}
		t.size += int64(n)
		t.received.Add(int64(n))
		if since += int64(n); since >= t.stallBytes {
			since = 0
			progress()
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case t.size > maxFile:
			return fmt.Errorf("%s is too big", t.from)
		}
	}
}

// lock waits until this process alone has the lock of that name. It gives up if
// progress returns the same for longer than the patience.
func lock(ctx context.Context, name string, patience time.Duration, progress func() int64) (unlock func(), err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	told := false
	last, since := int64(0), time.Now()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil // Nothing was written to it.
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", name, err), file.Close())
		}
		if !told {
			fmt.Printf("Waiting for another process that has %s.\n", name)
			told = true
		}
		if now := progress(); now != last {
			last, since = now, time.Now()
		} else if time.Since(since) > patience {
			return nil, errors.Join(fmt.Errorf("another process has %s and makes no progress", name), file.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
