// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const (
	reclaimShort = "List what holds quota and does nothing, and commands that free it"
	reclaimLong  = `List what holds quota and does nothing, and the command that frees each. No command is executed. If none is known to be
safe, such as for what another controller made or a workload keeps, the answer says what to look at instead.

Found are, of what is older than an hour: pods that are pending, crash-looping or have ended, finished Jobs, Deployments
that are stuck between two ReplicaSets, ReplicaSets of older templates, Services without ready endpoints, and claims that
no pod uses or that aren't bound. Only what counts against a quota of the namespace is listed. What frees most of the
tightest resource comes first. Nothing says whether other objects, such as ConfigMaps, are still needed.`
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
			if flags.olderThan < 0 {
				return outcomes.NegativeFlag.Err("--older-than")
			}
			return reclaim(cmd.Context(), env, flags)
		},
	}
	flags.out = newOutput(cmd, formatWide, formatName)
	cmd.Flags().BoolVarP(&flags.all, "all-namespaces", "A", false, "Look at all namespaces.")
	cmd.Flags().DurationVar(&flags.olderThan, "older-than", time.Hour, "How long at least a thing has done nothing.")
	return cmd
}

func reclaim(ctx context.Context, env *environment, flags *reclaimFlags) error {
	namespace, cluster, err := env.place()
	if err != nil {
		return err
	}
	if flags.all {
		namespace = ""
	}
	inventory, err := reading.NewReader(cluster, fitting.NewTypes()).Inventory(ctx, namespace)
	if missing := (*reading.MissingNamespaceError)(nil); errors.As(err, &missing) {
		return outcomes.NoNamespace.Err(missing.Namespace)
	}
	if err != nil {
		return err
	}
	found, err := findIdle(inventory, newMeter(env.clock, fitting.Surroundings{}), flags.olderThan)
	if err != nil {
		return err
	}
	if len(found.Namespaces) == 0 {
		found.LookedFor = lookedFor(inventory)
	}
	if namespace != "" && isUnlimited(inventory) {
		found.Notes = append(found.Notes, "No quota limits namespace "+namespace+", so that nothing in it holds any.")
	}
	text := func(_ bool, style render.Style) string { return render.ReclaimText(found, style) }
	return flags.out.answer(env, found, render.ReclaimKind, text)
}

// isUnlimited reports whether there is no quota, also none that the user may not read.
func isUnlimited(inventory *reading.Inventory) bool {
	isQuota := func(resource string) bool { return resource == viewResource || resource == "resourcequotas" }
	limits := inventory.Limits
	return len(limits.Views)+len(limits.Quotas)+len(limits.Unviewed) == 0 && !slices.ContainsFunc(inventory.Forbidden, isQuota)
}

// reclaimNotes name the objects that aren't looked for.
func reclaimNotes(inventory *reading.Inventory) []string {
	notes := []string{}
	if len(inventory.Forbidden) > 0 {
		unread := strings.Join(inventory.Forbidden, ", ")
		notes = append(notes, fmt.Sprintf("You may not read %s: what depends on that isn't looked for.", unread))
	}
	return append(notes, limitNotes(&inventory.Limits)...)
}

// finder finds the objects in one namespace that hold quota and do nothing.
type finder struct {
	*reading.Inventory
	meter     meter
	olderThan time.Duration
	limits    []fitting.Limit
	// tightness are the limited resources, the one of which least is left first.
	tightness []tight

	workloads []workload
	byUID     map[types.UID]int                             // workload -> its place in workloads
	pods      map[types.UID][]*corev1.Pod                   // controller -> its pods
	claims    map[types.UID][]*corev1.PersistentVolumeClaim // pod -> claims made for it
	stuck     map[types.UID]struct{}                        // Deployments that are told of already
	living    map[types.UID]int                             // deciding owner -> how many pods it has that have not ended
}

// tight is a resource of a limit, and the share of it that is taken.
type tight struct {
	limit    *fitting.Limit
	resource corev1.ResourceName
	share    float64
}

// held is an object that counts.
type held struct {
	resource schema.GroupResource
	object   client.Object
}

