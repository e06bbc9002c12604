// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	// unknown stands for what hasn't been counted.
	unknown = "?"
	// nothing stands where kubectl would say so, too.
	nothing = "<none>"
	// warnAt is the share of the limit, in percent, above which it is told from the rest.
	warnAt = 80
	full   = 100
)

// Figure is what there is of one resource under a quota.
type Figure struct {
	Resource             corev1.ResourceName
	Used, Reserved, Hard resource.Quantity
	// Counted is false while nobody knows what is used.
	Counted bool
}

// Figures returns the figures for each resource that is limited, sorted by name.
func Figures(hard, used, reserved corev1.ResourceList) []Figure {
	figures := make([]Figure, 0, len(hard))
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		amount, counted := used[name]
		figures = append(figures, Figure{Resource: name, Used: amount, Reserved: reserved[name], Hard: hard[name], Counted: counted})
	}
	return figures
}

// OfQuota returns the figures of a whole quota. The limits are those of its spec,
// which are enforced before any status says so.
func OfQuota(quota *quotav1.ClusterResourceQuota) []Figure {
	return Figures(quota.Spec.Quota.Hard, quota.Status.Total.Used, quota.Status.Reserved)
}

// charged is what counts against the limit.
func (f Figure) charged() resource.Quantity {
	sum := f.Used.DeepCopy()
	sum.Add(f.Reserved)
	return sum
}

// available is what can still be created, never below zero.
func (f Figure) available() resource.Quantity {
	left := f.Hard.DeepCopy()
	left.Sub(f.charged())
	if left.Sign() < 0 {
		return *resource.NewQuantity(0, f.Hard.Format)
	}
	return left
}

// full tells whether nothing is left.
func (f Figure) full() bool {
	left := f.available()
	return f.Counted && left.IsZero()
}

// percent is the share of the limit that is charged, rounded down; what is limited
// to nothing is full.
func (f Figure) percent() int {
	if f.Hard.IsZero() {
		return full
	}
	charged := f.charged()
	if f.full() && charged.Cmp(f.Hard) == 0 {
		return full
	}
	return int(full * charged.AsApproximateFloat64() / f.Hard.AsApproximateFloat64())
}

func (f Figure) colour() colour {
	switch {
	case !f.Counted:
		return dim
	case f.full():
		return red
	case f.percent() > warnAt:
		return yellow
	default:
		return green
	}
}

// text puts an amount into its canonical form.
func (f Figure) text(amount resource.Quantity) string {
	if !f.Counted {
		return unknown
	}
	return amount.String()
}

// figuresTable has a line for each figure, to be indented: what fields returns, the
// percentage, and a bar where there is room.
func figuresTable(figures []Figure, style Style, headings []string, fields func(Figure) []string) *table {
	build := func(bar int) *table {
		made := &table{}
		made.add(withBar(style.headings(plains(headings...)), bar, plain(""))...)
		for _, f := range figures {
			cells := append(plains(fields(f)...), style.cell(f.colour(), f.percentText()))
			made.add(withBar(cells, bar, style.bar(f, bar))...)
		}
		return made
	}
	return build(style.barWidth(build(0).width() + len(indent)))
}

func (f Figure) percentText() string {
	if !f.Counted {
		return unknown
	}
	return strconv.Itoa(f.percent()) + "%"
}
