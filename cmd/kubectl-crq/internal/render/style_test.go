// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
		"use that isn't known":         {used: "0", reserved: "0", hard: "10", uncounted: true, want: dim},
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

// hostile takes over the title, the clipboard and the direction of a terminal, and goes back to the line's begin.
const hostile = "no\x1b]0;owned\x07\x1b[2J\u202edas\u2066\x7f\u009b2J\r\n\tend"

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"größer als 0/3 nodes 🙂": "größer als 0/3 nodes 🙂",
		"a\nb\tc":                "a b c",
		hostile:                  "no�]0;owned��[2J�das���2J�  end",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestForeignTextsCannotControlTheTerminal(t *testing.T) {
	why := &Why{
		Summary: hostile, Chain: []WhyLink{{State: hostile, Refusals: []WhyRefusal{{Message: hostile, Quota: hostile}}}},
		Pods: []WhyPods{{State: hostile, Message: hostile, Example: hostile}}, Remedies: []string{hostile}, Notes: []string{hostile},
		Quotas: []WhyQuota{{Quota: hostile, Rows: []WhyRow{{Largest: []WhyUser{{ObjectName: ObjectName{hostile, hostile}}}}}}},
	}
	reclaim := &Reclaim{Notes: []string{hostile}, Namespaces: []ReclaimNamespace{{Findings: []Finding{{
		ObjectName: ObjectName{hostile, hostile}, Message: hostile, Command: hostile, Caution: hostile,
	}}}}}
	event := corev1.Event{Type: hostile, Reason: hostile, Message: hostile, ReportingController: hostile}
	for name, text := range map[string]string{
		"why": WhyText(why, Style{Width: 80}, now), "reclaim": ReclaimText(reclaim, Style{Width: 80}),
		"describe": eventsTable([]corev1.Event{event}, Style{}, now).text(""),
		"explain": Explain(Explanation{
			Coverages: []Coverage{{Quota: hostile, By: []string{hostile}, Notes: []string{hostile}}}, NearMisses: []NearMiss{{hostile, hostile, hostile}},
		}, Style{}),
	} {
		if strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), isObeyed) {
			t.Errorf("%s: %q", name, text)
		}
	}
}

func TestForeignTextsLeaveTheColoursOfTheAnswer(t *testing.T) {
	text := ReclaimText(&Reclaim{Namespaces: []ReclaimNamespace{{Findings: []Finding{{Command: "kubectl\x1b[0m"}}}}}, Style{Colour: true})
	if !strings.Contains(text, "\x1b[32mkubectl�[0m\x1b[0m") {
		t.Errorf("got %q", text)
	}
}

func TestANoteIsSaidOnce(t *testing.T) {
	want := "\nNote: a\nNote: b\n"
	if got := notesText([]string{"a", "b", "a"}, Style{}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
