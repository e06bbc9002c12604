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
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

func sortedLabels() cmp.Option {
	return cmpopts.SortSlices(func(a, b string) bool { return a < b })
}

// exposed is what the endpoint would answer.
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

// row is how docs/metrics.md tells of a metric.
func row(entry Entry) string {
	labels := make([]string, 0, len(entry.Labels))
	for _, label := range entry.Labels {
		labels = append(labels, "`"+label+"`")
	}
	return fmt.Sprintf("| %#q | %s | %s | %s |", entry.Name, entry.Type, strings.Join(labels, ", "), entry.Help)
}

// The rows are copied from here when the test fails.
func TestTheDocumentListsExactlyWhatIsExported(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, exported []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `"+namespace+"_") {
			documented = append(documented, strings.TrimSpace(line))
		}
	}
	for _, entry := range New(prometheus.NewRegistry()).Catalogue() {
		exported = append(exported, row(entry))
	}
	slices.Sort(documented)
	slices.Sort(exported)
	if diff := cmp.Diff(exported, documented); diff != "" {
		t.Errorf("docs/metrics.md (-want,+got):\n%s\nall rows:\n%s", diff, strings.Join(exported, "\n"))
	}
}
