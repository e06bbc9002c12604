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

package localview

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func TestOneNamespaceKeepsNoOtherFromItsView(t *testing.T) {
	views := viewsNamed("good", 3*writesAtOnce)
	views[0].Name = "bad"
	refused := errors.New("refused")
	var mu sync.Mutex
	done := map[string]int{}
	err := each(views, func(view *quotav1.LocalResourceQuota) error {
		mu.Lock()
		defer mu.Unlock()
		done[view.Name]++
		if view.Name == "bad" {
			return refused
		}
		return nil
	})
	if diff := cmp.Diff(map[string]int{"bad": 1, "good": 3*writesAtOnce - 1}, done); diff != "" {
		t.Errorf("views that were written (-want,+got):\n%s", diff)
	}
	if !errors.Is(err, refused) {
		t.Errorf("want the failure told, got %v", err)
	}
}
