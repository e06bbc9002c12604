// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const (
	fitShort = "Tell whether manifests would fit into the quotas, now"
	fitLong  = `Tell whether manifests would fit into the quotas of their namespaces, now.

Manifests are read as kubectl apply reads them, and nothing is written. Workloads are expanded to the pods and
claims that they make; what is there already is not counted again. What each object costs is computed with
Kubernetes' own code, and compared with what shared quotas (crq) and ResourceQuotas (quota) leave.

The exit status is 0 if everything fits, 1 if not, and 2 if it can't be told.`
	fitExample = `  # Would this fit, and if not, what is missing?
  kubectl crq fit -f deployment.yaml -n shop

  # All of a directory; what was counted is listed.
  kubectl crq fit -f manifests/ -R -n shop -o wide

  # What a chart makes, before it is installed.
  helm template shop ./chart | kubectl crq fit -f - -n shop

  # A DaemonSet, without the right to see nodes.
  kubectl crq fit -f agent.yaml -n shop --nodes 12`

	notInstalledNote = "Shared quotas aren't installed in this cluster: only ResourceQuotas were looked at."
	unviewedNote     = "It isn't known whether a ClusterResourceQuota covers namespace %s: there is no LocalResourceQuota in it, " +
		"which may not have been written yet, and you may not read the namespace and the ClusterResourceQuotas."

	// fitTimeout bounds all that is read from the cluster for one answer.
	fitTimeout = 2 * time.Minute
)

// fit is one call of the command.
type fit struct {
	env   *environment
	files genericclioptions.FileNameFlags
	nodes reading.Nodes
	out   *output
}

