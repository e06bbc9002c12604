// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// settleTimeout bounds each request, and each wait for something to take effect.
const settleTimeout = time.Minute

// withCluster starts a control plane, and stops it when do has returned.
func withCluster(ctx context.Context, options harness.Options, do func(*harness.Cluster) error) error {
	cluster, err := harness.Start(ctx, options)
	if err != nil {
		return err
	}
	return errors.Join(do(cluster), cluster.Stop())
}

// installOperator installs the operator by config/default, without a replica. The control plane has Options.Production. The
// caller must call Close.
func installOperator(ctx context.Context, cluster *harness.Cluster, config string) (*harness.Production, error) {
	for _, args := range [][]string{
		{"apply", "-k", filepath.Join(config, "default")},
		{"wait", "--for=condition=established", "--timeout=60s", "crd", "--all"},
	} {
		result, err := cluster.KubectlIn(ctx, ".", nil, args...)
		if err != nil {
			return nil, err
		}
		if result.ExitCode != 0 {
			return nil, fmt.Errorf("kubectl %v: %s", args, result.Stderr)
		}
	}
	return cluster.StartProduction(ctx, operatorNamespace, operatorDeployment, operatorService)
}

// connect returns a client of Kubernetes' own types, CRDs and ours.
func connect(config *rest.Config) (client.WithWatch, error) {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, quotav1.AddToScheme,
	} {
		if err := add(types); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return client.NewWithWatch(config, client.Options{Scheme: types})
}

// connectAlone returns a client with a connection of its own, and the encoding that costs the
// least, here and in the API server.
func connectAlone(config *rest.Config) (kubernetes.Interface, error) {
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	config.Dial = (&net.Dialer{}).DialContext // Its own, so that the transport isn't shared.
	config.Timeout = settleTimeout
	return kubernetes.NewForConfig(config)
}

// disarm takes away the webhook configurations of whoever has stopped: what nobody answers is
// refused.
func disarm(ctx context.Context, api client.Client) error {
	if err := api.DeleteAllOf(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{}); err != nil {
		return fmt.Errorf("deleting webhook configurations: %w", err)
	}
	return nil
}
