// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// review is as little of an AdmissionReview as an answer takes.
type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID string `json:"uid"`
}

type response struct {
	UID     string `json:"uid"`
	Allowed bool   `json:"allowed"`
	Status  status `json:"status"`
}

// status is why a request is refused: the code of what is forbidden.
type status struct {
	Code int `json:"code,omitempty"`
}

// serveAllow is the floor of any webhook: it reads nothing but the request's UID
// and allows it, or at another path refuses it. It is probed at another address.
func serveAllow(ctx context.Context, address, health, certDir string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/allow", func(w http.ResponseWriter, r *http.Request) { answerWith(w, r, true) })
	mux.HandleFunc("/refuse", func(w http.ResponseWriter, r *http.Request) { answerWith(w, r, false) })
	ready := http.NewServeMux()
	ready.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	probed := &http.Server{Addr: health, Handler: ready, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _, _ = server.Close(), probed.Close() })
	var group errgroup.Group
	group.Go(func() error {
		return server.ListenAndServeTLS(filepath.Join(certDir, "tls.crt"), filepath.Join(certDir, "tls.key"))
	})
	group.Go(probed.ListenAndServe)
	err := group.Wait()
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was stopped
	}
	return fmt.Errorf("serving: %w", err)
}

func answerWith(writer http.ResponseWriter, incoming *http.Request, allowed bool) {
	asked := review{}
	if err := json.NewDecoder(incoming.Body).Decode(&asked); err != nil || asked.Request == nil {
		http.Error(writer, "want an AdmissionReview", http.StatusBadRequest)
		return
	}
	answer := &response{UID: asked.Request.UID, Allowed: allowed}
	if !allowed {
		answer.Status.Code = http.StatusForbidden
	}
	text, err := json.Marshal(review{APIVersion: asked.APIVersion, Kind: asked.Kind, Response: answer})
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_, _ = writer.Write(text) // The API server notices.
}

// startAllow runs this program as that webhook. Its address is an IP address of this machine.
func (w *podsWorld) startAllow(ctx context.Context, address string) (replica *harness.Operator, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	at := func(port int) string { return net.JoinHostPort(address, strconv.Itoa(port)) }
	replica = &harness.Operator{Address: address, WebhookPort: floorPort, HealthURL: "http://" + at(floorHealthPort)}
	replica.Process, err = w.cluster.StartProgram(ctx, harness.ProgramOptions{
		Name: "allow", Path: self, ReadyURL: replica.HealthURL + "/readyz",
		Args: []string{"pods", "-allow-address", at(floorPort), "-allow-health", at(floorHealthPort), "-cert-dir", w.certDir},
	})
	return replica, err
}
