// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// Convert converts the objects, in their order. An object that is namespaced and
// names no namespace is taken to be in the default one, unless that is empty.
func Convert(objects []Object, defaultNamespace string) []Outcome {
	outcomes := make([]Outcome, 0, len(objects))
	quotas := map[string]settled{} // name -> quota
	for i := range objects {
		outcome := convert(&objects[i], defaultNamespace)
		outcome.settle(quotas)
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

// Subject says what a note is about.
type Subject string

// Subjects of notes, as they begin the comment.
const (
	// Remark: something is different now, or must be done. Nothing is lost.
	Remark Subject = "note"
	// Lost: the input says it and the output doesn't.
	Lost Subject = "not carried over"
	// Refused: an object, or a quota that it asks for, didn't become one.
	Refused Subject = "not converted"
	// Skipped: the object isn't a quota of several namespaces, or gives the same quota as another one.
	Skipped Subject = "skipped"
)

// Note is one comment.
type Note struct {
	Subject Subject
	Text    string
}

// Manifest is one quota that came out, and what there is to say about it.
type Manifest struct {
	Quota *quotav1.ClusterResourceQuota
	Notes []Note
}

// Outcome is what became of one object.
type Outcome struct {
	// Source names the object for people.
	Source string
	// Notes are about the object as a whole.
	Notes     []Note
	Manifests []Manifest
}

func (o *Outcome) note(subject Subject, text string) {
	o.Notes = append(o.Notes, Note{Subject: subject, Text: text})
}

func (o *Outcome) remark(texts ...string) {
	for _, text := range texts {
		o.note(Remark, text)
	}
}

// add adds a quota, with what there is to say about it alone.
func (o *Outcome) add(quota *quotav1.ClusterResourceQuota, notes ...Note) {
	quota.TypeMeta = metav1.TypeMeta{APIVersion: quotav1.GroupVersion.String(), Kind: "ClusterResourceQuota"}
	if short := shortened(quota.Name); short != quota.Name {
		notes = append(notes, Note{Subject: Remark, Text: nameShortened(quota.Name)})
		quota.Name = short
	}
	o.Manifests = append(o.Manifests, Manifest{Quota: quota, Notes: notes})
}

// report notes what is left of an object, each field that is known once, with
// what to do about it.
func (o *Outcome) report(left map[string]any, known []fieldNote) {
	reported := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(left)) {
		about := explained(path, known)
		if about.prefix == "" {
			o.note(Lost, unknownField(path, left[path]))
			continue
		}
		if !reported[about.prefix] {
			reported[about.prefix] = true
			o.note(about.subject, fieldLeft(about, left))
		}
	}
}

// explained returns the note on the field that is nearest above the path, or none.
func explained(path string, known []fieldNote) fieldNote {
	var nearest fieldNote
	for _, about := range slices.Concat(ofAnyKind, known) {
		if isBelow(path, about.prefix) && len(about.prefix) > len(nearest.prefix) {
			nearest = about
		}
	}
	return nearest
}

// Total counts what became of all objects.
type Total struct{ Quotas, Refused, Lost int }

// Sum returns the total of the outcomes.
func Sum(outcomes []Outcome) Total {
	total := Total{}
	for _, outcome := range outcomes {
		total.Quotas += len(outcome.Manifests)
		total.count(outcome.Notes)
		for _, manifest := range outcome.Manifests {
			total.count(manifest.Notes)
		}
	}
	return total
}

func (t *Total) count(notes []Note) {
	for _, note := range notes {
		switch note.Subject {
		case Refused:
			t.Refused++
		case Lost:
			t.Lost++
		case Remark, Skipped:
		}
	}
}
