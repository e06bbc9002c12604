/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// profile takes a CPU profile of the operator's first replica while a turn is
// measured, where that was asked for. The outcome is sent once.
func (w *world) profile(ctx context.Context, v variant, r *running, l load) <-chan error {
	done := make(chan error, 1)
	if r.pprof == 0 {
		done <- nil
		return done
	}
	name := fmt.Sprintf("%s, %d clients in %d namespaces, refused %t.pprof", v.name, l.clients, l.namespaces, l.refused)
	name = strings.ReplaceAll(name, " ", "-")
	go func() {
		pause(ctx, warmUp)
		done <- download(ctx, filepath.Join(w.profiles, name),
			fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/profile?seconds=%d", r.pprof, max(1, int(l.duration/time.Second))))
	}()
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
