// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

func notYetObserved(name string) string {
	return "the controller of " + name + " hasn't looked at it yet, or not since it was changed; ask again in a moment"
}

func requestsMore(name corev1.ResourceName) string {
	return fmt.Sprintf("Refused objects asked for more %s than the template says: another webhook adds to them.", name)
}

// forbiddenNote says what can't be told without a right.
func forbiddenNote(resource, namespace string) string {
	may := "You may not read " + resource + " in namespace " + namespace + ": "
	switch resource {
	case "events":
		return may + "refusals are known from conditions alone."
	case "pods", "persistentvolumeclaims", "replicasets":
		return may + "statuses alone say how much is there."
	case "jobs":
		return may + "what its last run came to isn't known."
	case "resourcequotas":
		return may + "whether one of them is short isn't known."
	case viewResource:
		return may + "whether a ClusterResourceQuota is short isn't known."
	default:
		return "" // told where it matters
	}
}
