// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Report is what the judge has seen.
type Report struct {
	// Revision of etcd up to which everything is included.
	Revision int64
	// Quotas are those that exist, by name, and those that existed and had
	// violations: of these only the violations are left.
	Quotas map[string]QuotaReport
}

// QuotaReport is what the judge has seen of one quota. A quota that is created
// again under the same name begins anew, but for its violations.
type QuotaReport struct {
	// Hard is what the quota allows now.
	Hard corev1.ResourceList
	// Lives is what lives now in all selected namespaces.
	Lives corev1.ResourceList
	// Namespaces tells what lives now in each selected namespace.
	Namespaces map[string]corev1.ResourceList
	// Peak is the most that ever lived at once, of each resource.
	Peak corev1.ResourceList
	// Admitted is the number of commits of objects that raised something:
	// creation or growth.
	Admitted int
	// Violations are the first ones, in their order.
	Violations []Violation
	// MoreViolations is the number of those that are not among Violations.
	MoreViolations int
	// Surged are the first commits after which more lived than hard, and no more than hard and surge. Their Hard is
	// without surge. If no pod replaced another one, there may be none.
	Surged []Violation
	// MoreSurged is the number of those that are not among Surged.
	MoreSurged int
}

// Violation is an object's commit that raised what lives of a resource, while
// the sum after it was above hard, and surge where there is some.
type Violation struct {
	// Quota is the name of the quota.
	Quota string
	// Revision of etcd, which is also the resourceVersion of the object.
	Revision int64
	// Key of the object in etcd.
	Key string
	// Resource that the commit raised.
	Resource corev1.ResourceName
	// Lives is the sum after the commit.
	Lives resource.Quantity
	// Hard is what the quota allowed then, with surge.
	Hard resource.Quantity
}

// String tells it in one line.
func (v Violation) String() string {
	return fmt.Sprintf("revision %d: %s raised %s under quota %s to %s, above %s",
		v.Revision, v.Key, v.Resource, v.Quota, v.Lives.String(), v.Hard.String())
}
