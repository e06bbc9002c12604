// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// noQuotas is said in place of an empty table.
const noQuotas = "There is no ClusterResourceQuota: no limit is shared.\n"

// The values of --sort-by.
const (
	sortByName  = "name"
	sortByUsage = "usage"
)

// topFlags are those of kubectl crq top.
type topFlags struct {
	out        *output
	watch      bool
	interval   time.Duration
	sortBy     string
	namespaces int
}

func newTop(env *environment) *cobra.Command {
	flags := &topFlags{}
	cmd := &cobra.Command{
		Use:   "top [QUOTA]",
		Short: "Show how full quotas are, and which namespaces use most",
		Long: "Show how full quotas are, and which namespaces use most. What is reserved was admitted and not observed yet; " +
			"it counts like what is used. PEAK is the most that was used and reserved at once in the last 30 days.",
		Example: "  kubectl crq top\n" +
			"  kubectl crq top payments --watch\n" +
			"  kubectl crq top --sort-by usage",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: env.completeQuotas(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			if flags.watch {
				return watchTop(cmd.Context(), env, flags, name)
			}
			return top(cmd.Context(), env, flags, name)
		},
	}
	flags.out = newOutput(cmd)
	cmd.Flags().BoolVarP(&flags.watch, "watch", "w", false, "Go on and show every change, until Ctrl-C.")
	cmd.Flags().DurationVar(&flags.interval, "interval", time.Second, "How often --watch reads the quotas.")
	cmd.Flags().StringVar(&flags.sortBy, "sort-by", sortByName, "What comes first: by name, or by usage what is fullest.")
	cmd.Flags().IntVar(&flags.namespaces, "namespaces", 3, "How many namespaces are named for each resource.")
	orders := cobra.FixedCompletions([]string{sortByName, sortByUsage}, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("sort-by", orders)
	return cmd
}

func (f *topFlags) check() error {
	switch {
	case f.sortBy != sortByName && f.sortBy != sortByUsage:
		return outcomes.UnknownOrder.Err(f.sortBy, sortByName, sortByUsage)
	case f.namespaces < 0:
		return outcomes.FewNamespaces.Err(f.namespaces)
	case f.interval <= 0:
		return outcomes.ShortInterval.Err(f.interval)
	}
	if table, _ := f.out.asTable(); f.watch && !table {
		return outcomes.WatchedTable.Err(*f.out.flags.OutputFormat)
	}
	return nil
}

func top(ctx context.Context, env *environment, flags *topFlags, name string) error {
	reader, err := env.client()
	if err != nil {
		return err
	}
	list, object, err := readQuotas(ctx, reader, name)
	if err != nil {
		return err
	}
	if table, _ := flags.out.asTable(); table {
		return env.print(flags.text(env, list, name))
	}
	return flags.out.print(env, object)
}

// readQuotas returns the named quota or, without a name, all of them; as a list, and
// as the object of the API that was asked for.
func readQuotas(ctx context.Context, reader client.Reader, name string) ([]quotav1.ClusterResourceQuota, runtime.Object, error) {
	if name == "" {
		list, err := listQuotas(ctx, reader)
		if err != nil {
			return nil, nil, err
		}
		return list.Items, list, nil
	}
	quota, err := getQuota(ctx, reader, name)
	if err != nil {
		return nil, nil, err
	}
	return []quotav1.ClusterResourceQuota{*quota}, quota, nil
}

// text shows the quotas as they are now. It shows more of one quota than of many.
func (f *topFlags) text(env *environment, quotas []quotav1.ClusterResourceQuota, name string) string {
	_, wide := f.out.asTable()
	options := render.TopOptions{Style: env.style(), Wide: wide, ByUsage: f.sortBy == sortByUsage, Namespaces: f.namespaces}
	switch {
	case len(quotas) == 0 && name != "":
		return "The quota " + name + " is gone.\n"
	case len(quotas) == 0:
		return noQuotas
	case name == "":
		return render.Top(quotas, options)
	}
	namespaces := render.TopNamespaces(&quotas[0], options)
	if namespaces != "" {
		namespaces = "\n" + namespaces
	}
	options.Namespaces = 0
	return render.Top(quotas, options) + namespaces
}
