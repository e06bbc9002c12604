/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