// findIdle returns the findings of each namespace that a quota covers, by name.
func findIdle(inventory *reading.Inventory, meter meter, olderThan time.Duration) (*render.Reclaim, error) {
	found := &render.Reclaim{Namespaces: []render.ReclaimNamespace{}, Notes: reclaimNotes(inventory)}
	parts := inventory.ByNamespace()
	for _, namespace := range slices.Sorted(maps.Keys(parts)) {
		f := newFinder(parts[namespace], meter, olderThan)
		if len(f.limits) == 0 {
			continue
		}
		findings, err := f.find()
		if err != nil {
			return nil, err
		}
		if len(findings) > 0 {
			found.Namespaces = append(found.Namespaces, render.ReclaimNamespace{
				Namespace: namespace, Tightest: f.tightest(), Findings: findings,
			})
		}
	}
	return found, nil
}

func newFinder(inventory *reading.Inventory, meter meter, olderThan time.Duration) *finder {
	f := &finder{
		Inventory: inventory, meter: meter, olderThan: olderThan,
		limits: fitting.LimitsOf(inventory.Limits.Views, inventory.Limits.Quotas),
		pods:   map[types.UID][]*corev1.Pod{}, claims: map[types.UID][]*corev1.PersistentVolumeClaim{},
		stuck: map[types.UID]struct{}{}, living: map[types.UID]int{}, byUID: map[types.UID]int{},
	}
	for i := range f.Pods {
		if controller := metav1.GetControllerOf(&f.Pods[i]); controller != nil {
			f.pods[controller.UID] = append(f.pods[controller.UID], &f.Pods[i])
		}
	}
	for i := range f.Claims {
		if controller := metav1.GetControllerOf(&f.Claims[i]); controller != nil {
			f.claims[controller.UID] = append(f.claims[controller.UID], &f.Claims[i])
		}
	}
	f.findWorkloads()
	f.tightness = tightnessOf(f.limits)
	return f
}

// tightnessOf sorts the limited resources, the one of which least is left first.
func tightnessOf(limits []fitting.Limit) []tight {
	var sorted []tight
	for i := range limits {
		limit := &limits[i]
		for name, hard := range limit.Spec.Hard {
			left, counted := limit.Left[name]
			if !counted {
				continue
			}
			share := 1.0
			if !hard.IsZero() {
				share = 1 - left.AsApproximateFloat64()/hard.AsApproximateFloat64()
			}
			sorted = append(sorted, tight{limit: limit, resource: name, share: share})
		}
	}
	slices.SortFunc(sorted, func(a, b tight) int {
		byName := cmp.Compare(quotaName(a.limit), quotaName(b.limit))
		return cmp.Or(cmp.Compare(b.share, a.share), byName, cmp.Compare(a.resource, b.resource))
	})
	return sorted
}

func (f *finder) tightest() render.Tightest {
	if len(f.tightness) == 0 {
		return render.Tightest{}
	}
	first := f.tightness[0]
	const percent = 100
	return render.Tightest{Quota: quotaName(first.limit), Resource: first.resource, Percent: int(first.share * percent)}
}

// find returns the findings that count against a limit, sorted by how much they free of the tightest resource.
func (f *finder) find() ([]render.Finding, error) {
	var findings []render.Finding
	for _, look := range finders() {
		if look.lacks(f.Inventory) {
			continue
		}
		for _, candidate := range look.find(f) {
			var err error
			if candidate.finding.Frees, err = f.frees(candidate.holds); err != nil {
				return nil, err
			}
			if len(candidate.finding.Frees) > 0 {
				findings = append(findings, candidate.finding)
			}
		}
	}
	slices.SortStableFunc(findings, f.compare)
	return findings, nil
}

// look is a search for one kind of objects that hold quota and do nothing.
type look struct {
	what string
	// needs are the resources that it reads.
	needs []string
	find  func(*finder) []candidate
}

