// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

const (
	fitShort = "Tell whether manifests would fit into the quotas, now"
	fitLong  = `Tell whether manifests would fit into the quotas of their namespaces, now.

Manifests are read as kubectl apply reads them, and nothing is written. Workloads are expanded to the pods and
claims that they make; what is there already is not counted again. What each object costs is computed with
Kubernetes' own code, and compared with what shared quotas (crq) and ResourceQuotas (quota) leave.

The exit status is 0 if everything fits, 1 if not, and 2 if it can't be told.`
	fitExample = `  # Would this fit, and if not, what is missing?
  kubectl crq fit -f deployment.yaml -n shop

  # All of a directory; what was counted is listed.
  kubectl crq fit -f manifests/ -R -n shop -o wide

  # What a chart makes, before it is installed.
  helm template shop ./chart | kubectl crq fit -f - -n shop

  # A DaemonSet, without the right to see nodes.
  kubectl crq fit -f agent.yaml -n shop --nodes 12`

	negativeNodes    = "--nodes must not be negative"
	notInstalledNote = "Shared quotas aren't installed in this cluster: only ResourceQuotas were looked at."
)

func unknownOutput(output string) string {
	return fmt.Sprintf("unknown output format %q: use wide, json or yaml", output)
}

func notCounted(verdict fitting.Verdict) string {
	var parts []string
	for _, row := range verdict.Rows {
		if !row.Counted {
			parts = append(parts, string(row.Resource)+" of "+quotaName(row.Limit))
		}
	}
	return "can't tell: not counted yet: " + strings.Join(parts, ", ") + "; ask again in a moment"
}

func quotaName(limit *fitting.Limit) string { return string(limit.Source) + "/" + limit.Name }

func manifestName(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

func whenText(when fitting.When) string { return cmp.Or(string(when), "now") }

// fitText is the answer for people.
func fitText(result fitResult, wide bool) []byte {
	render.MakeVisible(&result)
	text := &bytes.Buffer{}
	fmt.Fprintln(text, summaryText(result))
	if len(result.Quotas) > 0 {
		writeTable(text, quotaTable(result.Quotas))
	}
	if len(result.Refusals) > 0 {
		fmt.Fprintln(text, "\nRefused, whatever is available:")
		for _, refusal := range result.Refusals {
			fmt.Fprintf(text, "  %s: its %s: %s\n", refusal.Manifest, refusal.Refused, refusal.Message)
		}
	}
	if wide && len(result.Counted) > 0 {
		writeTable(text, countedTable(result.Counted))
	}
	for i, note := range result.Notes {
		if i == 0 {
			fmt.Fprintln(text)
		}
		fmt.Fprintln(text, "Note:", note)
	}
	return text.Bytes()
}

func summaryText(result fitResult) string {
	switch result.Result {
	case fitting.DoesNot:
		return "It doesn't fit: " + strings.Join(causes(result), "; ") + "."
	case fitting.Unknown:
		return "It can't be told whether it fits."
	default:
		if len(result.Quotas) == 0 {
			return "It fits: no quota limits what these manifests make."
		}
		return "It fits."
	}
}

// causes tell why it doesn't fit, a quota at a time.
func causes(result fitResult) []string {
	var causes []string
	last := ""
	for _, row := range result.Quotas {
		switch missing := row.Resource + ": " + row.Shortfall; {
		case row.Shortfall == "" || row.Shortfall == "0":
		case last == quotaKey(row):
			causes[len(causes)-1] += ", " + missing
		default:
			causes = append(causes, row.Quota+" is short of "+missing)
			last = quotaKey(row)
		}
	}
	switch count := len(result.Refusals); count {
	case 0:
	case 1:
		causes = append(causes, "an object is refused")
	default:
		causes = append(causes, fmt.Sprintf("%d objects are refused", count))
	}
	return causes
}

// quotaKey tells ResourceQuotas of one name in several namespaces apart.
func quotaKey(row fitRow) string { return row.Quota + " " + strings.Join(row.Namespaces, ",") }

func quotaTable(rows []fitRow) [][]string {
	table := make([][]string, 0, len(rows)+1)
	table = append(table, []string{"QUOTA", "NAMESPACE", "RESOURCE", "REQUESTED", "AVAILABLE", "SHORTFALL"})
	for _, row := range rows {
		shortfall := cmp.Or(row.Shortfall, "?")
		if shortfall == "0" {
			shortfall = "-"
		}
		table = append(table, []string{
			row.Quota, strings.Join(row.Namespaces, ","), row.Resource, row.Requested, cmp.Or(row.Available, "?"), shortfall,
		})
	}
	return table
}

func countedTable(counted []fitCounted) [][]string {
	table := make([][]string, 0, len(counted)+1)
	table = append(table, []string{"MANIFEST", "MAKES", "COUNT", "WHEN"})
	for _, made := range counted {
		when := made.When
		if made.Replaces > 0 {
			when += fmt.Sprintf(", for %d that go", made.Replaces)
		}
		table = append(table, []string{made.Manifest, made.Makes, fmt.Sprint(made.Count), when})
	}
	return table
}

func writeTable(text *bytes.Buffer, rows [][]string) {
	fmt.Fprintln(text)
	writer := tabwriter.NewWriter(text, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(writer, strings.Join(row, "\t"))
	}
	_ = writer.Flush() // A buffer takes everything.
}
