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
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// Selector is temporary.
type Selector struct {
	labels      labels.Selector
	annotations map[string]string
}

// Compile is temporary.
func Compile(s quotav1.ClusterResourceQuotaSelector) (Selector, error) {
	if s.LabelSelector == nil && len(s.AnnotationSelector) == 0 {
		return Selector{}, fmt.Errorf("empty")
	}
	l := labels.Everything()
	if s.LabelSelector != nil {
		var err error
		if l, err = metav1.LabelSelectorAsSelector(s.LabelSelector); err != nil {
			return Selector{}, err
		}
	}
	return Selector{labels: l, annotations: s.AnnotationSelector}, nil
}

// Matches is temporary.
func (s Selector) Matches(l, a map[string]string) bool {
	for k, v := range s.annotations {
		if a[k] != v {
			return false
		}
	}
	return s.labels.Matches(labels.Set(l))
}

func (s Selector) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(s.annotations)) {
		parts = append(parts, k+"="+s.annotations[k])
	}
	return s.labels.String() + strings.Join(parts, ",")
}