// finders are all kinds. Rollouts come before pods: a Deployment that is stuck is told of once.
func finders() []look {
	return []look{
		{"Deployments that are stuck between ReplicaSets", []string{"pods", "deployments", "replicasets"}, (*finder).rollouts},
		{"pods that are pending or crash-looping, or have ended and belong to no Job", []string{"pods", "replicasets"}, (*finder).idlePods},
		{"finished Jobs", []string{"jobs", "pods"}, (*finder).finishedJobs},
		{"ReplicaSets of older templates", []string{"pods", "replicasets"}, (*finder).emptySets},
		{"Services without ready endpoints", append(templated(), "services", "endpointslices", "pods"), (*finder).services},
		{"claims that no pod uses, or that aren't bound", append(templated(), "persistentvolumeclaims", "pods"), (*finder).idleClaims},
	}
}

// lacks reports whether the user may not read something that it needs.
func (l look) lacks(inventory *reading.Inventory) bool {
	return slices.ContainsFunc(l.needs, func(resource string) bool { return slices.Contains(inventory.Forbidden, resource) })
}

// isFindable reports whether there is a finder for objects that use a resource.
func isFindable(name corev1.ResourceName) bool {
	counted, counts := strings.CutPrefix(string(name), "count/")
	if !counts {
		return !slices.Contains([]string{"configmaps", "secrets", "resourcequotas", "replicationcontrollers", "resourceclaims"}, counted)
	}
	return slices.Contains([]string{"pods", "jobs.batch", "replicasets.apps", "services", "persistentvolumeclaims"}, counted)
}

// lookedFor lists the searches, and last the resources for which nothing says whether their objects are still needed.
func lookedFor(inventory *reading.Inventory) []string {
	var texts, blind []string
	for _, look := range finders() {
		if !look.lacks(inventory) {
			texts = append(texts, look.what)
		}
	}
	for _, limit := range fitting.LimitsOf(inventory.Limits.Views, inventory.Limits.Quotas) {
		for name := range limit.Spec.Hard {
			if !isFindable(name) && !slices.Contains(blind, string(name)) {
				blind = append(blind, string(name))
			}
		}
	}
	if len(blind) > 0 {
		slices.Sort(blind)
		texts = append(texts, "not for what uses "+strings.Join(blind, ", ")+", because nothing says whether that is still needed")
	}
	return texts
}

// candidate is a finding if the amounts that it holds count.
type candidate struct {
	finding render.Finding
	holds   []held
}

// frees returns the amounts that the limits would get back, without limits that get nothing.
func (f *finder) frees(holds []held) ([]render.Freed, error) {
	var freed []render.Freed
	for i := range f.limits {
		limit := &f.limits[i]
		total := corev1.ResourceList{}
		for _, one := range holds {
			uses, err := f.meter.uses(one.resource, one.object, limit)
			if err != nil {
				return nil, err
			}
			total = quota.Add(total, uses)
		}
		if len(total) > 0 {
			freed = append(freed, render.Freed{Quota: quotaName(limit), Amounts: total})
		}
	}
	return freed, nil
}

func (f *finder) compare(a, b render.Finding) int {
	for _, one := range f.tightness {
		ofA, ofB := freedOf(a, one), freedOf(b, one)
		if order := ofB.Cmp(ofA); order != 0 {
			return order
		}
	}
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

func freedOf(finding render.Finding, of tight) resource.Quantity {
	for _, freed := range finding.Frees {
		if freed.Quota == quotaName(of.limit) {
			return freed.Amounts[of.resource]
		}
	}
	return resource.Quantity{}
}

// podsHeld returns the objects that go with pods: the claims that were made for them, too.
func (f *finder) podsHeld(pods []*corev1.Pod) []held {
	var holds []held
	for _, pod := range pods {
		holds = append(holds, held{corev1.Resource("pods"), pod})
		for _, claim := range f.claims[pod.UID] {
			holds = append(holds, held{corev1.Resource("persistentvolumeclaims"), claim})
		}
	}
	return holds
}

// isOld reports whether something has lasted for long enough.
func (f *finder) isOld(since time.Time) bool { return f.meter.now.Sub(since) >= f.olderThan }
