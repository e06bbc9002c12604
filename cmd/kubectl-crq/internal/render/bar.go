// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A bar is drawn with as many columns as the terminal leaves, between these. What
// is reserved looks different without colours, too.
const (
	minBar = 10
	maxBar = 30

	usedMark     = "█"
	reservedMark = "▒"
	freeMark     = "░"
)

// bar draws what is used, then what is reserved, then what is left.
func (s Style) bar(f Figure, width int) cell {
	used, reserved := f.marks(width)
	free := width - used - reserved
	return cell{
		painted: s.paint(f.colour(), strings.Repeat(usedMark, used)+strings.Repeat(reservedMark, reserved)) +
			s.paint(dim, strings.Repeat(freeMark, free)),
		width: width,
	}
}

// marks tells how many columns of a bar are used and how many reserved. Whatever is
// more than nothing has one at least: used, reserved, and what is left.
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

// barWidth is what the terminal leaves for a bar beside a table of this width; 0
// where that is too little.
func (s Style) barWidth(beside int) int {
	room := s.Width - beside - gap
	if room < minBar {
		return 0
	}
	return min(room, maxBar)
}
