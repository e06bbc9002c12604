// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// templates are found by their marks, the surest first.
//
//nolint:gochecknoglobals // a table
var templates = []struct {
	mark *regexp.Regexp
	// language is that of the template, and tool the command that renders it.
	language, tool string
}{
	{inComments, "of ytt", "ytt -f FILE"},
	{regexp.MustCompile(`\$\{\{`), "of OpenShift", "oc process -f FILE --local -o yaml"},
	{regexp.MustCompile(`\{\{.*(\.Values|\.Release|\.Chart|\.Files|\.Capabilities|\b(include|toYaml|nindent|tpl)\b)`),
		"of Helm", "helm template CHART"},
	{regexp.MustCompile(`\{\{-?\s*(\w+\s+)*([.$"]|/\*|(if|else|range|with|end|define|template|block)\b)`),
		"of Go", "gomplate -f FILE"},
	{regexp.MustCompile(`\{\{|\{%|\{#`), "of Jinja", "jinja2 FILE"},
	{regexp.MustCompile(`<%`), "of ERB", "erb FILE"},
	{regexp.MustCompile(`\$\{|\$\(|\$[A-Z][A-Z0-9_]+`), "with placeholders", "envsubst <FILE"},
}

// inComments matches the marks of templates that are valid YAML, because they are comments there. Within
// another comment, such as one of convert's own, they are none.
var inComments = regexp.MustCompile(`(?m)^(?:(?:\S#|[^#\n])*?\s)?#@`)

// template returns the kind of template that a text is, and the advice; it is empty for none.
func template(text string) string {
	for _, one := range templates {
		if one.mark.MatchString(text) {
			return outcomes.Templated.Text(one.language, one.tool)
		}
	}
	return ""
}

// template returns the reason why an object's name, labels and spec aren't final. Any text may be in an annotation.
func (o *Object) template() string {
	final := []any{o.metadata.Name, o.metadata.Namespace, o.content["spec"]}
	if of, isObject := o.content["metadata"].(map[string]any); isObject {
		final = append(final, of["labels"])
	}
	return first(final, func(at string, value any) string {
		written, _ := value.(string)
		return template(at + " " + written)
	})
}

// goWords are in errors of decoders, and mean nothing to people.
var goWords = regexp.MustCompile(`interface ?\{|map\[|map key|%!|\bGo \b|reflect|runtime|regular expression|unmarshal|panic|json: |` +
	`strconv|\*v1\.`)

// passedOn matches the words with which decoders pass an error on.
var passedOn = regexp.MustCompile(`^(parsing YAML: |parsing JSON: |error converting YAML to JSON: |yaml: |unmarshal errors:\n  )+`)

// unreadable says why a text can't be read.
func unreadable(document string, err error) string {
	if why := template(document); why != "" {
		return why
	}
	if !utf8.ValidString(document) || strings.Contains(document, "\x00") {
		return outcomes.NotUTF8.Text()
	}
	if errors.As(err, new(*json.UnsupportedValueError)) {
		return outcomes.NoNumber.Text()
	}
	why := passedOn.ReplaceAllString(err.Error(), "")
	if goWords.MatchString(why) {
		return outcomes.InvalidYAML.Text()
	}
	return outcomes.OtherMistake.Text(why)
}

// isShared reports whether objects of a kind are, or may be, quotas that several namespaces share.
func isShared(kind schema.GroupVersionKind) bool {
	_, converted := conversions()[kind.GroupKind()]
	return converted || isForeign(kind)
}

// isForeign reports whether a kind is called a quota, or is missing in a group that has quotas, and nothing else is known
// of it.
func isForeign(kind schema.GroupVersionKind) bool {
	_, known := notConverted()[kind.GroupKind()]
	return !known && kind.Group != quotav1.GroupVersion.Group &&
		(strings.Contains(strings.ToLower(kind.Kind), "quota") || kind.Kind == "" && len(kindsOf(kind.Group)) > 0)
}

// kindsOf returns the kinds of a group whose objects are converted, sorted.
func kindsOf(group string) (kinds []string) {
	for known := range conversions() {
		if known.Group == group && group != coreGroup {
			kinds = append(kinds, known.Kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// meant returns the kind that a misspelt one, or one without a version, stands for.
func meant(kind schema.GroupVersionKind) (schema.GroupVersionKind, bool) {
	for known, as := range conversions() {
		if strings.EqualFold(known.Kind, kind.Kind) && known.Group != coreGroup && (known.Group == kind.Group || kind.Version == "") {
			return known.WithVersion(as.versions[len(as.versions)-1]), true
		}
	}
	return kind, false
}

// unseen returns the note on an object of a kind that isn't converted: why it can't be passed over, or that it is skipped.
func (o *Object) unseen() Note {
	if near, found := meant(o.kind); found {
		return Note{Refused, outcomes.Misspelt.Text(near.GroupVersion(), near.Kind)}
	}
	if isForeign(o.kind) {
		return Note{Refused, foreignQuota(o.kind, "")}
	}
	if found := o.quotas(); len(found) > 0 {
		return Note{Refused, holdsQuotas(found, o.kind.Kind)}
	}
	limits := first(o.content, func(at string, _ any) string {
		if isBelow(at, "metadata") || isBelow(at, "status") || !quotaField.MatchString(at) {
			return ""
		}
		return at
	})
	if limits != "" {
		return Note{Refused, foreignQuota(o.kind, " ("+limits+")")}
	}
	if o.kind.Kind == "Kustomization" {
		return Note{Skipped, outcomes.SkippedFiles.Text()}
	}
	return Note{Skipped, outcomes.SkippedUnknown.Text()}
}

var quotaField = regexp.MustCompile(`(?i)(^|\.)(resource)?quotas?$`)

// quotas names the shared quotas that an object is, or has anywhere within it.
func (o *Object) quotas() []string {
	if o.note.Text != "" {
		return kindsIn(o.text)
	}
	var found []string
	walk("", o.content, func(_ string, value any) {
		switch value := value.(type) {
		case map[string]any:
			if one := newObject("", value); isShared(one.kind) && hasBody(value) {
				found = append(found, one.named())
			}
		case string:
			found = append(found, quotasIn(value)...)
		}
	})
	slices.Sort(found)
	return slices.Compact(found)
}

// hasBody is false for a reference to an object.
func hasBody(fields map[string]any) bool {
	for _, field := range fields {
		if _, isObject := field.(map[string]any); isObject {
			return true
		}
	}
	return false
}

// quotasIn names the shared quotas in a text, such as one of a ConfigMap or a Secret.
func quotasIn(written string) (found []string) {
	if decoded, err := base64.StdEncoding.DecodeString(written); err == nil {
		written = string(decoded)
	}
	if !strings.Contains(written, "kind") {
		return nil
	}
	for _, object := range Read("", []byte(written)) {
		found = append(found, object.quotas()...)
	}
	return found
}

var (
	versionIn = regexp.MustCompile(`apiVersion["']?\s*:\s*["']?([\w./-]+)`)
	kindIn    = regexp.MustCompile(`kind["']?\s*:\s*["']?(\w+)`)
)

// kindsIn returns the kinds of shared quotas that are named in a text that can't be read.
func kindsIn(text string) (found []string) {
	for _, kind := range kindIn.FindAllStringSubmatch(text, -1) {
		for _, version := range versionIn.FindAllStringSubmatch(text, -1) {
			if isShared(schema.FromAPIVersionAndKind(version[1], kind[1])) {
				found = append(found, kind[1])
			}
		}
	}
	return found
}
