// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package promtool

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const runbooks = "https://github.com/sharedquota/shared-quota-operator/blob/main/docs/runbooks.md#"

func TestEachAlertHasItsSection(t *testing.T) {
	var sections, names []string
	for _, match := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(read(t, "docs/runbooks.md"), -1) {
		sections = append(sections, match[1])
	}
	for _, alert := range alerts(t) {
		names = append(names, alert.Alert)
		if got, want := alert.Annotations["runbook_url"], runbooks+strings.ToLower(alert.Alert); got != want {
			t.Errorf("%s: runbook_url is %s, want %s", alert.Alert, got, want)
		}
		for _, annotation := range []string{"summary", "description"} {
			if alert.Annotations[annotation] == "" {
				t.Errorf("%s has no %s", alert.Alert, annotation)
			}
		}
		if !slices.Contains([]string{"info", "warning", "critical"}, alert.Labels["severity"]) {
			t.Errorf("%s: severity is %q, want info, warning or critical", alert.Alert, alert.Labels["severity"])
		}
	}
	if !slices.Equal(names, sections) {
		t.Errorf("docs/runbooks.md: want a section for each alert, in their order, %v, got %v", names, sections)
	}
}

func TestEachSectionTellsWhatToDo(t *testing.T) {
	for _, section := range regexp.MustCompile(`(?m)^## `).Split(read(t, "docs/runbooks.md"), -1)[1:] {
		name, text, _ := strings.Cut(section, "\n")
		if strings.Contains(name, " ") { // no alert's
			continue
		}
		for _, part := range []string{"**Means.**", "**Look.**", "**Do.**"} {
			if !strings.Contains(text, part) {
				t.Errorf("section %s lacks %s", name, part)
			}
		}
	}
}

// Promtool runs the cases; that there are enough of them it doesn't know.
func TestEachAlertFiresInOneCaseAndNotInAnother(t *testing.T) {
	text, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases struct {
		Tests []struct {
			Checks []struct {
				Alertname string
				Expected  []any `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, story := range cases.Tests {
		for _, check := range story.Checks {
			if len(check.Expected) > 0 {
				fires[check.Alertname] = true
			} else {
				silent[check.Alertname] = true
			}
		}
	}
	for _, alert := range alerts(t) {
		if !fires[alert.Alert] || !silent[alert.Alert] {
			t.Errorf("%s: want a case in which it fires (%v), and one in which it doesn't (%v)",
				alert.Alert, fires[alert.Alert], silent[alert.Alert])
		}
	}
}
