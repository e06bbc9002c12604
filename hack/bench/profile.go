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
	"k8s.io/client-go/discovery"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// profiler stores profiles of the API server and of replicas, one file for each.
type profiler struct {
	// dir is where they go; empty for none.
	dir     string
	cluster *harness.Cluster
	// replicas are the addresses at which they are profiled.
	replicas []string
	// number of the last profile, which the names of its files begin with.
	number int
}

func newProfiler(dir string, cluster *harness.Cluster) (profiler, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return profiler{}, fmt.Errorf("-profiles: %w", err)
		}
	}
	return profiler{dir: dir, cluster: cluster}, nil
}

// flags are the arguments of the next replica that let it be profiled.
func (p *profiler) flags() ([]string, error) {
	if p.dir == "" {
		return nil, nil
	}
	port, err := harness.FreePort()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	p.replicas = append(p.replicas, address)
	return []string{"--pprof-bind-address", address}, nil
}

// ofHeap is a profile of what is live.
const ofHeap = "heap?gc=1"

// ofCPU is a profile of so long from now on.
func ofCPU(long time.Duration) string { return fmt.Sprintf("profile?seconds=%d", int(long.Seconds())) }

// start begins to take the profiles. The caller must call wait, which returns once they are stored.
func (p *profiler) start(ctx context.Context, what, profile string) (wait func() error) {
	if p.dir == "" {
		return func() error { return nil }
	}
	p.number++
	path := "/debug/pprof/" + profile
	group, ctx := errgroup.WithContext(ctx)
	store := func(process string, read func() ([]byte, error)) {
		name := strings.ReplaceAll(fmt.Sprintf("%03d %s %s.pb.gz", p.number, what, process), " ", "-")
		group.Go(func() error {
			profile, err := read()
			if err != nil {
				return fmt.Errorf("profiling %s: %w", process, err)
			}
			return os.WriteFile(filepath.Join(p.dir, name), profile, 0o600)
		})
	}
	store("kube-apiserver", func() ([]byte, error) { return raw(ctx, p.cluster, path) })
	for i, address := range p.replicas {
		store(fmt.Sprintf("replica-%d", i), func() ([]byte, error) { return get(ctx, "http://"+address+path) })
	}
	return group.Wait
}

// raw returns what the API server answers at a path.
func raw(ctx context.Context, cluster *harness.Cluster, path string) ([]byte, error) {
	api, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	if err != nil {
		return nil, err
	}
	return api.RESTClient().Get().RequestURI(path).DoRaw(ctx)
}
