// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func otherNamespace(kind, name, named, target string) string {
	return fmt.Sprintf("%s %s is for namespace %s, and -n says %s: leave -n out, or say -n %s", kind, name, named, target, named)
}

func guessed(kind schema.GroupVersionKind, plural schema.GroupVersionResource) string {
	return fmt.Sprintf("The cluster doesn't serve %s %s: it is counted as %s.", kind.GroupVersion(), kind.Kind, plural.GroupResource())
}
