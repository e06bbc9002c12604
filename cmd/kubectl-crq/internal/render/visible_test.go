// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

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
