// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// Definition is a ClusterResourceQuota, compiled. It shares memory with the
// object that it was compiled from and must not be changed.
type Definition struct {
	// Limits are the limits that the ledger judges by.
	Limits ledger.Limits
	// Quota is the quota that objects are evaluated for.
	Quota evaluation.Quota
	// Selector chooses the namespaces.
	Selector Selector
	// Preflight is the response to an applied workload that doesn't fit; never
	// empty.
	Preflight quotav1.PreflightMode
	// Enforcement is the response to requests that don't fit.
	Enforcement Enforcement
	// Invalid is why Compile refuses the quota; nil after Compile. See Salvage.
	Invalid error
}

// IsInvalid reports whether Compile refuses the quota.
func (d Definition) IsInvalid() bool { return d.Invalid != nil }

// Compile validates a quota and compiles it. The error lists every invalid
// field by its path.
func Compile(object *quotav1.ClusterResourceQuota) (Definition, error) {
	if errs := Validate(object); len(errs) > 0 {
		return Definition{}, fmt.Errorf("quota %s: %w", object.Name, errs.ToAggregate())
	}
	selector, err := CompileSelector(object.Spec.Selector)
	if err != nil {
		return Definition{}, fmt.Errorf("quota %s: %w", object.Name, err)
	}
	digest, err := digest(object)
	if err != nil {
		return Definition{}, fmt.Errorf("quota %s: %w", object.Name, err)
	}
	return definitionOf(object, digest, selector, corev1.ResourceQuotaSpec(object.Spec.Quota)), nil
}

func definitionOf(
	object *quotav1.ClusterResourceQuota, digest string, selector Selector, spec corev1.ResourceQuotaSpec,
) Definition {
	enforcement := EnforcementOf(object.Spec)
	return Definition{
		Limits: ledger.Limits{
			Name:     object.Name,
			Basis:    ledger.Basis{Quota: object.UID, Generation: object.Generation, Digest: digest},
			Hard:     spec.Hard,
			Surge:    object.Spec.Surge.Hard,
			Advisory: !enforcement.Refuses(),
		},
		Quota:       evaluation.Quota{Name: object.Name, Spec: spec, Advisory: !enforcement.Refuses()},
		Selector:    selector,
		Preflight:   cmp.Or(object.Spec.Preflight, quotav1.PreflightWarn),
		Enforcement: enforcement,
	}
}

// Changed reports whether an update leads to another definition: the spec differs, or the quota
// does, because an update may stand for a deletion and a creation that no watch has shown.
func Changed(before, after metav1.Object) bool {
	return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID()
}

// digest covers the parts of a spec that decide which objects count and for which
// resources, but not how much is allowed: raising a limit asks for no new count.
// The digest of a spec must stay the same: replicas of another release know the
// ledger's count by it.
func digest(object *quotav1.ClusterResourceQuota) (string, error) {
	names := quota.ResourceNames(object.Spec.Quota.Hard)
	slices.Sort(names)
	scopes := slices.Sorted(slices.Values(object.Spec.Quota.Scopes))
	content, err := json.Marshal([]any{object.UID, object.Spec.Selector, names, scopes, object.Spec.Quota.ScopeSelector})
	if err != nil {
		return "", fmt.Errorf("computing the digest: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8]), nil
}
