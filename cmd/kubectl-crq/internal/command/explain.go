// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
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
			if err := out.check(); err != nil {
				return err
			}
			return explain(cmd.Context(), env, out)
		},
	}
	out = newOutput(cmd, formatWide)
	return cmd
}

func explain(ctx context.Context, env *environment, out *output) error {
	name, err := env.namespace()
	if err != nil {
		return err
	}
	reader, err := env.client()
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

// explanationOf explains from the namespace and all quotas, or from the local views
// where those can't be read. It returns what it found in the API, too: the quotas
// that cover the namespace, or the views.
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
	return fromQuotas(namespace, all)
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
			Here:    status.Used,
		})
	}
	return explanation, views, nil
}
