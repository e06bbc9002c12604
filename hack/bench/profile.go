// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/discovery"
)

// kinds are the profiles that are taken, and where.
var kinds = map[string]string{"CPU": "/debug/pprof/profile", "allocations": "/debug/pprof/allocs"}

// profile takes profiles of the API server, and of the operator's first
// replica, while a turn is measured, where that was asked for. The outcome is
// sent once.
func (w *world) profile(ctx context.Context, v variant, r *running, l load) <-chan error {
	done := make(chan error, 1)
	if w.profiles == "" {
		done <- nil
		return done
	}
	name := fmt.Sprintf("%s, %d clients in %d namespaces, refused %t", v.name, l.clients, l.namespaces, l.refused)
	name = filepath.Join(w.profiles, strings.ReplaceAll(name, " ", "-"))
	seconds := strconv.Itoa(max(1, int(l.duration/time.Second)))
	var group errgroup.Group
	for kind, path := range kinds {
		group.Go(func() error {
			pause(ctx, warmUp)
			raw, err := discovery.NewDiscoveryClientForConfig(w.cluster.Config())
			if err != nil {
				return err
			}
			content, err := raw.RESTClient().Get().AbsPath(path).Param("seconds", seconds).DoRaw(ctx)
			return errors.Join(err, os.WriteFile(name+",-API-server-"+kind+".pprof", content, 0o600))
		})
		group.Go(func() error {
			if r.pprof == 0 {
				return nil
			}
			pause(ctx, warmUp)
			return download(ctx, name+"-"+kind+".pprof", fmt.Sprintf("http://127.0.0.1:%d%s?seconds=%s", r.pprof, path, seconds))
		})
	}
	go func() { done <- group.Wait() }()
	return done
}

func download(ctx context.Context, path, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("taking a profile: %w", err)
	}
	defer response.Body.Close()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(file, response.Body); err != nil {
		return fmt.Errorf("taking a profile: %w", err)
	}
	return file.Close()
}
