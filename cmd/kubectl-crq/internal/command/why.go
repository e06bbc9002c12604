// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

const (
	// mostHolders is how many namespaces are named that hold what is short, and mostLargest how many objects.
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
			subject, err := reading.ParseSubject(args)
			if err := errors.Join(err, out.check()); err != nil {
				return err
			}
			return why(cmd.Context(), env, out, subject)
		},
	}
	out = newOutput(cmd, formatWide, formatName)
	return cmd
}

func why(ctx context.Context, env *environment, out *output, subject reading.Subject) error {
	namespace, err := env.namespace()
	if err != nil {
		return err
	}
	cluster, err := env.knownClient()
	if err != nil {
		return err
	}
	types := fitting.NewTypes()
	reader := reading.NewReader(cluster, types)
	situation, err := reader.Situation(ctx, namespace, subject)
	if err != nil {
		return err
	}
	found, err := diagnose(situation, types, newMeter(env.clock))
	if err != nil {
		return err
	}
	if err := readHolders(ctx, reader, found); err != nil {
		return err
	}
	if err := printWhy(env, out, found); err != nil {
		return err
	}
	switch fitting.Outcome(found.Result) {
	case fitting.Fits:
		return nil
	case fitting.Unknown:
		return errors.New(found.Summary)
	default:
		return errNo
	}
}

// readHolders names the namespaces that hold what is short, if the user may read the quotas.
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

func printWhy(env *environment, out *output, found *render.Why) error {
	if table, _ := out.asTable(); table {
		return env.print(render.WhyText(found, env.style(), env.clock.Now()))
	}
	found.APIVersion, found.Kind = render.APIVersion, render.WhyKind
	return printObject(env, out, found)
}

// printObject prints what no API server serves.
func printObject(env *environment, out *output, object any) error {
	render.MakeVisible(object)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("printing the answer: %w", err)
	}
	return out.print(env, &unstructured.Unstructured{Object: content})
}

// notFound is the error that kubectl get would print.
func notFound(subject reading.Subject) error {
	return apierrors.NewNotFound(subject.Resource().GroupResource(), subject.Name)
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
		if name := kind.Names[0] + "/"; strings.HasPrefix(name, begun) {
			kinds = append(kinds, name)
		}
	}
	return kinds, done | cobra.ShellCompDirectiveNoSpace
}

// namesOf returns the names of a kind's objects in the namespace that begin so, each after a prefix.
func (e *environment) namesOf(ctx context.Context, kind, prefix, begun string) []string {
	subject, err := reading.ParseSubject([]string{kind, "any"})
	if err != nil {
		return nil
	}
	namespace, err := e.namespace()
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
