// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

func newDescribe(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "describe QUOTA...",
		Short: "Tell all about quotas: selector, figures, namespaces, conditions and events",
		Example: "  kubectl crq describe payments\n" +
			"  kubectl crq describe payments logistics",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: env.completeQuotas(0),
		RunE: func(cmd *cobra.Command, names []string) error {
			return describe(cmd.Context(), env, names)
		},
	}
}

// describe prints every quota that is there, even if others aren't.
func describe(ctx context.Context, env *environment, names []string) error {
	reader, err := env.client()
	if err != nil {
		return err
	}
	var failed []error
	between := ""
	for _, name := range names {
		quota, err := getQuota(ctx, reader, name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		description, err := descriptionOf(ctx, reader, quota)
		if err != nil {
			return err
		}
		if err := env.print(between + render.Describe(description, env.style(), env.clock.Now())); err != nil {
			return err
		}
		between = "\n\n"
	}
	return errors.Join(failed...)
}

func descriptionOf(ctx context.Context, reader client.Reader, quota *quotav1.ClusterResourceQuota) (render.Description, error) {
	description := render.Description{Quota: quota, Selector: selectorText(quota)}
	events, err := eventsOf(ctx, reader, quota)
	switch {
	case apierrors.IsForbidden(err):
		description.EventsUnread = "<you can't list events in the namespace " + corev1.NamespaceDefault + ">"
	case err != nil:
		return description, err
	}
	description.Events = events
	return description, nil
}

// selectorText is that of the spec: the status may be behind.
func selectorText(quota *quotav1.ClusterResourceQuota) string {
	selector, err := definition.CompileSelector(quota.Spec.Selector)
	if err != nil {
		return err.Error()
	}
	return selector.String()
}

// eventsOf returns the events about a quota, the oldest first. The events of
// cluster-scoped objects are in the namespace default.
func eventsOf(ctx context.Context, reader client.Reader, quota *quotav1.ClusterResourceQuota) ([]corev1.Event, error) {
	list := &corev1.EventList{}
	about := fields.Set{"involvedObject.kind": quotaKind, "involvedObject.name": quota.Name, "involvedObject.uid": string(quota.UID)}
	if err := reader.List(ctx, list, client.InNamespace(corev1.NamespaceDefault),
		client.MatchingFieldsSelector{Selector: about.AsSelector()}); err != nil {
		return nil, fmt.Errorf("listing the events of %s: %w", quota.Name, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int {
		return cmp.Or(render.LastSeen(&a).Compare(render.LastSeen(&b)), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}
