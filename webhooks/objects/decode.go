// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

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
