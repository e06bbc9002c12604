// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	versionutil "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
)

// oldestKubernetes is the oldest version that has all the operator can't do without: match conditions in CEL are stable since it.
const oldestKubernetes = "1.30"

// feature is a feature of the API server that the operator uses, and that some
// API servers lack.
type feature struct {
	// groupVersion and resource are how discovery names it.
	groupVersion, resource string
	// since is the first version of Kubernetes that has it without being told to.
	since string
	// without describes the effect of its absence.
	without string
}

// features are told of in docs/installation.md.
func features() []feature {
	return []feature{
		{
			groupVersion: "admissionregistration.k8s.io/v1", resource: "validatingadmissionpolicies", since: "1.30",
			without: "config/policies can't be installed: RBAC alone says who may write ledgers and views",
		},
		{
			groupVersion: "v1", resource: "pods/resize", since: "1.33",
			without: "no pod can be resized, so no resize needs a limit",
		},
		{
			groupVersion: "resource.k8s.io/v1", resource: "resourceclaims", since: "1.34",
			without: "ResourceClaims and the devices of DeviceClasses aren't counted or limited, " +
				"even if another version of that API is served",
		},
		{
			groupVersion: "storage.k8s.io/v1", resource: "volumeattributesclasses", since: "1.34",
			without: "quotas of the scope VolumeAttributesClass count claims by the class in their spec, if the API server keeps it",
		},
	}
}

// lacking logs once, at the start of each replica, the features that the API
// server lacks. Nothing depends on it.
type lacking struct {
	log   logr.Logger
	asked *discovery.DiscoveryClient
}

// lacking adds it to the manager.
func (o *operator) lacking(context.Context) error {
	client := &http.Client{Transport: o.manager.GetHTTPClient().Transport, Timeout: discoveryTimeout}
	asked, err := discovery.NewDiscoveryClientForConfigAndClient(o.manager.GetConfig(), client)
	if err != nil {
		return fmt.Errorf("making the client of discovery: %w", err)
	}
	return add(o.manager, lacking{log: o.manager.GetLogger().WithName("kubernetes"), asked: asked})
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (lacking) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (l lacking) Start(ctx context.Context) error {
	if err := l.tell(ctx); err != nil {
		l.log.Info("Can't tell what this API server lacks", "reason", err.Error())
	}
	return nil
}

func (l lacking) tell(ctx context.Context) error {
	served, err := l.asked.ServerVersionWithContext(ctx)
	if err != nil {
		return fmt.Errorf("asking for the version of the API server: %w", err)
	}
	log := l.log.WithValues("version", served.GitVersion)
	oldest := versionutil.MustParseGeneric(oldestKubernetes)
	if parsed, err := versionutil.ParseGeneric(served.GitVersion); err == nil && parsed.LessThan(oldest) {
		log.Info("This version of Kubernetes is older than any that the operator was made for", "oldest", oldestKubernetes)
	}
	var errs []error
	lacks := 0
	for _, f := range features() {
		has, err := l.has(ctx, f)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !has {
			lacks++
			log.Info("This API server lacks a feature",
				"feature", f.groupVersion+" "+f.resource, "since", f.since, "consequence", f.without)
		}
	}
	log.Info("Asked what this API server serves", "lacking", lacks)
	return errors.Join(errs...)
}

func (l lacking) has(ctx context.Context, f feature) (bool, error) {
	list, err := l.asked.ServerResourcesForGroupVersionWithContext(ctx, f.groupVersion)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking what the API server serves of %s: %w", f.groupVersion, err)
	}
	for _, resource := range list.APIResources {
		if resource.Name == f.resource {
			return true, nil
		}
	}
	return false, nil
}
