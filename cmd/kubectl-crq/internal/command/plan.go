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
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// planTimeout bounds all that is read from the cluster for one plan.
const planTimeout = 2 * time.Minute

// planFlags are those of kubectl crq plan.
type planFlags struct {
	files []string
	out   *output
}

func newPlan(env *environment) *cobra.Command {
	flags := &planFlags{}
	cmd := &cobra.Command{
		Use:               "plan -f FILE",
		Short:             planShort,
		Long:              planLong,
		Example:           planExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{answers: ""},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(flags.files) == 0 {
				return errors.New("name the file with the quotas by --filename, or - for standard input")
			}
			if err := flags.out.check(); err != nil {
				return err
			}
			return plan(cmd.Context(), env, flags)
		},
	}
	flags.out = newOutput(cmd, formatWide, formatName)
	cmd.Flags().StringSliceVarP(&flags.files, "filename", "f", nil, "The files or directories of the quotas; - for standard input.")
	return cmd
}

func plan(ctx context.Context, env *environment, flags *planFlags) error {
	objects, err := readObjects(env.streams.In, convertOptions{files: flags.files})
	if err != nil {
		return err
	}
	files, notes, err := plannedQuotas(objects)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	cluster, err := env.client()
	if err != nil {
		return err
	}
	p := &planner{meter: newMeter(env.clock), notes: append([]string{}, notes...)}
	if err := p.read(ctx, cluster, files); err != nil {
		return err
	}
	found, err := p.plan(ctx, cluster)
	if err != nil {
		return err
	}
	if err := printPlan(env, flags.out, found); err != nil {
		return err
	}
	switch found.Result {
	case render.PlanAbove:
		return errNo
	case render.PlanUnknown:
		return errors.New("what is used isn't known of all resources; see the plan")
	default:
		return nil
	}
}

func printPlan(env *environment, out *output, found *render.Plan) error {
	if table, _ := out.asTable(); table {
		return env.print(render.PlanText(found, env.style()))
	}
	found.APIVersion, found.Kind = render.APIVersion, render.PlanKind
	return printObject(env, out, found)
}

// planner has all that a plan is made from.
type planner struct {
	meter      meter
	ground     *reading.Ground
	live, then []quotav1.ClusterResourceQuota // sorted by name
	revised    []redefinition
	settings   reach.Settings
	notes      []string
}

func (p *planner) note(note string) {
	if !slices.Contains(p.notes, note) {
		p.notes = append(p.notes, note)
	}
}

// read reads the cluster, and finds what is wrong with the file's quotas.
func (p *planner) read(ctx context.Context, cluster client.Client, files []planned) error {
	list, err := listQuotas(ctx, cluster)
	if err != nil {
		return err
	}
	p.live = list.Items
	if p.revised, p.then, err = revise(files, p.live); err != nil {
		return err
	}
	if p.ground, err = reading.NewReader(cluster, fitting.NewTypes()).Ground(ctx); err != nil {
		return err
	}
	p.readSettings()
	return nil
}

func (p *planner) namespacesKnown() bool { return !slices.Contains(p.ground.Forbidden, "namespaces") }

func (p *planner) nodesKnown() bool { return !slices.Contains(p.ground.Forbidden, "nodes") }

// selected returns the namespaces that a quota selects, sorted.
func (p *planner) selected(quota *quotav1.ClusterResourceQuota) []string {
	selector := definition.Salvage(quota).Selector
	names := []string{}
	for i := range p.ground.Namespaces {
		if namespace := &p.ground.Namespaces[i]; selector.Matches(namespace.Labels, namespace.Annotations) {
			names = append(names, namespace.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (p *planner) plan(ctx context.Context, cluster client.Client) (*render.Plan, error) {
	usages, err := p.usages(ctx, cluster)
	if err != nil {
		return nil, err
	}
	made := &render.Plan{Quotas: []render.PlanQuota{}, Overlaps: []render.PlanOverlap{}}
	for i, revised := range p.revised {
		made.Quotas = append(made.Quotas, p.quota(revised, usages[i]))
	}
	made.Result = resultOfPlan(made.Quotas)
	made.Webhook = p.webhook()
	if p.namespacesKnown() {
		made.Overlaps = p.overlaps()
	} else {
		p.note("You may not list namespaces: which of them quotas select, share, or let the API server ask about isn't known.")
	}
	made.Sums = p.sums()
	if p.nodesKnown() {
		count := len(p.ground.Nodes)
		made.Nodes = &count
	} else {
		p.note("You may not list nodes: all limits together aren't compared with what nodes have.")
	}
	made.Notes = p.notes
	return made, nil
}

func resultOfPlan(quotas []render.PlanQuota) render.PlanResult {
	result := render.PlanFits
	for i := range quotas {
		for _, limit := range quotas[i].Resources {
			switch {
			case limit.Above != nil:
				return render.PlanAbove
			case limit.Used == nil:
				result = render.PlanUnknown
			}
		}
	}
	return result
}

const (
	planShort = "Show what quotas would do if they were applied now"
	planLong  = `Show what new or changed ClusterResourceQuotas would do if they were applied now. Nothing is applied.

The quotas are read as kubectl apply reads them: what others have set in a live quota stays. If a live quota wasn't
applied before, all that its file leaves out stays, too. The quotas are validated before anything else.

The answer has for each of them the namespaces that it selects, that join it and that leave it; what is used of each
limit, and what is above it at once; how the webhook configuration changes; which other quotas limit the same; and all
limits together against what the nodes have.

If a quota counts the same objects as now, what is used is taken from its status. Otherwise the objects are counted,
as the operator would.

The exit status is 0 if nothing is above its limit, 1 if something would be, and 2 if it can't be told or the quotas
are wrong.`
	planExample = `  # What would this change do?
  kubectl crq plan -f quotas.yaml

  # A lower limit for pods.
  kubectl get crq payments -o json | jq '.spec.quota.hard.pods="10"' | kubectl crq plan -f -

  # What is above its limit, for programs.
  kubectl crq plan -f quotas.yaml -o json | jq '.quotas[].resources[] | select(.above)'`
)

// whyUnknown says what would have to be known.
func whyUnknown(of usage, namespacesKnown bool) string {
	switch {
	case !namespacesKnown:
		return "you may not list namespaces"
	case len(of.unread) > 0:
		return fmt.Sprintf("you may not list %s", strings.Join(sets.List(of.unread), ", "))
	default:
		return "the operator hasn't counted it"
	}
}
