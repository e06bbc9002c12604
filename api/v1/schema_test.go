// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// quantities visits the schemas of quantities below a schema.
func quantities(path string, schema apiextensionsv1.JSONSchemaProps, visit func(string, apiextensionsv1.JSONSchemaProps)) {
	if strings.Contains(schema.Pattern, "KMGTPE") {
		visit(path, schema)
	}
	for name, property := range schema.Properties {
		quantities(path+"."+name, property, visit)
	}
	if schema.Items != nil {
		quantities(path+"[]", *schema.Items.Schema, visit)
	}
	if schema.AdditionalProperties != nil {
		quantities(path+"[*]", *schema.AdditionalProperties.Schema, visit)
	}
}

// People write quantities as numbers, too. In what the operator writes they are strings, and each write has one managed field,
// because the API server does less for these.
func TestTheSchemaIsLightWhereOnlyTheOperatorWrites(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("got %v, %v, want three CRDs", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatal(err)
		}
		own := "status"
		if crd.Spec.Names.Kind == "QuotaLedger" {
			own = "entries"
		}
		schema, number := crd.Spec.Versions[0].Schema.OpenAPIV3Schema, map[bool]int{}
		quantities("", *schema, func(path string, quantity apiextensionsv1.JSONSchemaProps) {
			light := strings.HasPrefix(path, "."+own)
			number[light]++
			if isString := quantity.Type == "string" && !quantity.XIntOrString && quantity.AnyOf == nil; isString != light {
				t.Errorf("%s%s: only strings are allowed: %v, want %v", crd.Spec.Names.Kind, path, isString, light)
			}
			if !strings.Contains(quantity.Pattern, "[0-9]{1,2}") {
				t.Errorf("%s%s: exponents may have any number of digits", crd.Spec.Names.Kind, path)
			}
		})
		if limits := crd.Spec.Names.Kind == "ClusterResourceQuota"; number[true] == 0 || limits != (number[false] > 0) {
			t.Errorf("%s: found %v quantities", crd.Spec.Names.Kind, number)
		}
		if kind := schema.Properties[own].XMapType; kind == nil || *kind != "atomic" {
			t.Errorf("%s.%s isn't atomic", crd.Spec.Names.Kind, own)
		}
	}
}
