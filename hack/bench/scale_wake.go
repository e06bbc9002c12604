// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/wake/crowd"
)

// wakeOptions are of the measurement how soon workloads get their pods that wait for room.
type wakeOptions struct {
	on      bool
	refused time.Duration
}

func (o *wakeOptions) bind(flags *flag.FlagSet) {
	flags.BoolVar(&o.on, "wake", false, "measure how soon workloads that wait for room get their pods, and nothing else")
	flags.DurationVar(&o.refused, "wake-refused", 2*time.Minute, "for how long they are refused")
}

const (
	// wakeOwners is how many workloads wait: ReplicaSets, StatefulSets and Jobs.
	wakeOwners     = 200
	wakeNamespaces = 100
	// wakePatience is how long to wait for all pods that fit.
	wakePatience = 5 * time.Minute
)

// The forms of quota that are compared.
const (
	formAll    = "all"    // the operator wakes; room for all appears
	formHalf   = "half"   // the operator wakes; room for half appears
	formNative = "native" // Kubernetes' own ResourceQuota in each namespace
	formNone   = "none"   // the operator doesn't wake
)

// wakeRow is the outcome of one form.
type wakeRow struct {
	form string
	// pods is how many came of those that fit, p50 to last when after there was room, in seconds.
	pods           int
	p50, p99, last float64
	// woken and refusedAgain are how often the operator woke a workload, and how often one was refused then.
	woken, refusedAgain float64
}

// wakeBench is a cluster with Kubernetes' controllers.
type wakeBench struct {
	options     scaleOptions
	cluster     *harness.Cluster
	api         client.WithWatch
	operator    *harness.Operator
	metricsPort int
}

// measureWake lets workloads be refused for long, and measures how soon they get their pods once there is room.
func (o *scaleOptions) measureWake(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	sayf("starting etcd and kube-apiserver")
	return withCluster(ctx, harness.Options{AssetsDir: o.assets}, func(cluster *harness.Cluster) error {
		rows, err := o.wakeRows(ctx, cluster)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("the ends of the logs:\n%s\n%w", cluster.LogTails(logLines), err)
		}
		if err != nil {
			return err
		}
		figures := o.wake.section(rows)
		return errors.Join(figures.print(os.Stdout), o.write(figures))
	})
}

func (o *scaleOptions) wakeRows(ctx context.Context, cluster *harness.Cluster) ([]wakeRow, error) {
	api, err := connect(cluster.Config())
	if err != nil {
		return nil, err
	}
	if _, err := cluster.StartControllerManager(ctx); err != nil {
		return nil, err
	}
	b := &wakeBench{options: *o, cluster: cluster, api: api}
	var rows []wakeRow
	// Those that take the same operator are refused at the same time.
	for _, together := range []struct {
		forms []string
		args  []string
	}{
		{forms: []string{formAll, formHalf}},
		{forms: []string{formNone, formNative}, args: []string{"--wake-owners=false"}},
	} {
		measured, err := b.run(ctx, together.forms, together.args)
		if err != nil {
			return nil, err
		}
		rows = append(rows, measured...)
	}
	return rows, nil
}

func (b *wakeBench) run(ctx context.Context, forms, args []string) ([]wakeRow, error) {
	if err := b.start(ctx, args); err != nil {
		return nil, err
	}
	defer func() { _ = b.operator.Stop() }()
	for _, form := range forms {
		if err := b.refuse(ctx, b.crowd(form)); err != nil {
			return nil, fmt.Errorf("%s: %w", form, err)
		}
	}
	sayf("%s: refused for %s", strings.Join(forms, ", "), b.options.wake.refused)
	if err := pause(ctx, b.options.wake.refused); err != nil {
		return nil, err
	}
	rows := make([]wakeRow, len(forms))
	var group errgroup.Group
	if slices.Contains(forms, formAll) {
		group.SetLimit(1) // what is woken at once must not stand in each other's way
	}
	for i, form := range forms {
		group.Go(func() (err error) {
			if rows[i], err = b.free(ctx, form, b.crowd(form)); err != nil {
				return fmt.Errorf("%s: %w", form, err)
			}
			sayf("%s: %d pods, p50 %.2f s, p99 %.2f s, last %.2f s", form, rows[i].pods, rows[i].p50, rows[i].p99, rows[i].last)
			return nil
		})
	}
	return rows, group.Wait()
}

func (b *wakeBench) start(ctx context.Context, args []string) error {
	port, err := harness.FreePort()
	if err != nil {
		return err
	}
	b.metricsPort = port
	b.operator, err = b.cluster.StartOperator(ctx, harness.OperatorOptions{
		Binary: b.options.manager, MetricsPort: port, Args: args, Env: b.options.operatorEnv(),
	})
	return err
}

func (b *wakeBench) crowd(form string) crowd.Crowd {
	return crowd.Crowd{API: b.api, Name: form, Owners: wakeOwners, Namespaces: wakeNamespaces}
}

// cpu is what so many pods of a crowd request.
func cpu(pods int) string { return fmt.Sprintf("%dm", 100*pods) }

