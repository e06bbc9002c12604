// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// csv completes what people have written of the ClusterServiceVersion.
func (g *inputs) csv(o options, icon []byte, permissions []operatorsv1alpha1.StrategyDeploymentPermissions) (
	*operatorsv1alpha1.ClusterServiceVersion, error,
) {
	csv := g.base.DeepCopy()
	csv.Name = named(o.version.String())
	csv.Spec.Version = version.OperatorVersion{Version: o.version}
	csv.Spec.Icon = []operatorsv1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(icon), MediaType: "image/svg+xml"}}

	if err := g.describe(csv); err != nil {
		return nil, err
	}
	if err := g.annotate(csv, o); err != nil {
		return nil, err
	}
	strategy := &csv.Spec.InstallStrategy.StrategySpec
	strategy.ClusterPermissions = permissions
	strategy.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{g.deploymentSpec(o.image)}
	for _, container := range strategy.DeploymentSpecs[0].Spec.Template.Spec.Containers { // for who mirrors a catalog
		image := operatorsv1alpha1.RelatedImage{Name: container.Name, Image: container.Image}
		csv.Spec.RelatedImages = append(csv.Spec.RelatedImages, image)
	}
	if err := g.namesNoNamespace(strategy); err != nil {
		return nil, fmt.Errorf("install strategy: %w", err)
	}
	return csv, nil
}

// describe takes what the types say of themselves to what they own or lead to.
func (g *inputs) describe(csv *operatorsv1alpha1.ClusterServiceVersion) error {
	owned := csv.Spec.CustomResourceDefinitions.Owned
	for i := range g.crds {
		crd := g.crds[i]
		index := slices.IndexFunc(owned, func(one operatorsv1alpha1.CRDDescription) bool { return one.Name == crd.Name })
		if index < 0 {
			return fmt.Errorf("CustomResourceDefinition %s: the base of the ClusterServiceVersion doesn't own it", crd.Name)
		}
		served := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == owned[index].Version
		})
		if served < 0 {
			return fmt.Errorf("CustomResourceDefinition %s has no version %s", crd.Name, owned[index].Version)
		}
		schema := crd.Spec.Versions[served].Schema.OpenAPIV3Schema
		owned[index].DisplayName = title(crd.Spec.Names.Kind)
		owned[index].Description = prose(schema.Description)
		for _, d := range descriptors(schema.Properties["spec"]) {
			owned[index].SpecDescriptors = append(owned[index].SpecDescriptors, operatorsv1alpha1.SpecDescriptor{
				Path: d.path, DisplayName: d.displayName, Description: d.description, XDescriptors: d.display,
			})
		}
		for _, d := range descriptors(schema.Properties["status"]) {
			owned[index].StatusDescriptors = append(owned[index].StatusDescriptors, operatorsv1alpha1.StatusDescriptor{
				Path: d.path, DisplayName: d.displayName, Description: d.description, XDescriptors: d.display,
			})
		}
	}
	return nil
}

func (g *inputs) annotate(csv *operatorsv1alpha1.ClusterServiceVersion, o options) error {
	var examples []map[string]any
	for _, object := range g.all {
		if g.isExample(object) {
			examples = append(examples, object.Object)
		}
	}
	text, err := json.MarshalIndent(examples, "", "  ")
	if err != nil {
		return err
	}
	namespace, err := json.Marshal(g.namespace)
	if err != nil {
		return err
	}
	csv.Annotations["alm-examples"] = string(text)
	csv.Annotations["containerImage"] = o.image
	csv.Annotations["operatorframework.io/suggested-namespace"] = g.namespace.GetName()
	csv.Annotations["operatorframework.io/suggested-namespace-template"] = string(namespace)
	return o.edges.set(csv, o.version)
}

// deploymentSpec is the Deployment with the release's image.
func (g *inputs) deploymentSpec(image string) operatorsv1alpha1.StrategyDeploymentSpec {
	deployment := g.deployment.DeepCopy()
	containers := deployment.Spec.Template.Spec.Containers
	built := containers[0].Image
	for i := range containers {
		if containers[i].Image == built {
			containers[i].Image = image
		}
	}
	return operatorsv1alpha1.StrategyDeploymentSpec{Name: deployment.Name, Label: deployment.Labels, Spec: deployment.Spec}
}
