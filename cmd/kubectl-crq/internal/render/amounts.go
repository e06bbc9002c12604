// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// amountsText puts what there is any of into one line, sorted, as in
// "pods: 2, requests.cpu: 300m".
func amountsText(amounts corev1.ResourceList) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if amount := amounts[name]; !amount.IsZero() {
			texts = append(texts, string(name)+": "+amount.String())
		}
	}
	if len(texts) == 0 {
		return "-"
	}
	return strings.Join(texts, ", ")
}
