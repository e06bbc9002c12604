// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// fitResult is the answer for programs.
type fitResult struct {
	// Result is "fits", "does not fit" or "unknown".
	Result     fitting.Outcome `json:"result"`
	Namespaces []string        `json:"namespaces"`
	Quotas     []fitRow        `json:"quotas"`
	Refusals   []fitRefusal    `json:"refusals"`
	Counted    []fitCounted    `json:"counted"`
	Notes      []string        `json:"notes"`
}

// fitRow is one resource of one quota. Amounts that aren't known are left out.
type fitRow struct {
	Quota      string   `json:"quota"`
	Namespaces []string `json:"namespaces"`
	Resource   string   `json:"resource"`
	// Requested must be free at some moment.
	Requested string `json:"requested"`
	// InTheEnd is what is taken when everything is done.
	InTheEnd string `json:"inTheEnd"`
	// WithSurge is what rollouts take if they can.
	WithSurge string `json:"withSurge"`
	Available string `json:"available,omitempty"`
	Shortfall string `json:"shortfall,omitempty"`
}

// fitRefusal is what is refused whatever is available.
type fitRefusal struct {
	Manifest string `json:"manifest"`
	Refused  string `json:"refused"`
	Message  string `json:"message"`
}

// fitCounted is what was counted of a manifest.
type fitCounted struct {
	Manifest string `json:"manifest"`
	Makes    string `json:"makes"`
	Count    int64  `json:"count"`
	// Replaces is how many that are there go for these.
	Replaces int64  `json:"replaces,omitempty"`
	When     string `json:"when"`
}

func resultOf(asked question, verdict fitting.Verdict) fitResult {
	result := fitResult{
		Result: verdict.Outcome(), Namespaces: append([]string{}, asked.namespaces...),
		Quotas: []fitRow{}, Refusals: []fitRefusal{}, Counted: []fitCounted{}, Notes: append([]string{}, asked.notes...),
	}
	for _, row := range verdict.Rows {
		result.Quotas = append(result.Quotas, rowOf(row))
	}
	for _, refusal := range verdict.Refusals {
		result.Refusals = append(result.Refusals, fitRefusal{
			Manifest: manifestName(refusal.Kind, refusal.Namespace, refusal.Name), Refused: refusal.Refused, Message: refusal.Message,
		})
	}
	for _, demand := range asked.demands {
		result.Counted = append(result.Counted, countedOf(demand)...)
	}
	return result
}

func rowOf(row fitting.Row) fitRow {
	found := fitRow{
		Quota: quotaName(row.Limit), Namespaces: row.Limit.Namespaces, Resource: string(row.Resource),
		Requested: row.Requested.String(), InTheEnd: row.InTheEnd.String(), WithSurge: row.WholeSurge.String(),
	}
	if row.Counted {
		found.Available, found.Shortfall = row.Available.String(), row.Shortfall.String()
	}
	return found
}

func countedOf(demand fitting.Demand) []fitCounted {
	var counted []fitCounted
	add := func(item fitting.Item, count, replaces int64) {
		if count > 0 && item.Old == nil {
			counted = append(counted, fitCounted{
				Manifest: manifestName(demand.Kind, demand.Namespace, demand.Name),
				Makes:    item.Kind, Count: count, Replaces: replaces, When: whenText(item.When),
			})
		}
	}
	for _, item := range demand.Items {
		add(item, item.Count, 0)
	}
	if pods := demand.Pods; pods != nil {
		for _, item := range pods.New {
			add(item, pods.Missing()*item.Count, pods.Replaced())
		}
	}
	return counted
}

func printFit(out io.Writer, output string, asked question, verdict fitting.Verdict) error {
	result := resultOf(asked, verdict)
	var text []byte
	var err error
	switch output {
	case "json":
		text, err = json.MarshalIndent(result, "", "    ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(result)
	default:
		text = fitText(result, output == "wide")
	}
	if err != nil {
		return fmt.Errorf("writing the answer as %s: %w", output, err)
	}
	_, err = out.Write(text)
	return err //nolint:wrapcheck // the caller says what was being done
}
