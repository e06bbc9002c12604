// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package limited

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

// Configuration is what is limited by default. The zero value limits nothing.
type Configuration struct {
	resources []resourcequotaapi.LimitedResource
}

// Load reads a file of the kind ResourceQuotaConfiguration. Without a path,
// nothing is limited by default.
func Load(path string) (Configuration, error) {
	if path == "" {
		return Configuration{}, nil
	}
	text, err := os.ReadFile(path) //nolint:gosec // the administrator names it
	if err != nil {
		return Configuration{}, fmt.Errorf("reading limited resources: %w", err)
	}
	configuration, err := parse(text)
	if err != nil {
		return Configuration{}, fmt.Errorf("reading limited resources from %s: %w", path, err)
	}
	return configuration, nil
}

func parse(text []byte) (Configuration, error) {
	if err := checkSingle(text); err != nil {
		return Configuration{}, err
	}
	decoded, err := resourcequota.LoadConfiguration(bytes.NewReader(text))
	if err != nil {
		return Configuration{}, fmt.Errorf("decoding it as a ResourceQuotaConfiguration: %w", err)
	}
	if errs := validate(decoded); len(errs) > 0 {
		return Configuration{}, fmt.Errorf("validating it: %w", errs.ToAggregate())
	}
	return Configuration{resources: decoded.LimitedResources}, nil
}

// Limited returns what is limited by default, for evaluation. It must not be
// changed.
func (c Configuration) Limited() []resourcequotaapi.LimitedResource { return c.resources }

// Resources returns the resources whose requests must be seen in every
// namespace, sorted, each once: where no quota covers one, nothing else tells
// that it is limited.
func (c Configuration) Resources() []schema.GroupResource {
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
