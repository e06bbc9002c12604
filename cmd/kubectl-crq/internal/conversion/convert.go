// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// Convert converts the objects, in their order. An object that is namespaced and
// names no namespace is taken to be in the default one, unless that is empty.
func Convert(objects []Object, defaultNamespace string) []Outcome {
	outcomes := make([]Outcome, 0, len(objects))
	quotas := map[string]settled{} // name -> quota
	for i := range objects {
		object := objects[i]
		outcome := object.convert(defaultNamespace)
		outcome.settle(quotas)
		outcomes = append(outcomes, outcome)
	}
	return outcomes
}

func (o *Object) convert(defaultNamespace string) Outcome {
	if o.note.Text != "" {
		return Outcome{Notes: []Note{{o.note.Subject, o.origin + ": " + o.note.Text}}}
	}
	outcome := Outcome{Source: o.String()}
	as, converted := conversions()[o.kind.GroupKind()]
	if !converted || o.kind.Version == "" {
		why, known := notConverted()[o.kind.GroupKind()]
		if !known {
			why = o.unseen()
		}
		outcome.Notes = append(outcome.Notes, why)
		return outcome
	}
	if why := o.unusable(as, defaultNamespace); why != "" {
		outcome.note(Refused, why)
		return outcome
	}
	if err := as.convert(o, &outcome); err != nil {
		return Outcome{Source: o.String(), Notes: []Note{{Refused, err.Error()}}}
	}
	if len(outcome.Manifests)+len(outcome.Notes) == 0 {
		outcome.note(Skipped, outcomes.SkippedWithout.Text())
	}
	outcome.report(o, as)
	return outcome
}

// unusable says why an object of a kind that is converted can't be.
func (o *Object) unusable(as kindConversion, defaultNamespace string) string {
	if !slices.Contains(as.versions, o.kind.Version) {
		return unknownVersion(o.kind, as.versions)
	}
	if err := o.decode("metadata", &o.metadata); err != nil {
		return err.Error()
	}
	for field := range o.content {
		if field != "spec" && field != "metadata" {
			o.unknown = append(o.unknown, field)
		}
	}
	switch namespaced := o.kind.Group == hncGroup; {
	case namespaced && o.metadata.Namespace == "":
		o.metadata.Namespace = defaultNamespace
	case !namespaced && o.metadata.Namespace != "":
		o.unknown = append(o.unknown, "metadata.namespace")
	}
	if why := o.template(); why != "" {
		return why
	}
	if o.metadata.Name == "" {
		return outcomes.WithoutName.Text()
	}
	return strings.Join(noQuantities(o.content["spec"]), "; ")
}

// Subject is the subject of a note.
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

// Manifest is one quota that came out, with its notes.
type Manifest struct {
	Quota *quotav1.ClusterResourceQuota
	Notes []Note
}

// Outcome is the result for one object.
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

// add adds a quota, with the notes about it alone.
func (o *Outcome) add(quota *quotav1.ClusterResourceQuota, notes ...Note) {
	quota.TypeMeta = metav1.TypeMeta{APIVersion: quotav1.GroupVersion.String(), Kind: "ClusterResourceQuota"}
	o.Manifests = append(o.Manifests, Manifest{Quota: quota, Notes: notes})
}

// report notes the fields that are left of an object, each known field once, with the advice.
func (o *Outcome) report(object *Object, as kindConversion) {
	slices.Sort(object.unknown)
	for _, path := range object.unknown {
		for _, note := range object.notesOn(path, as) {
			if !slices.Contains(ofServer, path) && !slices.Contains(o.Notes, note) {
				o.Notes = append(o.Notes, note)
			}
		}
	}
	if len(object.unknown) >= maxUnknown {
		o.note(Lost, outcomes.MoreFields.Text())
	}
}

// inRuleQuota matches the fields in a quota of a Tenant's rule.
var inRuleQuota = regexp.MustCompile(`^spec\.rules\[\d+\]\.quota\[`)

// maxUnknown is after how many fields a strict decoder notes no more.
const maxUnknown = 100

// notesOn returns the note on a field that is left: the one on it or on the nearest field above it; that it, or the
// first below it that has a place, belongs there; or nothing, also for the rest that is beside that.
func (o *Object) notesOn(path string, as kindConversion) []Note {
	var nearest fieldNote
	for _, about := range slices.Concat(ofAnyKind, as.fields) {
		if isBelow(path, about.prefix) && len(about.prefix) > len(nearest.prefix) && !inRuleQuota.MatchString(path) {
			nearest = about
		}
	}
	if nearest.prefix != "" {
		return []Note{{nearest.subject, nearest.prefix + ": " + nearest.why}}
	}
	misplaced, place := o.misplaced(path, as)
	var notes []Note
	if misplaced != "" {
		notes = append(notes, Note{Lost, outcomes.MisplacedField.Text(misplaced, place)})
	}
	if misplaced == "" || o.hasBeside(path, misplaced) {
		notes = append(notes, Note{Lost, outcomes.NothingForIt.Text(path)})
	}
	return notes
}

// misplaced returns the first field at a path or below it that has another place, and that.
func (o *Object) misplaced(path string, as kindConversion) (misplaced, place string) {
	walk("", o.content, func(at string, _ any) {
		if misplaced == "" && isBelow(at, path) {
			if place = as.placeOf(at); place != "" {
				misplaced = at
			}
		}
	})
	return misplaced, place
}

// hasBeside reports whether there is a value at a path or below it, but for one part.
func (o *Object) hasBeside(path, part string) (has bool) {
	walk("", o.content, func(at string, value any) {
		_, isList := value.([]any)
		_, isObject := value.(map[string]any)
		has = has || !isList && !isObject && isBelow(at, path) && !isBelow(at, part)
	})
	return has
}

// placeOf returns another place of a field of this name; empty if there is none.
func (k kindConversion) placeOf(at string) string {
	name := at[strings.LastIndex(at, ".")+1:]
	for _, place := range k.places {
		known := place[strings.LastIndex(place, ".")+1:]
		if place != at && (strings.EqualFold(name, known) || strings.EqualFold(name+"s", known)) {
			return place
		}
	}
	return ""
}

// Total counts the outcomes of all objects.
type Total struct{ Quotas, Refused, Lost int }

// Sum returns the total of the outcomes.
func Sum(outcomes []Outcome) Total {
	quotas, notes := 0, map[Subject]int{}
	for i := range outcomes {
		quotas += len(outcomes[i].Manifests)
		for _, note := range outcomes[i].allNotes() {
			notes[note.Subject]++
		}
	}
	return Total{Quotas: quotas, Refused: notes[Refused], Lost: notes[Lost]}
}

// allNotes returns the notes on an object and on its quotas.
func (o *Outcome) allNotes() []Note {
	notes := o.Notes
	for _, manifest := range o.Manifests {
		notes = slices.Concat(notes, manifest.Notes)
	}
	return notes
}
