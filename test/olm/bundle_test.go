// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// bundle is what OLM finds in the bundle's image.
type bundle struct {
	annotations map[string]string
	csv         clusterServiceVersion
	// object is the ClusterServiceVersion as it is, objects are all others.
	object  *unstructured.Unstructured
	objects []*unstructured.Unstructured
}

// clusterServiceVersion is what OLM goes by when it installs.
type clusterServiceVersion struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Install struct {
			Spec struct {
				Deployments []struct {
					Name  string                `json:"name"`
					Label map[string]string     `json:"label"`
					Spec  appsv1.DeploymentSpec `json:"spec"`
				} `json:"deployments"`
				Permissions        []permission `json:"permissions"`
				ClusterPermissions []permission `json:"clusterPermissions"`
			} `json:"spec"`
		} `json:"install"`
		RelatedImages []struct {
			Image string `json:"image"`
		} `json:"relatedImages"`
	} `json:"spec"`
}

type permission struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

func readBundle() bundle {
	var b bundle
	manifests, err := filepath.Glob(filepath.Join(suite.RepositoryRoot(), "bundle", "manifests", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(manifests).NotTo(BeEmpty())
	for _, manifest := range manifests {
		object := readObject(manifest)
		if object.GetKind() != "ClusterServiceVersion" {
			b.objects = append(b.objects, object)
			continue
		}
		Expect(b.object).To(BeNil(), "one ClusterServiceVersion")
		b.object = object
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &b.csv)).To(Succeed())
	}
	Expect(b.csv.Spec.Install.Spec.Deployments).To(HaveLen(1))
	b.annotations, _, err = unstructured.NestedStringMap(
		readObject(filepath.Join(suite.RepositoryRoot(), "bundle", "metadata", "annotations.yaml")).Object, "annotations")
	Expect(err).NotTo(HaveOccurred())
	return b
}

// template is that of the operator's pods.
func (b bundle) template() corev1.PodTemplateSpec {
	return b.csv.Spec.Install.Spec.Deployments[0].Spec.Template
}

// account is the ServiceAccount that the operator runs as.
func (b bundle) account() string { return b.template().Spec.ServiceAccountName }

// examples are what a console offers to create.
func (b bundle) examples() []*unstructured.Unstructured {
	var examples []*unstructured.Unstructured
	Expect(json.Unmarshal([]byte(b.csv.Annotations["alm-examples"]), &examples)).To(Succeed())
	return examples
}

func readObject(path string) *unstructured.Unstructured {
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(text, &object.Object)).To(Succeed(), path)
	return object
}

// inOurNamespace is a file of this repository, with the namespace replaced as the
// documentation says.
func inOurNamespace(path string) string {
	text, err := os.ReadFile(filepath.Join(suite.RepositoryRoot(), path))
	Expect(err).NotTo(HaveOccurred())
	suggested := given.csv.Annotations["operatorframework.io/suggested-namespace"]
	Expect(string(text)).To(ContainSubstring(suggested), path)
	return strings.ReplaceAll(string(text), suggested, namespace)
}

// olmTypes is the directory of OLM's own CustomResourceDefinitions, of the version
// by which the bundle was generated and validated.
func olmTypes() string {
	download := exec.Command("go", "mod", "download", "-json", "github.com/operator-framework/api")
	download.Dir = filepath.Join(suite.RepositoryRoot(), "hack", "tools", "release")
	download.Env = append(os.Environ(), "GOWORK=off")
	var stderr strings.Builder
	download.Stderr = &stderr
	output, err := download.Output()
	Expect(err).NotTo(HaveOccurred(), stderr.String())
	var module struct {
		Dir string `json:"Dir"`
	}
	Expect(json.Unmarshal(output, &module)).To(Succeed())
	return filepath.Join(module.Dir, "crds")
}
