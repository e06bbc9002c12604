// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	// unknown stands for an amount that hasn't been counted.
	unknown = "?"
	// nothing stands where kubectl would say so, too.
	nothing = "<none>"
	// nearlyFull is the share of the limit, in percent, above which a figure is yellow.
	nearlyFull = 80
	full       = 100
)

// Figure has the amounts of one resource under a quota.
type Figure struct {
	Resource             corev1.ResourceName
	Used, Reserved, Hard resource.Quantity
	// Counted is false while the use is unknown.
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

// peaksOf returns the peaks of a resource; zero ones if none is known.
func peaksOf(quota *quotav1.ClusterResourceQuota, name corev1.ResourceName) quotav1.ResourcePeaks {
	at := slices.IndexFunc(quota.Status.Peaks, func(peaks quotav1.ResourcePeaks) bool { return peaks.Resource == name })
	if at < 0 {
		return quotav1.ResourcePeaks{}
	}
	return quota.Status.Peaks[at]
}

func peakText(peak quotav1.Peak) string {
	if peak.At.IsZero() {
		return unknown
	}
	return peak.Amount.String()
}

// charged is the amount that counts against the limit.
func (f Figure) charged() resource.Quantity {
	sum := f.Used.DeepCopy()
	sum.Add(f.Reserved)
	return sum
}

// available is the amount that can still be created, never below zero.
func (f Figure) available() resource.Quantity {
	left := f.Hard.DeepCopy()
	left.Sub(f.charged())
	if left.Sign() < 0 {
		return *resource.NewQuantity(0, f.Hard.Format)
	}
	return left
}

// full reports whether nothing is left.
func (f Figure) full() bool {
	left := f.available()
	return f.Counted && left.IsZero()
}

// percent is the share of the limit that is charged, rounded down; a limit of zero is full.
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
	case f.percent() > nearlyFull:
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

// figuresTable has a line for each figure, to be indented: the result of fields, the percentage, and a bar if there is room.
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

// A bar is drawn with as many columns as the terminal leaves, between these.
// Reserved amounts look different without colours, too.
const (
	minBar = 10
	maxBar = 30

	usedMark     = "█"
	reservedMark = "▒"
	freeMark     = "░"
)

// bar draws the used part, then the reserved part, then the rest.
func (s Style) bar(f Figure, width int) cell {
	used, reserved := f.marks(width)
	free := width - used - reserved
	return cell{
		painted: s.paint(f.colour(), strings.Repeat(usedMark, used)+strings.Repeat(reservedMark, reserved)) +
			s.paint(dim, strings.Repeat(freeMark, free)),
		width: width,
	}
}

// marks returns how many columns of a bar are used and how many reserved. Any
// amount above zero has one at least: used, reserved, and the rest.
func (f Figure) marks(width int) (used, reserved int) {
	if !f.Counted || width < minBar {
		return 0, 0
	}
	charged := f.charged()
	least := oneIfAny(f.Used) + oneIfAny(f.Reserved)
	filled := width
	if !f.full() {
		filled = min(max(least, share(charged, f.Hard, width)), width-1)
	}
	reserved = min(max(oneIfAny(f.Reserved), share(f.Reserved, charged, filled)), filled-oneIfAny(f.Used))
	return filled - reserved, reserved
}

func oneIfAny(amount resource.Quantity) int {
	if amount.Sign() > 0 {
		return 1
	}
	return 0
}

// share is that of a part of the whole in a number of columns, rounded.
func share(part, whole resource.Quantity, of int) int {
	if part.IsZero() {
		return 0
	}
	return int(math.Round(part.AsApproximateFloat64() / whole.AsApproximateFloat64() * float64(of)))
}

// barWidth is the width that the terminal leaves for a bar beside a table of this width; 0 if that is too little.
func (s Style) barWidth(beside int) int {
	room := s.Width - beside - gap
	if room < minBar {
		return 0
	}
	return min(room, maxBar)
}
