// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// figures are what the operator says.
type figures struct {
	quotas  map[string]*quotav1.ClusterResourceQuota
	ledgers map[string]*quotav1.QuotaLedger
	views   map[string]map[string]*quotav1.LocalResourceQuota // quota -> namespace -> view
}

// Agrees checks that the operator's figures are what lives: in the ledger, in
// the quota's status, and in the local views, which must be where they should
// and nowhere else. It is for when all is quiet: while something changes, or is
// reserved, it finds differences. The error names every one of them.
//
// The reader must read live, and know the types of api/v1.
func (j *Judge) Agrees(ctx context.Context, api client.Reader) error {
	report, err := j.Report(ctx)
	if err != nil {
		return err
	}
	said, err := read(ctx, api)
	if err != nil {
		return err
	}
	return differences(report, j.going(), said)
}

// going returns the namespaces that are being deleted.
func (j *Judge) going() map[string]bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	going := map[string]bool{}
	for name, ns := range j.books.namespaces {
		if ns.object != nil && ns.object.DeletionTimestamp != nil {
			going[name] = true
		}
	}
	return going
}

func read(ctx context.Context, api client.Reader) (figures, error) {
	var (
		quotas  quotav1.ClusterResourceQuotaList
		ledgers quotav1.QuotaLedgerList
		views   quotav1.LocalResourceQuotaList
	)
	for _, list := range []client.ObjectList{&quotas, &ledgers, &views} {
		if err := api.List(ctx, list); err != nil {
			return figures{}, fmt.Errorf("reading what the operator says: %w", err)
		}
	}
	said := figures{
		quotas:  map[string]*quotav1.ClusterResourceQuota{},
		ledgers: map[string]*quotav1.QuotaLedger{},
		views:   map[string]map[string]*quotav1.LocalResourceQuota{},
	}
	for i := range quotas.Items {
		said.quotas[quotas.Items[i].Name] = &quotas.Items[i]
	}
	for i := range ledgers.Items {
		said.ledgers[ledgers.Items[i].Name] = &ledgers.Items[i]
	}
	for i := range views.Items {
		said.add(&views.Items[i])
	}
	return said, nil
}

func (f figures) add(view *quotav1.LocalResourceQuota) {
	if f.views[view.Name] == nil {
		f.views[view.Name] = map[string]*quotav1.LocalResourceQuota{}
	}
	f.views[view.Name][view.Namespace] = view
}

// differences returns nil where everything agrees.
func differences(report Report, going map[string]bool, said figures) error {
	var found findings
	for _, name := range sortedKeys(report.Quotas) {
		lives := report.Quotas[name]
		if lives.Lives == nil {
			continue // It is deleted; its violations are left.
		}
		quota := said.quotas[name]
		if quota == nil {
			found.addf("quota "+name, "there is none any more")
			continue
		}
		found.checkLedger("quota "+name+": ledger", said.ledgers[name], lives)
		found.checkStatus("quota "+name+": status", quota, lives)
		found.checkViews("quota "+name, said.views[name], lives, going)
	}
	found.checkRest(report, said)
	return errors.Join(found...)
}

// checkRest finds what belongs to no quota that was judged.
func (f *findings) checkRest(report Report, said figures) {
	for _, name := range sortedKeys(said.quotas) {
		if report.Quotas[name].Lives == nil {
			f.addf("quota "+name, "it was not judged")
		}
	}
	for _, name := range sortedKeys(said.views) {
		if report.Quotas[name].Lives != nil {
			continue
		}
		for _, namespace := range sortedKeys(said.views[name]) {
			f.addf("view "+name+" in namespace "+namespace, "there is no such quota")
		}
	}
}

func (f *findings) checkLedger(where string, ledger *quotav1.QuotaLedger, lives QuotaReport) {
	if ledger == nil {
		f.addf(where, "there is none")
		return
	}
	f.compare(where+": used", lives.Lives, ledger.Entries.Used)
	for _, reservation := range ledger.Entries.Reservations {
		if strings.HasSuffix(reservation, " -") {
			continue // it holds no amount, and only tells of requests that failed
		}
		f.addf(where, "still reserved: %s", reservation)
	}
}

func (f *findings) checkStatus(where string, quota *quotav1.ClusterResourceQuota, lives QuotaReport) {
	status := quota.Status
	if status.ObservedGeneration != quota.Generation {
		f.addf(where, "it is for generation %d, and the quota's is %d", status.ObservedGeneration, quota.Generation)
	}
	f.compare(where+": total.hard", lives.Hard, status.Total.Hard)
	f.compare(where+": total.used", lives.Lives, status.Total.Used)
	f.wantNone(where+": reserved", status.Reserved)
	slices := map[string]corev1.ResourceList{}
	for _, slice := range status.Namespaces {
		slices[slice.Namespace] = slice.Status.Used
	}
	for _, namespace := range union(lives.Namespaces, slices) {
		used, listed := slices[namespace]
		want, selected := lives.Namespaces[namespace]
		switch {
		case !listed:
			f.addf(where, "namespace %s is selected, and not listed", namespace)
		case !selected:
			f.addf(where, "namespace %s is listed, and not selected", namespace)
		default:
			f.compare(where+": namespace "+namespace+": used", want, used)
		}
	}
}

func (f *findings) checkViews(
	where string, views map[string]*quotav1.LocalResourceQuota, lives QuotaReport, going map[string]bool,
) {
	for _, namespace := range union(lives.Namespaces, views) {
		view := views[namespace]
		own, selected := lives.Namespaces[namespace]
		here := where + ": view in namespace " + namespace
		switch {
		case going[namespace]: // Nothing can be created there any more.
		case view == nil:
			f.addf(here, "there is none, and the namespace is selected")
		case !selected:
			f.addf(here, "there is one, and the namespace is not selected")
		default:
			f.checkView(here, view.Status, own, lives)
		}
	}
}

func (f *findings) checkView(where string, view quotav1.LocalResourceQuotaStatus, own corev1.ResourceList, lives QuotaReport) {
	f.compare(where+": total.hard", lives.Hard, view.Total.Hard)
	f.compare(where+": total.used", lives.Lives, view.Total.Used)
	f.compare(where+": used", own, view.Used)
	f.wantNone(where+": reserved", view.Reserved)
	f.compare(where+": available", available(lives), view.Available)
}
