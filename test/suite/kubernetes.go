// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// Since decorates specs of what Kubernetes has since a minor version, such as 1.33. A run on an older control plane
// leaves them out.
func Since(minor string) SemVerConstraints { return SemVerConstraint(">= " + minor + ".0") }

// IsSince reports whether the control plane that is tested is of the minor version, or of a later one.
func IsSince(ctx context.Context, minor string) bool {
	GinkgoHelper()
	tested, err := harness.KubernetesVersion(ctx)
	Expect(err).NotTo(HaveOccurred())
	return version.MustParseSemantic(tested).AtLeast(version.MustParseGeneric(minor))
}
