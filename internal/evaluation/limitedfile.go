// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	resourcequotaapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
)

// LimitedConfiguration is what is limited by default. The zero value limits nothing.
type LimitedConfiguration struct {
	resources []resourcequotaapi.LimitedResource
}

// LoadLimited reads a file of the kind ResourceQuotaConfiguration. Without a path,
// nothing is limited by default.
func LoadLimited(path string) (LimitedConfiguration, error) {
	if path == "" {
		return LimitedConfiguration{}, nil
	}
	text, err := os.ReadFile(path) //nolint:gosec // the administrator names it
	if err != nil {
		return LimitedConfiguration{}, fmt.Errorf("reading limited resources: %w", err)
	}
	configuration, err := parse(text)
	if err != nil {
		return LimitedConfiguration{}, fmt.Errorf("reading limited resources from %s: %w", path, err)
	}
	return configuration, nil
}

func parse(text []byte) (LimitedConfiguration, error) {
	if err := checkSingle(text); err != nil {
		return LimitedConfiguration{}, err
	}
	decoded, err := resourcequota.LoadConfiguration(bytes.NewReader(text))
	if err != nil {
		return LimitedConfiguration{}, fmt.Errorf("decoding it as a ResourceQuotaConfiguration: %w", err)
	}
	if errs := validate(decoded); len(errs) > 0 {
		return LimitedConfiguration{}, fmt.Errorf("validating it: %w", errs.ToAggregate())
	}
	return LimitedConfiguration{resources: decoded.LimitedResources}, nil
}

// Limited returns what is limited by default, for evaluation. It must not be
// changed.
func (c LimitedConfiguration) Limited() []resourcequotaapi.LimitedResource { return c.resources }

// Resources returns the resources whose requests must be seen in every
// namespace, sorted, each once: where no quota covers one, nothing else tells
// that it is limited.
func (c LimitedConfiguration) Resources() []schema.GroupResource {
	resources := make([]schema.GroupResource, 0, len(c.resources))
	for _, limited := range c.resources {
		resources = append(resources, resourceOf(limited))
	}
	slices.SortFunc(resources, func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(resources)
}

func resourceOf(limited resourcequotaapi.LimitedResource) schema.GroupResource {
	return schema.GroupResource{Group: limited.APIGroup, Resource: limited.Resource}
}
