// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

const (
	outageShort = "List what would be refused now if no replica of the operator answered"
	outageLong  = `List what would be refused now if no replica of the operator answered, in which namespaces, and for the sake of which
quotas. The API server decides that by the webhook configuration shared-quota: a namespace meets one entry of it, and its
requests are refused if at least one quota of the entry wants that. A quota doesn't if spec.enforcement.whenUnavailable is
Admit, or if the mode of each of its resources is Warn or Audit.

Without -n, all namespaces are listed. If there are many, those of which the same is to be said are in one line.`
	outageExample = `  # What stands still during an outage of the operator?
  kubectl crq outage

  # The same of one namespace.
  kubectl crq outage -n shop

  # The namespaces alone.
  kubectl crq outage -o jsonpath='{range .refused[*]}{.namespace}{"\n"}{end}'`
)

func newOutage(env *environment) *cobra.Command {
	var out *output
	cmd := &cobra.Command{
		Use:               "outage",
		Short:             outageShort,
		Long:              outageLong,
		Example:           outageExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return outage(cmd.Context(), env, out)
		},
	}
	out = newOutput(cmd, formatWide, formatName)
	return cmd
}

func outage(ctx context.Context, env *environment, out *output) error {
	reader, err := env.client()
	if err != nil {
		return err
	}
	// The namespace of the kubeconfig's context isn't asked for.
	found, err := reading.NewReader(reader, fitting.NewTypes()).Outage(ctx, *env.config.Namespace)
	if err != nil {
		return fmt.Errorf("finding out what would be refused: %w", err)
	}
	answer := outageOf(found, *env.config.Namespace)
	if table, _ := out.asTable(); table {
		return env.print(render.Outages(answer, env.style()))
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&answer)
	if err != nil {
		return fmt.Errorf("printing the answer: %w", err)
	}
	return out.print(env, &unstructured.Unstructured{Object: content})
}
