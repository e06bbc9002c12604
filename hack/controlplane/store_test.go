// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// content is what the servers of these tests serve: more than the network holds in its buffers.
func content() []byte {
	return bytes.Repeat([]byte("the official binary "), 1<<20)
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range found {
		if entry.Name() != ".lock" {
			names = append(names, entry.Name())
		}
	}
	return names
}

// cutOff serves the content and closes the connection in the middle, as often as said.
func cutOff(times int64, ranges bool) http.HandlerFunc {
	var requests atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if !ranges {
			r.Header.Del("Range")
		}
		if requests.Add(1) > times {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content()))
			return
		}
		http.ServeContent(&half{ResponseWriter: w, left: len(content()) / 4}, r, "", time.Time{}, bytes.NewReader(content()))
	}
}

// half ends the connection after some bytes.
type half struct {
	http.ResponseWriter
	left int
}

func (h *half) Write(data []byte) (int, error) {
	if h.left < len(data) {
		_ = http.NewResponseController(h.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	h.left -= len(data)
	return h.ResponseWriter.Write(data)
}

// inSteps serves the content in n steps with a pause before each.
func inSteps(n int, pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data := content()
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for i := range n {
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
			if _, err := w.Write(data[len(data)/n*i : len(data)/n*(i+1)]); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func TestDownload(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		serve http.HandlerFunc
		sum   string
		want  string // part of the error; none if empty
	}{
		"what is right stays":                                  {serve: cutOff(0, true)},
		"another sum is refused":                               {serve: cutOff(0, true), sum: sumOf([]byte("other")), want: "has the SHA-256 sum " + sumOf(content())},
		"what was cut off is resumed":                          {serve: cutOff(3, true)},
		"what was cut off begins again if it can't be resumed": {serve: cutOff(1, false)},
		"what is cut off again and again without progress fails": {
			serve: cutOff(100, false), want: "EOF",
		},
		"a slow one takes longer in all than it may stall": {serve: inSteps(20, 150*time.Millisecond)},
		"one that stalls fails":                            {serve: inSteps(1, time.Hour), want: errStalled.Error()},
		"one that never answers fails": {
			serve: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, want: "timeout awaiting response",
		},
		"one that isn't there fails": {serve: http.NotFound, want: "404 Not Found"},
		"another range than asked for fails": {
			serve: func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Range") == "" {
					cutOff(1, true)(w, r)
					return
				}
				w.Header().Set("Content-Range", "bytes 0-9/10")
				w.WriteHeader(http.StatusPartialContent)
			},
			want: "another range",
		},
		"one that is too big fails": {
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(maxFile+1))
				w.WriteHeader(http.StatusOK)
			},
			want: "too big",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.serve)
			t.Cleanup(server.Close)
			dir := t.TempDir()
			s, unlock, err := openStore(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(unlock)
			s.stallTime, s.stallBytes = 2*time.Second, 1<<10
			s.transport.ResponseHeaderTimeout = 2 * time.Second
			if test.sum == "" {
				test.sum = sumOf(content())
			}
			file, err := s.get(t.Context(), server.URL, test.sum)
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, content()) {
					t.Errorf("got %d bytes and %v, want the content", len(got), err)
				}
				if got := s.received.Load(); got != int64(len(content())) || s.total.Load() != got {
					t.Errorf("%d of %d bytes are counted, want %d", got, s.total.Load(), len(content()))
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
			if left := entries(t, dir); len(left) > 0 {
				t.Errorf("%v stay, want nothing", left)
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.URL
	server.Close()
	s, unlock, err := openStore(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	start := time.Now()
	_, err = s.get(t.Context(), address+"/kubectl", sumOf(content()))
	if err == nil || time.Since(start) > connectTimeout {
		t.Errorf("got %v after %s, want an error within %s", err, time.Since(start), connectTimeout)
	}
	if got := shortened(err); strings.Contains(got, "kubectl") || !strings.HasPrefix(got, strings.TrimPrefix(address, "http://")) {
		t.Errorf("the reason is %q, want the host and why", got)
	}
}

func TestInterruption(t *testing.T) {
	server := httptest.NewServer(inSteps(1, time.Hour))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	s, unlock, err := openStore(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.get(ctx, server.URL, sumOf(content())); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the context", err)
	}
	if left := entries(t, dir); len(left) > 0 {
		t.Errorf("%v stay, want nothing", left)
	}
}

func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	s, unlock, err := openStore(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := os.WriteFile(filepath.Join(dir, sumOf(content())), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.cached(sumOf(content())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that it isn't there", err)
	}
	if left := entries(t, dir); len(left) > 0 {
		t.Errorf("%v stay, want nothing", left)
	}
}

func TestLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), ".lock")
	unlock, err := lock(t.Context(), name, time.Second, func() int64 { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(t.Context(), name, 50*time.Millisecond, func() int64 { return 0 }); err == nil || !strings.Contains(err.Error(), "no progress") {
		t.Errorf("got %v, want to give up on one that makes no progress", err)
	}
	var size int64
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, name, 250*time.Millisecond, func() int64 { size++; return size }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want to wait for one that makes progress", err)
	}
	unlock()
	if unlock, err = lock(t.Context(), name, time.Second, func() int64 { return 0 }); err != nil {
		t.Fatal(err)
	}
	unlock()
}
