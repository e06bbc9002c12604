// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package promtool

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const root = "../../../"

// nameLabel is what a selector calls a metric's name.
const nameLabel = "__name__"

// metrics maps the name of a metric to its labels.
type metrics map[string][]string

// exported reads docs/metrics.md, of which the tests of internal/metrics say that
// it lists exactly what the code exports, and besides what is asked of the API server.
func exported(t *testing.T) metrics {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (counter|gauge|histogram) \\| ([^|]*) \\|")
	known := metrics{}
	for _, match := range row.FindAllStringSubmatch(read(t, "docs/metrics.md"), -1) {
		names := strings.FieldsFunc(match[3], func(r rune) bool { return strings.ContainsRune("`, ", r) })
		if name := match[1]; match[2] == "histogram" {
			known[name+"_sum"], known[name+"_count"] = names, names
			known[name+"_bucket"] = append(slices.Clone(names), labels.BucketLabel)
		} else {
			known[name] = names
		}
	}
	if len(known) < 20 {
		t.Fatalf("docs/metrics.md lists too few metrics to be true: %v", slices.Sorted(maps.Keys(known)))
	}
	return known
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(root + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rule is an alert of a PrometheusRule.
type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var object struct {
		Spec struct{ Groups []struct{ Rules []rule } }
	}
	if err := yaml.Unmarshal([]byte(read(t, "config/prometheus/alerts.yaml")), &object); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, group := range object.Spec.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no alerts")
	}
	return all
}

func TestAlertsAskForWhatIsExported(t *testing.T) {
	known := exported(t)
	for _, alert := range alerts(t) {
		t.Run(alert.Alert, func(t *testing.T) {
			if err := known.check(alert.Expr); err != nil {
				t.Errorf("%v in:\n%s", err, alert.Expr)
			}
			// What a message names must be in the alert.
			for _, text := range alert.Annotations {
				for _, match := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
					if !strings.Contains(alert.Expr, match[1]) && !slices.Contains(ofTheTarget, match[1]) {
						t.Errorf("the label %s is not among what is asked for", match[1])
					}
				}
			}
		})
	}
}

func TestTheDashboardAsksForWhatIsExported(t *testing.T) {
	known, board := exported(t), dashboard(t)
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			if err := known.check(target.Expr); err != nil {
				t.Errorf("panel %q: %v in:\n%s", panel.Title, err, target.Expr)
			}
		}
	}
	values := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	for _, variable := range board.Templating.List {
		if variable.Type != "query" {
			continue
		}
		match := values.FindStringSubmatch(variable.Definition)
		if match == nil {
			t.Errorf("variable %s: want label_values(SELECTOR, LABEL), got %s", variable.Name, variable.Definition)
			continue
		}
		if err := known.check(fmt.Sprintf("count by (%s) (%s)", match[2], match[1])); err != nil {
			t.Errorf("variable %s: %v", variable.Name, err)
		}
	}
}

// optional reads from docs/metrics.md which metrics are exported only with a flag.
func optional(t *testing.T) map[string]string {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\|.* with (--metrics-[\\w-]+)\\.")
	flags := map[string]string{}
	for _, match := range row.FindAllStringSubmatch(read(t, "docs/metrics.md"), -1) {
		flags[match[1]] = match[2]
	}
	if len(flags) == 0 {
		t.Fatal("docs/metrics.md names no metric that takes a flag")
	}
	return flags
}

// By default no alert may be blind, and no panel empty without a word.
func TestAMetricThatNeedsAFlagSaysSo(t *testing.T) {
	alerts, panels := alerts(t), dashboard(t).Panels
	for name, flag := range optional(t) {
		for _, alert := range alerts {
			if strings.Contains(alert.Expr, name) {
				t.Errorf("alert %s asks for %s, which is exported only with %s", alert.Alert, name, flag)
			}
		}
		for _, panel := range panels {
			for _, target := range panel.Targets {
				if strings.Contains(target.Expr, name) && !strings.Contains(panel.Description, flag) {
					t.Errorf("panel %q asks for %s: want its description to name %s", panel.Title, name, flag)
				}
			}
		}
		for part := range strings.SplitSeq(read(t, "docs/runbooks.md"), "\n\n") {
			if strings.Contains(part, name) && !strings.Contains(part, flag) {
				t.Errorf("docs/runbooks.md: want this to name %s:\n%s", flag, part)
			}
		}
	}
}

