// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// kinds are the profiles that are taken, and where.
var kinds = map[string]string{"CPU": "/debug/pprof/profile", "allocations": "/debug/pprof/allocs"}

// profile takes profiles of the API server, and of the operator's first
// replica, while a turn is measured, where that was asked for. The outcome is
// sent once.
func (w *podsWorld) profile(ctx context.Context, v variant, r *running, l load) <-chan error {
	done := make(chan error, 1)
	if w.profiles == "" {
		done <- nil
		return done
	}
	name := fmt.Sprintf("%s, %d clients in %d namespaces, refused %t", v.name, l.clients, l.namespaces, l.refused)
	name = filepath.Join(w.profiles, strings.ReplaceAll(name, " ", "-"))
	fetch := func(path string, from func() ([]byte, error)) func() error {
		return func() error {
			_ = pause(ctx, warmUp)
			content, err := from()
			if err != nil {
				return fmt.Errorf("taking a profile: %w", err)
			}
			return os.WriteFile(path, content, 0o600)
		}
	}
	var group errgroup.Group
	for kind, path := range kinds {
		path += fmt.Sprintf("?seconds=%d", max(1, int(l.duration/time.Second)))
		group.Go(fetch(name+",-API-server-"+kind+".pprof", func() ([]byte, error) { return w.raw(ctx, path) }))
		if r.pprof != 0 {
			url := fmt.Sprintf("http://127.0.0.1:%d%s", r.pprof, path)
			group.Go(fetch(name+"-"+kind+".pprof", func() ([]byte, error) { return get(ctx, url) }))
		}
	}
	go func() { done <- group.Wait() }()
	return done
}
