// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

const (
	reclaimShort = "List what holds quota and does nothing, and commands that free it"
	reclaimLong  = `List what holds quota and does nothing, and the command that frees each. No command is executed. If none is known to be
safe, such as for what another controller made or a workload keeps, the answer says what to look at instead.

Found are pods that have been pending or crash-looping for an hour, Jobs that finished an hour ago and still count,
Deployments that are stuck between two ReplicaSets, load balancers without ready endpoints for an hour, and claims that
no pod uses. Only what counts against a quota of the namespace is listed. What frees most of the tightest resource
comes first.`
	reclaimExample = `  # What could this namespace give back?
  kubectl crq reclaim -n shop

  # The same for all namespaces, of what is older than a day.
  kubectl crq reclaim -A --older-than 24h

  # The commands alone, to read and choose from.
  kubectl crq reclaim -n shop -o jsonpath='{range .namespaces[*].findings[?(@.command)]}{.command}{"\n"}{end}'`
)

// reclaimFlags are those of kubectl crq reclaim.
type reclaimFlags struct {
	out       *output
	all       bool
	olderThan time.Duration
}

func newReclaim(env *environment) *cobra.Command {
	flags := &reclaimFlags{}
	cmd := &cobra.Command{
		Use:               "reclaim",
		Short:             reclaimShort,
		Long:              reclaimLong,
		Example:           reclaimExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			return reclaim(cmd.Context(), env, flags)
		},
	}
	flags.out = newOutput(cmd, formatWide, formatName)
	cmd.Flags().BoolVarP(&flags.all, "all-namespaces", "A", false, "Look at all namespaces.")
	cmd.Flags().DurationVar(&flags.olderThan, "older-than", time.Hour, "How long at least a thing has done nothing.")
	return cmd
}

func (f *reclaimFlags) check() error {
	if f.olderThan < 0 {
		return errors.New("--older-than must not be negative")
	}
	return f.out.check()
}

func reclaim(ctx context.Context, env *environment, flags *reclaimFlags) error {
	namespace := ""
	if !flags.all {
		var err error
		if namespace, err = env.namespace(); err != nil {
			return err
		}
	}
	cluster, err := env.knownClient()
	if err != nil {
		return err
	}
	inventory, err := reading.NewReader(cluster, fitting.NewTypes()).Inventory(ctx, namespace)
	if missing := (*reading.MissingNamespaceError)(nil); errors.As(err, &missing) {
		return fmt.Errorf("namespace %s doesn't exist", missing.Namespace)
	}
	if err != nil {
		return err
	}
	found, err := findIdle(inventory, newMeter(env.clock), flags.olderThan)
	if err != nil {
		return err
	}
	if namespace != "" && isUnlimited(inventory) {
		found.Notes = append(found.Notes, "No quota limits namespace "+namespace+", so that nothing in it holds any.")
	}
	if table, _ := flags.out.asTable(); table {
		return env.print(render.ReclaimText(found, env.style()))
	}
	found.APIVersion, found.Kind = render.APIVersion, render.ReclaimKind
	return printObject(env, flags.out, found)
}

// isUnlimited reports whether there is no quota, also none that the user may not read.
func isUnlimited(inventory *reading.Inventory) bool {
	isQuota := func(resource string) bool { return resource == viewResource || resource == "resourcequotas" }
	return len(inventory.Limits.Views)+len(inventory.Limits.Quotas) == 0 && !slices.ContainsFunc(inventory.Forbidden, isQuota)
}

// reclaimNotes say what isn't looked for.
func reclaimNotes(inventory *reading.Inventory) []string {
	notes := []string{}
	if len(inventory.Forbidden) > 0 {
		unread := strings.Join(inventory.Forbidden, ", ")
		notes = append(notes, fmt.Sprintf("You may not read %s: what depends on that isn't looked for.", unread))
	}
	if inventory.Limits.NotInstalled {
		notes = append(notes, notInstalledNote)
	}
	return notes
}
