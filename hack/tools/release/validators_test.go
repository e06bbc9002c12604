// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
)

// kubernetesVersion is the version whose removed APIs are looked for.
const kubernetesVersion = "1.37.0"

// mistaken is a warning that holds for no version of Kubernetes since 1.20: events and runtime
// classes have an API of version v1, and a role names none. The validator takes rights on them
// for the use of v1beta1. It names both in either order.
var mistaken = regexp.MustCompile(`deprecated and removed in v1\.25\..*Migrate the API\(s\) for ` +
	`((events|runtimeclasses): ` +
	`\(\["ClusterServiceVersion\.Spec\.InstallStrategy\.StrategySpec\.ClusterPermissions\[0\]\.Rules\[\d+\]"\]\),?)+$`)

// TestBundle has the bundle that lies in the repository validated by what
// catalogs validate it with. A warning is a failure, too.
func TestBundle(t *testing.T) {
	bundle, err := manifests.GetBundleFromDir("../../../bundle")
	if err != nil {
		t.Fatal(err)
	}
	objects := append(bundle.ObjectsToValidate(), map[string]string{"k8s-version": kubernetesVersion})
	for name, validators := range map[string]validator.Validators{
		"default":        validation.DefaultBundleValidators,
		"operatorhub":    {validation.OperatorHubV2Validator},
		"categories":     {validation.StandardCategoriesValidator},
		"capabilities":   {validation.StandardCapabilitiesValidator},
		"good practices": {validation.GoodPracticesValidator},
		"removed APIs":   {validation.AlphaDeprecatedAPIsValidator},
		"objects":        {validation.ObjectValidator},
	} {
		t.Run(name, func(t *testing.T) {
			results := validators.Validate(objects...)
			if len(results) == 0 {
				t.Fatal("nothing was validated")
			}
			for _, result := range results {
				for _, problem := range append(result.Errors, result.Warnings...) {
					if mistaken.MatchString(problem.Error()) {
						continue
					}
					t.Errorf("%s: %s", result.Name, problem.Error())
				}
			}
		})
	}
}