// The check itself must notice what is wrong.
func TestAQueryForAnUnexportedMetricIsFound(t *testing.T) {
	known := exported(t)
	for query, want := range map[string]string{
		`sharedquota_quota_usd{quota="team"}`:                                           "sharedquota_quota_usd is not exported",
		`{quota="team"}`:                                                                "a selector names no metric",
		`sharedquota_quota_used{namespace="shop"}`:                                      "", // of the target
		`sharedquota_quota_used{resources="pods"}`:                                      "sharedquota_quota_used has no label resources",
		`sum by (outcome) (sharedquota_quota_used)`:                                     "sharedquota_quota_used has no label outcome",
		`sharedquota_quota_used / on (type) sharedquota_quota_hard`:                     "sharedquota_quota_used has no label type",
		`rate(sharedquota_admission_duration_seconds[5m])`:                              "sharedquota_admission_duration_seconds is not exported",
		`histogram_quantile(0.9, rate(sharedquota_admission_duration_seconds_sum[5m]))`: "",
		`sum(sharedquota_quota_used`:                                                    "parse error",
	} {
		err := known.check(query)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", query, err, want)
		}
	}
}

// ofTheTarget are labels that scraping adds.
var ofTheTarget = []string{"job", "instance", "pod", "namespace"}

// variables are what Grafana puts in place of its own.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h")

// check parses a query, and tells of the first metric or label in it that isn't there.
func (m metrics) check(query string) error {
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(variables.Replace(query))
	if err != nil {
		return err
	}
	var found error
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if found == nil {
			found = m.checkNode(node)
		}
		return nil
	})
	return found
}

func (m metrics) checkNode(node parser.Node) error {
	switch node := node.(type) {
	case *parser.VectorSelector:
		var names []string
		for _, matcher := range node.LabelMatchers {
			if matcher.Name != nameLabel {
				names = append(names, matcher.Name)
			}
		}
		return m.checkLabels(node, names)
	case *parser.AggregateExpr:
		return m.checkLabels(node, node.Grouping)
	case *parser.BinaryExpr:
		if node.VectorMatching != nil {
			return m.checkLabels(node, append(node.VectorMatching.MatchingLabels, node.VectorMatching.Include...))
		}
	}
	return nil
}

// checkLabels tells whether every metric below a node has the labels.
func (m metrics) checkLabels(node parser.Node, wanted []string) error {
	for _, selectors := range parser.ExtractSelectors(node.(parser.Expr)) {
		name := ""
		for _, matcher := range selectors {
			if matcher.Name == nameLabel {
				name = matcher.Value
			}
		}
		if name == "" {
			return fmt.Errorf("a selector names no metric: %v", selectors)
		}
		labels, found := m[name]
		if !found {
			return fmt.Errorf("%s is not exported", name)
		}
		for _, label := range wanted {
			if !slices.Contains(labels, label) && !slices.Contains(ofTheTarget, label) {
				return fmt.Errorf("%s has no label %s", name, label)
			}
		}
	}
	return nil
}

type board struct {
	SchemaVersion int
	Panels        []panel
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
}

type panel struct {
	ID          int
	Type, Title string
	Description string
	Datasource  struct{ UID string }
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct {
		Expr       string
		Datasource struct{ UID string }
	}
}

func dashboard(t *testing.T) board {
	t.Helper()
	var read board
	text, err := os.ReadFile(root + "config/prometheus/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestPanelsCanBeRead(t *testing.T) {
	seen, queries := map[int]bool{}, 0
	for i, panel := range dashboard(t).Panels {
		if seen[panel.ID] {
			t.Errorf("panel %q: its id %d is another's", panel.Title, panel.ID)
		}
		seen[panel.ID] = true
		for _, other := range dashboard(t).Panels[:i] {
			a, b := panel.GridPos, other.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("panel %q lies over %q", panel.Title, other.Title)
			}
		}
		if panel.Type == "row" {
			continue
		}
		if panel.FieldConfig.Defaults.Unit == "" || len(panel.Targets) == 0 {
			t.Errorf("panel %q: want a unit and a query", panel.Title)
		}
		queries += len(panel.Targets)
		for _, target := range panel.Targets {
			if target.Datasource.UID != "${datasource}" || panel.Datasource.UID != "${datasource}" {
				t.Errorf("panel %q: want the data source that is chosen", panel.Title)
			}
		}
	}
	if queries < 20 {
		t.Errorf("the dashboard has %d queries, which are too few to be true", queries)
	}
}
