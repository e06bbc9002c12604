// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// fitTimeout bounds all that is read from the cluster for one answer.
const fitTimeout = 2 * time.Minute

// fit is one call of the command.
type fit struct {
	env    *environment
	files  genericclioptions.FileNameFlags
	nodes  reading.Nodes
	output string
}

func newFit(env *environment) *cobra.Command {
	f := &fit{env: env, files: genericclioptions.FileNameFlags{
		Usage: "The files, directories or URLs of the manifests; - for standard input.",
		// Where flags are parsed to.
		Filenames: &[]string{}, Kustomize: ptr.To(""), Recursive: ptr.To(false),
	}}
	command := &cobra.Command{
		Use:         "fit -f FILE",
		Short:       fitShort,
		Long:        fitLong,
		Example:     fitExample,
		Args:        cobra.NoArgs,
		Annotations: map[string]string{answers: ""},
		RunE: func(command *cobra.Command, _ []string) error {
			f.nodes.Said = command.Flags().Changed("nodes")
			return f.run(command.Context())
		},
	}
	f.files.AddFlags(command.Flags())
	command.Flags().Int64Var(&f.nodes.Count, "nodes", 0, "How many nodes each DaemonSet of the manifests runs on.")
	command.Flags().StringVarP(&f.output, "output", "o", "", "How to print the answer: wide, json or yaml.")
	return command
}

func (f *fit) run(ctx context.Context) error {
	files := f.files.ToOptions()
	if err := errors.Join(files.RequireFilenameOrKustomize(), f.validate()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fitTimeout)
	defer cancel()
	cluster, err := f.env.client()
	if err != nil {
		return err
	}
	namespace, enforced, err := f.env.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("finding the namespace: %w", err)
	}
	target := reading.Target{Namespace: namespace, Enforced: enforced}
	objects, notes, err := reading.Read(&files, target, cluster.RESTMapper())
	if err != nil {
		return err
	}
	question, err := f.ask(ctx, cluster, objects)
	if err != nil {
		return err
	}
	question.notes = append(notes, question.notes...)
	return f.answer(question)
}

func (f *fit) validate() error {
	if !slices.Contains([]string{"", "wide", "json", "yaml"}, f.output) {
		return errors.New(unknownOutput(f.output))
	}
	if f.nodes.Count < 0 {
		return errors.New(negativeNodes)
	}
	return nil
}

// question is all that was read.
type question struct {
	namespaces []string
	demands    []fitting.Demand
	limits     []fitting.Limit
	rules      *fitting.Rules
	notes      []string
}

func (f *fit) ask(ctx context.Context, cluster client.Client, objects []reading.Object) (question, error) {
	types := fitting.NewTypes()
	reader := reading.NewReader(cluster, types)
	found, notes, err := f.read(ctx, reader, objects)
	if err != nil {
		return question{}, err
	}
	asked := question{namespaces: namespacesOf(objects), notes: notes}
	for _, manifest := range found {
		demand, err := fitting.Expand(manifest)
		if err != nil {
			return question{}, err
		}
		asked.demands = append(asked.demands, demand)
		asked.notes = append(asked.notes, demand.Notes...)
	}
	limits, err := reader.Limits(ctx, asked.namespaces)
	if err != nil {
		return question{}, err
	}
	asked.limits = fitting.LimitsOf(limits.Views, limits.Quotas)
	surroundings, unread, err := reader.Surroundings(ctx, asked.namespaces)
	if err != nil {
		return question{}, err
	}
	asked.rules = fitting.NewRules(types, surroundings)
	if limits.NotInstalled {
		asked.notes = append(asked.notes, notInstalledNote)
	}
	asked.notes = append(asked.notes, unreadNotes(unread, asked)...)
	return asked, nil
}

// read reads what is there of the objects already.
func (f *fit) read(ctx context.Context, reader *reading.Reader, objects []reading.Object) ([]fitting.Manifest, []string, error) {
	var nodes func(*appsv1.DaemonSet) (int64, bool)
	if slices.ContainsFunc(objects, isDaemonSet) { // Nodes are many and large.
		counted, err := reader.NodesOf(ctx, f.nodes)
		if err != nil {
			return nil, nil, err
		}
		nodes = counted
	}
	var notes []string
	present := map[string]fitting.Present{}
	for _, namespace := range namespacesOf(objects) {
		holds, unread, err := reader.Present(ctx, namespace)
		if err != nil {
			return nil, nil, err
		}
		holds.Nodes = nodes
		present[namespace] = holds
		notes = append(notes, unread...)
	}
	found := make([]fitting.Manifest, 0, len(objects))
	for _, object := range objects {
		manifest, note, err := reader.Manifest(ctx, object)
		if err != nil {
			return nil, nil, err
		}
		if note != "" {
			notes = append(notes, note)
		}
		manifest.Present = present[object.GetNamespace()]
		if template, ok := manifest.Object.(*resourceapi.ResourceClaimTemplate); ok {
			manifest.Present.ClaimTemplates[template.Name] = template
		}
		found = append(found, manifest)
	}
	return found, notes, nil
}

func isDaemonSet(object reading.Object) bool {
	return object.Resource.GroupResource() == appsv1.Resource("daemonsets")
}

func namespacesOf(objects []reading.Object) []string {
	namespaces := map[string]struct{}{}
	for _, object := range objects {
		namespaces[object.GetNamespace()] = struct{}{}
	}
	return slices.Sorted(maps.Keys(namespaces))
}

// answer judges, and says so.
func (f *fit) answer(asked question) error {
	fitter := fitting.NewFitter(evaluation.New(f.env.clock, evaluation.ClaimSources{}), asked.rules.Complete)
	verdict, err := fitter.Fit(asked.demands, asked.limits)
	if err != nil {
		return err
	}
	asked.notes = append(asked.notes, rolloutNotes(verdict, asked.demands)...)
	if err := printFit(f.env.streams.Out, f.output, asked, verdict); err != nil {
		return fmt.Errorf("printing the answer: %w", err)
	}
	switch verdict.Outcome() {
	case fitting.Fits:
		return nil
	case fitting.Unknown:
		return errors.New(notCounted(verdict))
	default:
		return errNo
	}
}
