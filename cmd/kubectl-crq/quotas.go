// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// kinds of ours, for objects that are printed: a client leaves them out.
const (
	quotaKind     = "ClusterResourceQuota"
	quotaListKind = "ClusterResourceQuotaList"
	viewKind      = "LocalResourceQuota"
	viewListKind  = "LocalResourceQuotaList"
)

// getQuota reads one quota. If there is none, the error names the quotas that may have been meant.
func getQuota(ctx context.Context, reader client.Reader, name string) (*quotav1.ClusterResourceQuota, error) {
	quota := &quotav1.ClusterResourceQuota{}
	err := reader.Get(ctx, client.ObjectKey{Name: name}, quota)
	if apierrors.IsNotFound(err) {
		return nil, suggesting(ctx, reader, name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the quota: %w", err)
	}
	quota.SetGroupVersionKind(quotav1.GroupVersion.WithKind(quotaKind))
	return quota, nil
}

// listQuotas returns all quotas, by name.
func listQuotas(ctx context.Context, reader client.Reader) (*quotav1.ClusterResourceQuotaList, error) {
	list := &quotav1.ClusterResourceQuotaList{}
	if err := reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the quotas: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b quotav1.ClusterResourceQuota) int { return cmp.Compare(a.Name, b.Name) })
	setKinds(list)
	return list, nil
}

func setKinds(list *quotav1.ClusterResourceQuotaList) {
	list.SetGroupVersionKind(quotav1.GroupVersion.WithKind(quotaListKind))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(quotav1.GroupVersion.WithKind(quotaKind))
	}
}

// suggesting adds the quotas whose names are like a missing one to the error, if they can be read.
func suggesting(ctx context.Context, reader client.Reader, name string, missing error) error {
	list, err := listQuotas(ctx, reader)
	if err != nil {
		return missing
	}
	// It suggests names with this beginning, and names that a command would be taken for a misspelling of.
	known := &cobra.Command{SuggestionsMinimumDistance: 2}
	for i := range list.Items {
		known.AddCommand(&cobra.Command{Use: list.Items[i].Name, Run: func(*cobra.Command, []string) {}})
	}
	if near := known.SuggestionsFor(name); len(near) > 0 {
		return outcomes.QuotaLike.Err(missing, strings.Join(near, " or "))
	}
	return outcomes.NoQuotaLike.Err(missing)
}
