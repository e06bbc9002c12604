// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const (
	whyShort = "Explain why a workload has no pods, and what would make it fit"
	whyLong  = `Explain why a workload has no pods, or too few: which request was refused with what message, which quota is short
of what, who holds it, whether the workload waits to be woken, and what would make it fit.

KIND is deployment, statefulset, daemonset, replicaset, job, cronjob, horizontalpodautoscaler, pod,
persistentvolumeclaim, service or replicationcontroller, or a short name of it. The right to view the namespace is
enough. If you may also read the ClusterResourceQuota, the answer names the other namespaces that hold most of it.

The exit status is 0 if nothing is refused, or would fit now; 1 if something is refused or short; and 2 if it can't
be told.`
	whyExample = `  # Why does this Deployment have no pods?
  kubectl crq why deployment/web -n shop

  # The same for a Job, a claim and an autoscaler.
  kubectl crq why job/import -n shop
  kubectl crq why pvc data-db-0 -n shop
  kubectl crq why hpa/web -n shop

  # For a script.
  kubectl crq why deploy/web -n shop -o jsonpath='{.cause}'`
)

const (
	// mostHolders is how many namespaces are named that hold short resources, and mostLargest how many objects.
	mostHolders, mostLargest = 5, 3
	// mostRead is how many ClusterResourceQuotas are read to name their namespaces.
	mostRead = 3
)

func newWhy(env *environment) *cobra.Command {
	var out *output
	cmd := &cobra.Command{
		Use:               "why KIND/NAME",
		Short:             whyShort,
		Long:              whyLong,
		Example:           whyExample,
		Args:              cobra.RangeArgs(1, 2),
		Annotations:       map[string]string{answers: ""},
		ValidArgsFunction: env.completeSubjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			return why(cmd.Context(), env, out, args)
		},
	}
	out = newOutput(cmd, formatWide, formatName)
	return cmd
}

func why(ctx context.Context, env *environment, out *output, args []string) error {
	namespace, cluster, err := env.place()
	if err != nil {
		return err
	}
	subject, err := reading.ParseSubject(args, cluster.RESTMapper())
	if err != nil {
		return err
	}
	types := fitting.NewTypes()
	reader := reading.NewReader(cluster, types)
	situation, err := reader.Situation(ctx, namespace, subject)
	if err != nil {
		return err
	}
	var unread error
	found, err := diagnose(situation, types, newMeter(env.clock, situation.Surroundings), func(of render.ObjectName) string {
		text, err := reader.Warning(ctx, namespace, of.Kind, of.Name)
		unread = errors.Join(unread, err)
		return text
	})
	if err := errors.Join(err, unread); err != nil {
		return err
	}
	if err := readHolders(ctx, reader, found); err != nil {
		return err
	}
	text := func(_ bool, style render.Style) string { return render.WhyText(found, style, env.clock.Now()) }
	if err := out.answer(env, found, render.WhyKind, text); err != nil {
		return err
	}
	return outcome(fitting.Outcome(found.Result), outcomes.Untold.Err())
}

// outcome is how a command ends whose answer is yes or no. unknown is the error if it is neither.
func outcome(of fitting.Outcome, unknown error) error {
	switch of {
	case fitting.Fits:
		return nil
	case fitting.Unknown:
		return unknown
	default:
		return errNo
	}
}

// readHolders names the namespaces that hold the short resources, if the user may read the quotas.
func readHolders(ctx context.Context, reader *reading.Reader, found *render.Why) error {
	var names []string
	var short []*render.WhyQuota
	for i := range found.Quotas {
		quota := &found.Quotas[i]
		if name, shared := quota.Shared(); shared && quota.IsShort() && len(names) < mostRead {
			names, short = append(names, name), append(short, quota)
		}
	}
	if len(names) == 0 {
		return nil
	}
	read, err := reader.Holders(ctx, names)
	if err != nil {
		return err
	}
	for i, quota := range short {
		if quota.Unread = read[i] == nil; !quota.Unread {
			quota.HeldBy(read[i], mostHolders)
		}
	}
	return nil
}

// completeSubjects completes kinds, and then the names of a kind's objects in the namespace.
func (e *environment) completeSubjects(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	const done = cobra.ShellCompDirectiveNoFileComp
	switch len(args) {
	case 0:
	case 1:
		return e.namesOf(cmd.Context(), args[0], "", begun), done
	default:
		return nil, done
	}
	if kind, name, slash := strings.Cut(begun, "/"); slash {
		return e.namesOf(cmd.Context(), kind, kind+"/", name), done
	}
	var kinds []string
	for _, kind := range reading.Kinds() {
		if name := strings.ToLower(kind.Kind) + "/"; strings.HasPrefix(name, begun) {
			kinds = append(kinds, name)
		}
	}
	return kinds, done | cobra.ShellCompDirectiveNoSpace
}

// namesOf returns the names of a kind's objects in the namespace that begin so, each after a prefix.
func (e *environment) namesOf(ctx context.Context, kind, prefix, begun string) []string {
	namespace, cluster, err := e.place()
	if err != nil {
		return nil
	}
	subject, err := reading.ParseSubject([]string{kind, "any"}, cluster.RESTMapper())
	if err != nil {
		return nil
	}
	list := subject.GroupVersionKind
	list.Kind += "List"
	names := e.names(ctx, list, begun, client.InNamespace(namespace))
	for i := range names {
		names[i] = prefix + names[i]
	}
	return names
}
