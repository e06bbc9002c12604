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

// inSteps serves the content in n steps with a pause before each, and cuts the first answers off after one.
func inSteps(n int, pause time.Duration, cutOff int64) http.HandlerFunc {
	var requests atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		data, cut := content(), requests.Add(1) <= cutOff
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		for i := range n {
			if cut && i > 0 {
				panic(http.ErrAbortHandler)
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
			_, _ = w.Write(data[len(data)/n*i : len(data)/n*(i+1)]) // The other side may have given up.
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
		"the right sum":         {serve: inSteps(1, 0, 0)},
		"a wrong sum":           {serve: inSteps(1, 0, 0), sum: sumOf(nil), want: "has the SHA-256 sum " + sumOf(content())},
		"cut off twice":         {serve: inSteps(4, 0, 2)},
		"cut off each time":     {serve: inSteps(4, 0, 100), want: "EOF"},
		"slow, but it goes on":  {serve: inSteps(20, 150*time.Millisecond, 0)},
		"stalled in the middle": {serve: inSteps(1, time.Hour, 0), want: errStalled.Error()},
		"never answered": {
			serve: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, want: "timeout awaiting response",
		},
		"absent": {serve: http.NotFound, want: "404 Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.serve)
			t.Cleanup(server.Close)
			d, dir := newDownloader(), t.TempDir()
			d.stall = 2 * time.Second
			d.client.Transport.(*http.Transport).ResponseHeaderTimeout = 2 * time.Second
			if test.sum == "" {
				test.sum = sumOf(content())
			}
			file := filepath.Join(dir, "file")
			err := d.get(t.Context(), server.URL, test.sum, file)
			if test.want == "" {
				if got := sumOfFile(file); err != nil || got != test.sum {
					t.Errorf("got the sum %s and %v, want the content's", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
			nothingIn(t, dir)
		})
	}
}

func nothingIn(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v and %v stay, want nothing", left, err)
	}
}

func TestInterruption(t *testing.T) {
	server := httptest.NewServer(inSteps(1, time.Hour, 0))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := newDownloader().get(ctx, server.URL, sumOf(content()), filepath.Join(dir, "file"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the context", err)
	}
	nothingIn(t, dir)
}