// refuse starts a crowd for which there is no room.
func (b *wakeBench) refuse(ctx context.Context, all crowd.Crowd) error {
	if err := all.Prepare(ctx); err != nil {
		return err
	}
	if all.Name == formNative {
		for i := range all.Namespaces {
			native := builders.ResourceQuota(all.Namespace(i), "native")
			native.Spec.Hard = builders.Quota("").Hard("requests.cpu", "0").Obj().Spec.Quota.Hard
			if err := b.api.Create(ctx, native); err != nil {
				return err
			}
		}
		return all.Start(ctx)
	}
	quota := builders.Quota(all.Name).Label("team", all.Name).Hard("requests.cpu", cpu(all.Owners)).Obj()
	for _, object := range []client.Object{builders.Namespace(all.Name+"-hog").Label("team", all.Name).Obj(), quota} {
		if err := b.api.Create(ctx, object); err != nil {
			return err
		}
	}
	for _, name := range []string{"first", "second"} {
		hog := builders.Pod(all.Name+"-hog", name).Request("cpu", cpu(all.Owners/2)).Obj()
		err := until(ctx, "room to be taken", func(ctx context.Context) (bool, error) {
			err := client.IgnoreAlreadyExists(b.api.Create(ctx, hog.DeepCopy()))
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	err := until(ctx, "the quota to be used up", func(ctx context.Context) (bool, error) {
		err := b.api.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		used := quota.Status.Total.Used["requests.cpu"]
		return used.Cmp(quota.Spec.Quota.Hard["requests.cpu"]) == 0, err
	})
	if err != nil {
		return err
	}
	return all.Start(ctx)
}

// free makes room, and waits for the pods that fit.
func (b *wakeBench) free(ctx context.Context, form string, all crowd.Crowd) (wakeRow, error) {
	row := wakeRow{form: form}
	arrivals, err := all.Watch(ctx)
	if err != nil {
		return row, err
	}
	defer arrivals.Stop()
	wanted, moment := all.Owners, time.Now()
	switch form {
	case formNative:
		err = b.raise(ctx, all)
	case formHalf:
		wanted = all.Owners / 2
		err = crowd.Free(ctx, b.api, all.Name+"-hog", "first")
	default:
		err = crowd.Free(ctx, b.api, all.Name+"-hog", "first", "second")
	}
	if err != nil {
		return row, err
	}
	for time.Since(moment) < wakePatience && row.pods < wanted && ctx.Err() == nil {
		<-time.After(100 * time.Millisecond)
		after, err := arrivals.Since(moment)
		if err != nil {
			return row, err
		}
		row.pods = len(after)
		row.p50, row.p99 = crowd.Percentile(after, 50).Seconds(), crowd.Percentile(after, 99).Seconds()
		row.last = crowd.Percentile(after, 100).Seconds()
	}
	if form == formAll || form == formHalf {
		<-time.After(5 * time.Second) // whether more are woken than fit
		row.woken, row.refusedAgain, err = b.wakes(ctx, form)
	}
	return row, err
}

// raise lets Kubernetes' own quotas allow what each namespace's workloads want.
func (b *wakeBench) raise(ctx context.Context, all crowd.Crowd) error {
	return inParallel(ctx, all.Namespaces, func(ctx context.Context, i int) error {
		native := builders.ResourceQuota(all.Namespace(i), "native")
		patch := fmt.Sprintf(`{"spec":{"hard":{"requests.cpu":%q}}}`, cpu(all.Owners))
		return b.api.Patch(ctx, native, client.RawPatch("application/merge-patch+json", []byte(patch)))
	})
}

// wakes reads how many workloads of a quota the operator woke, and how many were refused then.
func (b *wakeBench) wakes(ctx context.Context, quota string) (woken, refusedAgain float64, err error) {
	exported, err := scrape(ctx, b.metricsPort)
	ofQuota := func(labels map[string]string) bool { return labels["quota"] == quota }
	return exported.sum("sharedquota_owners_woken_total", ofQuota), exported.sum("sharedquota_owners_refused_again_total", ofQuota), err
}

// wakeNames are what the forms are called in the table.
var wakeNames = map[string]string{
	formAll: "operator, room for all", formHalf: "operator, room for half",
	formNone: "operator with `--wake-owners=false`", formNative: "native ResourceQuota",
}

// section is what is shown and stored. Only the operator's wakes have a target.
func (o *wakeOptions) section(rows []wakeRow) section {
	waited := strings.TrimSuffix(strings.TrimSuffix(o.refused.String(), "0s"), "m") + " min"
	if o.refused%time.Minute != 0 {
		waited = o.refused.String()
	}
	shown := sheet{Title: "Seconds until the pods come", Columns: []string{"", "refused for", "p50", "p99", "refused again"}}
	var goals []goal
	for _, row := range rows {
		again := ""
		if row.form == formAll || row.form == formHalf {
			again = fmt.Sprintf("%.0f", row.refusedAgain)
			goals = append(goals, goal{
				What: "wait of " + waited + ", room for " + row.form + ": p99 until pods come, s", Value: row.p99, Target: "≤ 2",
			})
		}
		shown.Rows = append(shown.Rows, []string{
			wakeNames[row.form], waited, fmt.Sprintf("%.2f", row.p50), fmt.Sprintf("%.2f", row.p99), again,
		})
	}
	figures := newSection(goals)
	figures.Tables = append(figures.Tables, shown)
	return figures
}
