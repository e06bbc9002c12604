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

package conversion

import (
	"maps"
	"strings"
)

// Convert converts the objects, in their order. An object that is namespaced and
// names no namespace is taken to be in the default one, unless that is empty.
func Convert(objects []Object, defaultNamespace string) []Outcome {
	outcomes := make([]Outcome, 0, len(objects))
	sources := map[string]string{} // name of a quota -> the object that it came of
	for i := range objects {
		outcome := convert(&objects[i], defaultNamespace)
		outcome.settle(sources)
		outcomes = append(outcomes, outcome)
	}
	return outcomes
}

func convert(object *Object, defaultNamespace string) Outcome {
	outcome := Outcome{Source: object.String()}
	object.left = maps.Clone(object.left)
	as, why, converted := conversionOf(object.kind)
	if !converted {
		outcome.Notes = append(outcome.Notes, why)
		return outcome
	}
	if object.metadata("name") == "" {
		outcome.note(Refused, withoutName)
		return outcome
	}
	object.ignore(ofServer...)
	if bad := noQuantities(object.left); len(bad) > 0 {
		outcome.note(Refused, strings.Join(bad, "; "))
		return outcome
	}
	if err := as.convert(object, defaultNamespace, &outcome); err != nil {
		outcome.note(Refused, err.Error())
		return outcome
	}
	outcome.report(object.left, as.fields)
	return outcome
}
