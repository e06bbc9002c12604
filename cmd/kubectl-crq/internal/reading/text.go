// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func missingNamespace(namespace string) string {
	return fmt.Sprintf("namespace %s doesn't exist, and which quotas will cover it isn't known: create it first, and ask again", namespace)
}

func unreadPresent(resource, namespace string) string {
	return fmt.Sprintf("You may not read %s in namespace %s: what is there is counted as if it were to be made.", resource, namespace)
}

func unreadLive(kind, namespace, name string) string {
	return fmt.Sprintf("You may not read %s %s/%s: it is counted as if it were new.", kind, namespace, name)
}

func otherNamespace(kind, name, named, target string) string {
	return fmt.Sprintf("%s %s is for namespace %s, and -n says %s: leave -n out, or say -n %s", kind, name, named, target, named)
}

func guessed(kind schema.GroupVersionKind, plural schema.GroupVersionResource) string {
	return fmt.Sprintf("The cluster doesn't serve %s %s: it is counted as %s.", kind.GroupVersion(), kind.Kind, plural.GroupResource())
}