func newFit(env *environment) *cobra.Command {
	f := &fit{env: env, files: genericclioptions.FileNameFlags{
		Usage: "The files, directories or URLs of the manifests; - for standard input.",
		// Flags are parsed into these.
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
	f.out = newOutput(command, formatName)
	return command
}

func (f *fit) run(ctx context.Context) error {
	files := f.files.ToOptions()
	if err := files.RequireFilenameOrKustomize(); err != nil {
		return err //nolint:wrapcheck // in kubectl's words
	}
	if f.nodes.Count < 0 {
		return outcomes.NegativeFlag.Err("--nodes")
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

// question is all that was read.
type question struct {
	namespaces []string
	// unviewed are the namespaces for which it isn't known whether a shared quota covers them.
	unviewed []string
	demands  []fitting.Demand
	limits   []fitting.Limit
	rules    *fitting.Rules
	classes  []resourceapi.DeviceClass
	notes    []string
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
	asked.rules, asked.classes = fitting.NewRules(types, surroundings), surroundings.DeviceClasses
	asked.unviewed, asked.notes = limits.Unviewed, append(asked.notes, limitNotes(&limits)...)
	asked.notes = append(asked.notes, unreadNotes(unread, asked)...)
	return asked, nil
}

// read reads the present objects of the manifests.
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
	fitter := fitting.NewFitter(evaluation.New(f.env.clock, evaluation.ClaimsBy(asked.classes)), asked.rules.Admit)
	verdict, err := fitter.Fit(asked.demands, asked.limits)
	if err != nil {
		return err
	}
	asked.notes = append(asked.notes, rolloutNotes(verdict, asked.demands)...)
	found := resultOf(asked, verdict)
	text := func(wide bool, style render.Style) string { return render.FitText(found, wide, style) }
	if err := f.out.answer(f.env, found, render.FitKind, text); err != nil {
		return err
	}
	return outcome(verdict.Outcome(), notCounted(verdict))
}

func resultOf(asked question, verdict fitting.Verdict) *render.Fit {
	result := &render.Fit{
		Result: string(verdict.Outcome()), Namespaces: append([]string{}, asked.namespaces...),
		Unviewed: asked.unviewed, Quotas: []render.FitRow{}, Refusals: []render.FitRefusal{}, Counted: []render.FitCounted{},
		Notes: append([]string{}, asked.notes...),
	}
	for _, row := range verdict.Rows {
		found := render.FitRow{
			Quota: quotaName(row.Limit), Namespaces: row.Limit.Namespaces, Resource: string(row.Resource),
			Requested: row.Requested.String(), InTheEnd: row.InTheEnd.String(), WithSurge: row.WholeSurge.String(),
		}
		if found.Advisory = row.Limit.Admits != ""; found.Advisory {
			note := found.Quota + ": " + row.Limit.Admits + "."
			if !slices.Contains(result.Notes, note) {
				result.Notes = append(result.Notes, note)
			}
		}
		if row.Counted {
			found.Available, found.Shortfall, found.Surge = row.Available.String(), row.Shortfall.String(), surgeOf(row)
		}
		result.Quotas = append(result.Quotas, found)
	}
	for _, refusal := range verdict.Refusals {
		result.Refusals = append(result.Refusals, render.FitRefusal{
			Manifest: manifestName(refusal.Kind, refusal.Namespace, refusal.Name), Refused: refusal.Refused, Message: refusal.Message,
		})
	}
	for _, demand := range asked.demands {
		result.Counted = append(result.Counted, countedOf(demand)...)
	}
	return result
}

// surgeOf returns the surge of a row; nil for none.
func surgeOf(row fitting.Row) *render.FitSurge {
	if _, ok := row.Limit.Surge[row.Resource]; !ok {
		return nil
	}
	left, taken := row.SurgeLeft(), row.TakesSurge()
	return &render.FitSurge{Left: left.String(), Taken: taken.String(), Shortfall: string(row.Surge)}
}

func countedOf(demand fitting.Demand) []render.FitCounted {
	var counted []render.FitCounted
	add := func(item fitting.Item, count, replaces int64) {
		if count > 0 && item.Old == nil {
			counted = append(counted, render.FitCounted{
				Manifest: manifestName(demand.Kind, demand.Namespace, demand.Name),
				Makes:    item.Kind, Count: count, Replaces: replaces, When: cmp.Or(string(item.When), "now"),
			})
		}
	}
	for _, item := range demand.Items {
		add(item, item.Count, 0)
	}
	if pods := demand.Pods; pods != nil {
		for _, item := range pods.New {
			add(item, pods.Missing()*item.Count, pods.Replaced())
		}
	}
	return counted
}

func notCounted(verdict fitting.Verdict) error {
	var parts []string
	for _, row := range verdict.Rows {
		if !row.Counted && row.Limit.Admits == "" {
			parts = append(parts, string(row.Resource)+" of "+quotaName(row.Limit))
		}
	}
	return outcomes.CannotTell.Err(strings.Join(parts, ", "))
}

func quotaName(limit *fitting.Limit) string { return string(limit.Source) + "/" + limit.Name }

func manifestName(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

const (
	noLimitRanges = "You may not read LimitRanges: what they add to pods isn't counted."
	noPriorities  = "You may not read PriorityClasses: pods that name none are taken to have none, and a quota here goes by that."
	noStorage     = "You may not read StorageClasses: claims that name none are taken to have none, and a quota here goes by that."
	stuckRollout  = "In the end it would fit: what is short is room for %s to replace pods, which starts new ones before old ones go. " +
		"Without maxSurge, or with maxUnavailable of 1 or more, it gets by without. Short of: %s."
	tightRollout = "There isn't room for the whole surge of %s: pods are replaced in smaller steps, and until then " +
		"some are refused and tried again. Short of: %s."
	takesSurge = "There is room for %s because its pods replace others, and may take surge of the quota: %s."
	surgeTaken = "Surge of the quota, which is room for pods that replace others, would do for %s, and it is taken: %s. " +
		"Wait until other rollouts have ended, or ask your cluster administrator for more spec.surge."
	surgeTooSmall = "Surge of the quota, which is room for pods that replace others, is less than %s needs: %s. " +
		"Ask your cluster administrator for more spec.surge."
	surgeGrows = "Surge of the quota is room for pods that replace others, and those of %s get none, because they ask for more than before, " +
		"or have other claims: %s. Free some room, or ask for no more than before."
	noDevices  = "You may not read DeviceClasses: devices of claims aren't counted as extended resources, and a quota here limits some."
	noRuntimes = "You may not read RuntimeClasses: the overhead of pods that name one isn't counted."
)

// limitNotes say which limits aren't known.
func limitNotes(limits *reading.Limits) []string {
	var notes []string
	if limits.NotInstalled {
		notes = append(notes, notInstalledNote)
	}
	if len(limits.Unviewed) > 0 {
		notes = append(notes, fmt.Sprintf(unviewedNote, strings.Join(limits.Unviewed, ", ")))
	}
	return notes
}

// unreadNotes name the objects that the user may not read, if they matter.
func unreadNotes(unread reading.Unread, asked question) []string {
	var notes []string
	add := func(note string, matters bool) {
		if matters {
			notes = append(notes, note)
		}
	}
	pod := func(matters func(*corev1.Pod) bool) bool {
		return made(asked.demands, func(object client.Object) bool {
			pod, ok := object.(*corev1.Pod)
			return ok && matters(pod)
		})
	}
	add(noLimitRanges, unread.LimitRanges)
	add(noPriorities, unread.PriorityClasses && slices.ContainsFunc(asked.limits, reading.ByPriority) &&
		pod(func(pod *corev1.Pod) bool { return pod.Spec.PriorityClassName == "" }))
	add(noRuntimes, unread.RuntimeClasses &&
		pod(func(pod *corev1.Pod) bool { return pod.Spec.RuntimeClassName != nil && pod.Spec.Overhead == nil }))
	add(noStorage, unread.StorageClasses && slices.ContainsFunc(asked.limits, reading.ByStorageClass) &&
		made(asked.demands, func(object client.Object) bool {
			claim, ok := object.(*corev1.PersistentVolumeClaim)
			return ok && claim.Spec.StorageClassName == nil
		}))
	add(noDevices, unread.DeviceClasses && slices.ContainsFunc(asked.limits, reading.ByExtendedResource) &&
		made(asked.demands, func(object client.Object) bool {
			_, ok := object.(*resourceapi.ResourceClaim)
			return ok
		}))
	return notes
}

func made(demands []fitting.Demand, matters func(client.Object) bool) bool {
	return slices.ContainsFunc(demands, func(demand fitting.Demand) bool {
		items := demand.Items
		if demand.Pods != nil {
			items = slices.Concat(items, demand.Pods.New)
		}
		return slices.ContainsFunc(items, func(item fitting.Item) bool { return matters(item.Object) })
	})
}

// rolloutNotes name limits that get in the way of replacing pods, and not those of the pods in the end.
func rolloutNotes(verdict fitting.Verdict, demands []fitting.Demand) []string {
	rollouts := rolloutNames(demands)
	if len(rollouts) == 0 {
		return nil
	}
	of := map[string][]string{} // note -> the resources that it is about
	for _, row := range verdict.Rows {
		if !row.Counted || row.Limit.Admits != "" {
			continue
		}
		if row.InTheEnd.Cmp(row.Available) > 0 && !row.Shortfall.IsZero() && row.Surge == fitting.SurgeNone {
			return nil
		}
		if note, about := rolloutNote(row); note != "" {
			of[note] = append(of[note], about)
		}
	}
	var notes []string
	for _, note := range []string{stuckRollout, surgeTaken, surgeTooSmall, surgeGrows, takesSurge, tightRollout} {
		if len(of[note]) > 0 {
			notes = append(notes, fmt.Sprintf(note, strings.Join(rollouts, ", "), strings.Join(of[note], ", ")))
		}
	}
	return notes
}

// rolloutNote returns the note on a resource, and the words about it that the note has; empty if there is nothing to say.
func rolloutNote(row fitting.Row) (note, about string) {
	waits, takes, left := row.Waits(), row.TakesSurge(), row.SurgeLeft()
	about = fmt.Sprintf("%s of %s", row.Resource, quotaName(row.Limit))
	switch {
	case row.Surge != fitting.SurgeNone:
		return map[fitting.Surge]string{
			fitting.SurgeTaken: surgeTaken, fitting.SurgeTooSmall: surgeTooSmall, fitting.SurgeGrows: surgeGrows,
		}[row.Surge], fmt.Sprintf("%s, short of %s", about, row.Shortfall.String())
	case !row.Shortfall.IsZero():
		return stuckRollout, about
	case !waits.IsZero():
		return tightRollout, about
	case !takes.IsZero():
		return takesSurge, fmt.Sprintf("%s, %s of the %s that is left", about, takes.String(), left.String())
	default:
		return "", ""
	}
}

func rolloutNames(demands []fitting.Demand) []string {
	var names []string
	for _, demand := range demands {
		if demand.Pods != nil && demand.Pods.Replaced() > 0 && demand.Pods.Surge > 0 {
			names = append(names, manifestName(demand.Kind, demand.Namespace, demand.Name))
		}
	}
	return names
}
