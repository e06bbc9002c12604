// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	// completionName begins the name by which kubectl calls for completion of the arguments of "kubectl crq".
	completionName = "kubectl_complete-"
	// completionTimeout is how long completion may keep the user waiting.
	completionTimeout = 3 * time.Second
)

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// Arguments returns the arguments of a program that was called so: under the name
// for completion it completes its own arguments.
func Arguments(called []string) []string {
	if strings.HasPrefix(filepath.Base(called[0]), completionName) {
		return append([]string{cobra.ShellCompRequestCmd}, called[1:]...)
	}
	return called[1:]
}

// completeQuotas completes up to most names of quotas; 0 is no limit.
func (e *environment) completeQuotas(most int) completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := e.names(cmd.Context(), quotav1.GroupVersion.WithKind(quotaListKind), begun)
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func (e *environment) completeNamespaces(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return e.names(cmd.Context(), corev1.SchemeGroupVersion.WithKind("NamespaceList"), begun), cobra.ShellCompDirectiveNoFileComp
}

// names returns the names of all objects of a kind that begin so; none if they
// can't be read, because a completion can't print an error.
func (e *environment) names(ctx context.Context, kind schema.GroupVersionKind, begun string, options ...client.ListOption) []string {
	reader, err := e.client()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := reader.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil
	}
	names := make([]string, 0, meta.LenList(list))
	for i := range list.Items {
		if name := list.Items[i].Name; strings.HasPrefix(name, begun) {
			names = append(names, name)
		}
	}
	return names
}
