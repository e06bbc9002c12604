// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestABarShowsWhateverThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(0, 1000)
		used, reserved, hard := amount.Draw(t, "used"), amount.Draw(t, "reserved"), amount.Draw(t, "hard")
		width := rapid.IntRange(minBar, maxBar).Draw(t, "width")
		figure := Figure{
			Used: *resource.NewQuantity(used, resource.DecimalSI), Reserved: *resource.NewQuantity(reserved, resource.DecimalSI),
			Hard: *resource.NewQuantity(hard, resource.DecimalSI), Counted: true,
		}
		usedMarks, reservedMarks := figure.marks(width)
		left := width - usedMarks - reservedMarks
		switch {
		case usedMarks < 0 || reservedMarks < 0 || left < 0:
			t.Fatalf("%d used, %d reserved, %d left of %d", usedMarks, reservedMarks, left, width)
		case used > 0 && usedMarks == 0:
			t.Fatal("something is used and can't be seen")
		case (reserved > 0) != (reservedMarks > 0):
			t.Fatalf("%d is reserved, shown as %d", reserved, reservedMarks)
		case (used+reserved >= hard) != (left == 0):
			t.Fatalf("%d of %d, and %d left to see", used+reserved, hard, left)
		case (used+reserved >= hard) != (figure.percent() >= full):
			t.Fatalf("%d of %d are %d%%", used+reserved, hard, figure.percent())
		}
	})
}

func TestColoursTellWhatIsFull(t *testing.T) {
	for name, c := range map[string]struct {
		used, reserved, hard string
		uncounted            bool
		want                 colour
	}{
		"little":                       {used: "1", reserved: "0", hard: "10", want: green},
		"four fifths":                  {used: "8", reserved: "0", hard: "10", want: green},
		"more, with what is reserved":  {used: "8", reserved: "1", hard: "10", want: yellow},
		"almost all":                   {used: "999", reserved: "0", hard: "1k", want: yellow},
		"all, with what is reserved":   {used: "9", reserved: "1", hard: "10", want: red},
		"more than all":                {used: "12", reserved: "0", hard: "10", want: red},
		"nothing, and that is allowed": {used: "0", reserved: "0", hard: "0", want: red},
		"nobody knows":                 {used: "0", reserved: "0", hard: "10", uncounted: true, want: dim},
	} {
		t.Run(name, func(t *testing.T) {
			figure := Figure{
				Used: resource.MustParse(c.used), Reserved: resource.MustParse(c.reserved), Hard: resource.MustParse(c.hard), Counted: !c.uncounted,
			}
			if got := figure.colour(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
