// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// exposed is the endpoint's answer.
func exposed(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

// rowOf is the row of a metric in docs/metrics.md, with its labels sorted.
func rowOf(family *dto.MetricFamily) string {
	var labels []string
	for _, label := range family.GetMetric()[0].GetLabel() {
		labels = append(labels, "`"+label.GetName()+"`")
	}
	return fmt.Sprintf("| %#q | %s | %s | %s |",
		family.GetName(), strings.ToLower(family.GetType().String()), strings.Join(labels, ", "), family.GetHelp())
}

// The rows are copied from here when the test fails.
func TestTheDocumentListsExactlyWhatIsExported(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, exported []string
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); strings.HasPrefix(line, "| `"+namespace+"_") && len(cells) == 4 {
			labels := strings.Split(cells[2], ", ")
			slices.Sort(labels)
			cells[2] = strings.Join(labels, ", ")
			documented = append(documented, strings.Join(cells, " | "))
		}
	}
	registry, _ := busy()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		exported = append(exported, rowOf(family))
	}
	slices.Sort(documented)
	slices.Sort(exported)
	if diff := cmp.Diff(exported, documented); diff != "" {
		t.Errorf("docs/metrics.md (-want,+got):\n%s\nall rows:\n%s", diff, strings.Join(exported, "\n"))
	}
}
