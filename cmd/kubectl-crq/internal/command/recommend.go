// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

const (
	formatYAML = "yaml"

	recommendShort = "Recommend limits by what the last 30 days needed"
	recommendLong  = `Recommend the least limits by which nothing of the last 30 days would have been refused.

A recommendation is the peak of what was used and reserved at once. If requests were refused, it is what the largest of
them would have needed. It has no margin: add what you expect to grow. Amounts are taken from status.history, which the
operator writes.

-o yaml prints a patch of one quota that has only the limits that would change, and -o json all data.`
	recommendExample = `  # Which limits of all quotas are too high, or too low?
  kubectl crq recommend

  # Follow the recommendation for one quota.
  kubectl crq recommend payments -o yaml >patch.yaml
  kubectl patch crq payments --type merge --patch-file patch.yaml`
)

func newRecommend(env *environment) *cobra.Command {
	var out *output
	cmd := &cobra.Command{
		Use:               "recommend [QUOTA]",
		Short:             recommendShort,
		Long:              recommendLong,
		Example:           recommendExample,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: env.completeQuotas(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return recommend(cmd.Context(), env, out, name)
		},
	}
	out = newOutput(cmd, formatWide, formatName)
	return cmd
}

func recommend(ctx context.Context, env *environment, out *output, name string) error {
	patch := *out.flags.OutputFormat == formatYAML
	if patch && name == "" {
		return errors.New("-o yaml prints the patch of one quota: name the quota, or use -o json for all")
	}
	reader, err := env.client()
	if err != nil {
		return err
	}
	quotas, _, err := readQuotas(ctx, reader, name)
	if err != nil {
		return err
	}
	found := &render.Recommend{Quotas: []render.Recommendation{}}
	for i := range quotas {
		found.Quotas = append(found.Quotas, recommendation(&quotas[i], env.clock.Now()))
	}
	table, _ := out.asTable()
	switch {
	case patch:
		text, err := patchText(found.Quotas[0])
		if err != nil {
			return err
		}
		return env.print(text)
	case !table:
		found.APIVersion, found.Kind = render.APIVersion, render.RecommendKind
		return printObject(env, out, found)
	case len(quotas) == 0:
		return env.print(noQuotas)
	default:
		return env.print(render.RecommendText(found, env.style()))
	}
}

// patch is what kubectl patch takes.
type patch struct {
	Spec patchedSpec `json:"spec"`
}

type patchedSpec struct {
	Quota quotav1.ResourceQuotaSpec `json:"quota"`
}

// patchText returns a merge patch with the limits that would change, and how to use it.
func patchText(of render.Recommendation) (string, error) {
	hard := corev1.ResourceList{}
	for _, limit := range of.Resources {
		if limit.Change == render.Lower || limit.Change == render.Raise {
			hard[limit.Resource] = *limit.Recommended
		}
	}
	if len(hard) == 0 {
		return "# No limit of " + of.Quota + " would change.\n{}\n", nil
	}
	text, err := yaml.Marshal(patch{Spec: patchedSpec{Quota: quotav1.ResourceQuotaSpec{Hard: hard}}})
	if err != nil {
		return "", fmt.Errorf("writing the patch: %w", err)
	}
	return "# kubectl patch crq " + of.Quota + " --type merge --patch-file FILE\n" + string(text), nil
}
