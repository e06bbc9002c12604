// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	conditionsDescriptor = "urn:alm:descriptor:io.kubernetes.conditions"
	textDescriptor       = "urn:alm:descriptor:text"
	selectorDescriptor   = "urn:alm:descriptor:com.tectonic.ui:selector:core:v1:Namespace"
)

// descriptor tells a console what a field is called and means, and how to show it.
type descriptor struct {
	path, displayName, description string
	display                        []string
}

// descriptors describe every field below spec or status in the words of the
// types. Lists, maps and Kubernetes' own label selectors are one field each.
func descriptors(section apiextensionsv1.JSONSchemaProps, path ...string) []descriptor {
	var found []descriptor
	for _, name := range slices.Sorted(maps.Keys(section.Properties)) {
		field := section.Properties[name]
		below := append(slices.Clone(path), name)
		found = append(found, descriptor{
			path:        strings.Join(below, "."),
			displayName: title(below...),
			description: prose(field.Description),
			display:     display(name, field),
		})
		if !isSelector(field) {
			found = append(found, descriptors(field, below...)...)
		}
	}
	return found
}

func display(name string, field apiextensionsv1.JSONSchemaProps) []string {
	switch {
	case name == "conditions":
		return []string{conditionsDescriptor}
	case isSelector(field):
		return []string{selectorDescriptor}
	case field.Type == "string" || field.Type == "integer":
		return []string{textDescriptor}
	}
	return nil
}

func isSelector(field apiextensionsv1.JSONSchemaProps) bool {
	_, labels := field.Properties["matchLabels"]
	_, expressions := field.Properties["matchExpressions"]
	return labels && expressions
}

// title is for people: the words of the names, each with a capital.
func title(names ...string) string {
	var words []string
	for _, name := range names {
		words = append(words, split(name)...)
	}
	return strings.Join(words, " ")
}

// split takes a name in camel case apart.
func split(name string) []string {
	var words []string
	for i, letter := range name {
		if i == 0 || unicode.IsUpper(letter) {
			words = append(words, "")
			letter = unicode.ToUpper(letter)
		}
		words[len(words)-1] += string(letter)
	}
	return words
}

// prose joins the lines of a comment.
func prose(comment string) string { return strings.Join(strings.Fields(comment), " ") }
