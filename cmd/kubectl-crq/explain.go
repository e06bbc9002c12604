// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

func newExplain(env *environment) *cobra.Command {
	var out *output
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Tell which quotas cover a namespace, by which label, and what is left",
		Long: "Tell which quotas cover a namespace, by which label, and what is left. Whoever may read the namespace and the " +
			"quotas learns why; whoever may only view the namespace learns what is left, from its local views.",
		Example: "  kubectl crq explain -n shop\n" +
			"  kubectl crq explain -n shop -o name",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return explain(cmd.Context(), env, out)
		},
	}
	out = newOutput(cmd, formatWide)
	return cmd
}

func explain(ctx context.Context, env *environment, out *output) error {
	name, reader, err := env.place()
	if err != nil {
		return err
	}
	explanation, objects, err := explanationOf(ctx, reader, name)
	if err != nil {
		return err
	}
	if table, _ := out.asTable(); table {
		return env.print(render.Explain(explanation, env.style()))
	}
	return out.print(env, objects)
}

// explanationOf explains from the namespace and all quotas, or from the local views if those can't be read. It also returns
// the objects that it found in the API: the quotas that cover the namespace, or the views.
func explanationOf(ctx context.Context, reader client.Reader, name string) (render.Explanation, runtime.Object, error) {
	namespace := &corev1.Namespace{}
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		if apierrors.IsForbidden(err) {
			return fromViews(ctx, reader, name)
		}
		return render.Explanation{}, nil, fmt.Errorf("reading the namespace: %w", err)
	}
	all, err := listQuotas(ctx, reader)
	if apierrors.IsForbidden(err) {
		return fromViews(ctx, reader, name)
	}
	if err != nil {
		return render.Explanation{}, nil, err
	}
	explanation, covering, err := fromQuotas(namespace, all)
	if err != nil {
		return explanation, nil, err
	}
	views := &quotav1.LocalResourceQuotaList{}
	if err := reader.List(ctx, views, client.InNamespace(name)); err != nil && !apierrors.IsForbidden(err) {
		return explanation, nil, fmt.Errorf("listing the local views of quotas in %s: %w", name, err)
	}
	for i := range explanation.Coverages {
		coverage := &explanation.Coverages[i]
		for k := range views.Items {
			if view := &views.Items[k]; view.Name == coverage.Quota {
				coverage.Notes = append(coverage.Notes, admits(view)...)
			}
		}
	}
	return explanation, covering, nil
}

// admits says that the quota refuses nothing in the namespace of a view, if it doesn't.
func admits(view *quotav1.LocalResourceQuota) []string {
	if why := fitting.Admits(view); why != "" {
		return []string{"It is counted, and limits nothing here: " + why + "."}
	}
	return nil
}

func fromViews(ctx context.Context, reader client.Reader, name string) (render.Explanation, runtime.Object, error) {
	views := &quotav1.LocalResourceQuotaList{}
	if err := reader.List(ctx, views, client.InNamespace(name)); err != nil {
		return render.Explanation{}, nil, fmt.Errorf("listing the local views of quotas in %s: %w", name, err)
	}
	slices.SortFunc(views.Items, func(a, b quotav1.LocalResourceQuota) int { return cmp.Compare(a.Name, b.Name) })
	views.SetGroupVersionKind(quotav1.GroupVersion.WithKind(viewListKind))
	explanation := render.Explanation{Namespace: name, FromViews: true}
	for i := range views.Items {
		view := &views.Items[i]
		view.SetGroupVersionKind(quotav1.GroupVersion.WithKind(viewKind))
		status := view.Status
		explanation.Coverages = append(explanation.Coverages, render.Coverage{
			Quota:  view.Name,
			Scopes: status.Scopes, ScopeSelector: status.ScopeSelector,
			Figures: render.Figures(status.Total.Hard, status.Total.Used, status.Reserved),
			Here:    status.Used, Surge: status.Surge, SurgeHere: true, Notes: admits(view),
		})
	}
	return explanation, views, nil
}

// fromQuotas explains which of all quotas cover the namespace, and returns those.
func fromQuotas(namespace *corev1.Namespace, all *quotav1.ClusterResourceQuotaList) (render.Explanation, runtime.Object, error) {
	explanation := render.Explanation{Namespace: namespace.Name, Labels: namespace.Labels}
	found := &quotav1.ClusterResourceQuotaList{}
	for i := range all.Items {
		quota := &all.Items[i]
		match, err := reading.MatchSelector(quota.Spec.Selector, namespace.Labels, namespace.Annotations)
		switch {
		case err != nil:
			return explanation, nil, fmt.Errorf("quota %s: %w", quota.Name, err)
		case match.Covered:
			explanation.Coverages = append(explanation.Coverages, coverageBy(quota, namespace.Name, match))
			found.Items = append(found.Items, *quota)
		case match.NearMiss():
			miss := match.Unmet[0]
			explanation.NearMisses = append(explanation.NearMisses, render.NearMiss{Quota: quota.Name, Wants: miss.Text, Has: miss.Has})
		}
	}
	setKinds(found)
	return explanation, found, nil
}

func coverageBy(quota *quotav1.ClusterResourceQuota, namespace string, match reading.Match) render.Coverage {
	coverage := render.Coverage{
		Quota:         quota.Name,
		Scopes:        quota.Spec.Quota.Scopes,
		ScopeSelector: quota.Spec.Quota.ScopeSelector,
		Figures:       render.OfQuota(quota),
		Surge:         render.SurgeOf(quota),
		Notes:         notes(quota),
	}
	for _, met := range match.Met {
		coverage.By = append(coverage.By, met.Text)
	}
	for _, slice := range quota.Status.Namespaces {
		if slice.Namespace == namespace {
			coverage.Here = slice.Status.Used
		}
	}
	return coverage
}

// notes tell why the figures may not be all.
func notes(quota *quotav1.ClusterResourceQuota) []string {
	var notes []string
	for _, condition := range []string{quotav1.ConditionReady, quotav1.ConditionEnforced} {
		current := meta.FindStatusCondition(quota.Status.Conditions, condition)
		switch {
		case current == nil:
			notes = append(notes, fmt.Sprintf("Its condition %s isn't there yet: is the operator running?", condition))
		case current.Status != "True":
			notes = append(notes, fmt.Sprintf("It is not %s (%s): %s", condition, current.Reason, current.Message))
		}
	}
	unavailable := meta.FindStatusCondition(quota.Status.Conditions, quotav1.ConditionResourceUnavailable)
	if unavailable != nil && unavailable.Status == metav1.ConditionTrue {
		notes = append(notes, fmt.Sprintf("A part of it limits nothing, or isn't counted (%s): %s",
			unavailable.Reason, unavailable.Message))
	}
	return notes
}
