// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"reflect"
	"strings"
	"unicode"
)

// Visible returns the text with a sign for each character that a terminal would obey instead of showing it. Every user
// who may write an event or an annotation may put such characters there.
func Visible(text string) string {
	if !strings.ContainsFunc(text, isObeyed) {
		return text
	}
	return strings.Map(func(character rune) rune {
		switch {
		case character == '\n' || character == '\t':
			return ' '
		case isObeyed(character):
			return unicode.ReplacementChar
		}
		return character
	}, text)
}

// isObeyed reports whether a character controls a terminal, or in which direction it writes.
func isObeyed(character rune) bool {
	return unicode.IsControl(character) || unicode.Is(unicode.Bidi_Control, character)
}

// MakeVisible has Visible change all texts that a pointer leads to.
func MakeVisible(object any) { makeVisible(reflect.ValueOf(object)) }

func makeVisible(value reflect.Value) {
	switch value.Kind() { //nolint:exhaustive // the other kinds hold no foreign text
	case reflect.Pointer:
		if !value.IsNil() {
			makeVisible(value.Elem())
		}
	case reflect.Struct:
		for _, field := range value.Fields() {
			makeVisible(field)
		}
	case reflect.Slice:
		for i := range value.Len() {
			makeVisible(value.Index(i))
		}
	case reflect.String:
		if value.CanSet() {
			value.SetString(Visible(value.String()))
		}
	}
}
