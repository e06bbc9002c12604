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

package objects

import (
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"k8s.io/apimachinery/pkg/util/json"
)

// unmarshal decodes into what a pointer points to. It does so in one pass, where
// Kubernetes' decoder takes several over each request's object: that was a fifth
// of the operator's CPU time under load. What it refuses, such as a name that is
// there twice, is read again by that one: it has the last word, and the messages
// that people know.
func unmarshal(text []byte, into any) error {
	if jsonv2.Unmarshal(text, into) == nil {
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero()
	return json.Unmarshal(text, into) //nolint:wrapcheck // each caller says what it read
}
