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

package selection

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Everything returns the Selector that matches every namespace.
func Everything() Selector { return Selector{labels: labels.Everything()} }

// HasAnnotations tells whether the selector asks for annotations too, which no
// label selector can.
func (s Selector) HasAnnotations() bool { return len(s.annotations) > 0 }

// maxPieces bounds the work of Covered.
const maxPieces = 10000

// Covered tells whether the label selectors together match every namespace that
// the selector matches by its labels, but for the protected ones. What would take
// too long to tell, it takes for uncovered.
func Covered(selector Selector, protected []string, by []metav1.LabelSelector) bool {
	wanted, some := conjunctionOf(selector)
	if some {
		wanted, some = wanted.with(corev1.LabelMetadataName, allBut(protected))
	}
	if !some {
		return true // it matches nothing
	}
	left := []conjunction{wanted}
	for i := range by {
		compiled, err := metav1.LabelSelectorAsSelector(&by[i])
		if err != nil {
			continue // the API server takes none that is invalid
		}
		covers, some := conjunctionOf(Selector{labels: compiled})
		if !some {
			continue
		}
		var outside []conjunction
		for _, piece := range left {
			outside = append(outside, piece.minus(covers)...)
		}
		if left = outside; len(left) > maxPieces {
			return false
		}
	}
	return len(left) == 0
}
