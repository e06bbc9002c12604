// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// amend raises what is needed of a limit to what was requested of it: other webhooks may add to objects.
func (d *diagnosis) amend(quota *render.WhyQuota, limit *fitting.Limit) {
	for _, refused := range slices.Concat(d.refused...) {
		if !d.isBy(limit, refused.Words) || !d.trusts(refused) {
			continue
		}
		for name, requested := range refused.Requested {
			d.raise(quota, limit, name, requested)
		}
	}
	slices.SortFunc(quota.Rows, func(a, b render.WhyRow) int { return compareNames(a.Resource, b.Resource) })
}

// trusts reports whether a message says what objects still need. If the template was changed afterwards, it doesn't.
func (d *diagnosis) trusts(refused reading.Refused) bool {
	return len(refused.Requested) > 0 && (!d.makes || !templateChange(d.Maker().Object).After(refused.Last))
}

// templateChange returns when somebody changed a workload and may have changed its template; zero if nobody did.
func templateChange(object client.Object) time.Time {
	var changed time.Time
	switch object.(type) {
	case *appsv1.ReplicaSet, *batchv1.Job: // Theirs stays as it was.
		return changed
	}
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:template"`) {
			changed = later(changed, entry.Time.Time)
		}
	}
	return changed
}

// raise has a row say at least what was requested of its resource.
func (d *diagnosis) raise(quota *render.WhyQuota, limit *fitting.Limit, name corev1.ResourceName, requested resource.Quantity) {
	at := slices.IndexFunc(quota.Rows, func(row render.WhyRow) bool { return row.Resource == name })
	if at < 0 {
		quota.Rows = append(quota.Rows, d.row(limit, name, requested, d.forAll(requested)))
		return
	}
	row := &quota.Rows[at]
	one, all := row.One, row.All
	if one.Cmp(requested) < 0 {
		if all = d.forAll(requested); !one.IsZero() {
			all = scaled(row.All, requested, one)
		}
		one = requested
		d.noteOnce(requestsMore(name))
	}
	if all.Cmp(requested) < 0 { // It takes what others free on the way, and was refused all the same.
		all = requested
	}
	*row = d.row(limit, name, one, all)
}

// forAll returns what all missing pods need of something that their template doesn't request. In a rollout older ones
// make room for them, so that one is what matters.
func (d *diagnosis) forAll(requested resource.Quantity) resource.Quantity {
	all := requested.DeepCopy()
	if pods, _, _ := d.missing(); pods > 1 && !d.replaces() {
		all.Mul(pods)
	}
	return all
}

// scaled returns the amount, times by how much the one is larger than the other.
func scaled(amount, larger, smaller resource.Quantity) resource.Quantity {
	product := new(big.Int).Mul(big.NewInt(amount.MilliValue()), big.NewInt(larger.MilliValue()))
	product.Quo(product, big.NewInt(smaller.MilliValue()))
	if !product.IsInt64() {
		return *resource.NewQuantity(math.MaxInt64, larger.Format)
	}
	return *resource.NewMilliQuantity(product.Int64(), larger.Format)
}

func (d *diagnosis) noteOnce(note string) {
	if !slices.Contains(d.notes, note) {
		d.notes = append(d.notes, note)
	}
}
