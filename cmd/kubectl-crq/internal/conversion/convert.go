// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

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
