// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	installation, withHelm = "docs/installation.md", "With Helm"
	upgrade                = "docs/upgrade.md"
)

// commands returns the command lines below a heading of a page that the page says this suite runs.
func commands(page, heading string) []string {
	GinkgoHelper()
	return suite.Commands("test/helm", page, heading)
}

// command returns the first command line below a heading that begins so.
func command(page, heading, begin string) string {
	GinkgoHelper()
	for _, line := range commands(page, heading) {
		if strings.HasPrefix(line, begin) {
			return line
		}
	}
	Fail(page + ", " + heading + ": no command begins with " + begin)
	return ""
}

// commandsOf returns the commands of what helm printed, a script on standard input included.
func commandsOf(notes string) []string {
	GinkgoHelper()
	found := regexp.MustCompile(`(?m)^kubectl [^\n]*<<'END'\n(?s:.*?)\nEND$|^kubectl [^\n]*$`).FindAllString(notes, -1)
	Expect(len(found)).To(BeNumerically(">=", 4), notes)
	return found
}

var _ = Describe("The chart's page", func() {
	It("lists every value with its default", func() {
		values := map[string]any{}
		readYAML("values.yaml", &values)
		text, err := os.ReadFile(filepath.Join(suite.RepositoryRoot(), chartDir, "README.md"))
		Expect(err).NotTo(HaveOccurred())
		listed := map[string]string{}
		for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\| `([^|]*)` \\|").FindAllStringSubmatch(string(text), -1) {
			listed[row[1]] = row[2]
		}
		Expect(listed).To(Equal(defaultsOf("", values)))
	})

	It("says nothing of the definitions that isn't so", func(ctx SpecContext) {
		var chart struct {
			Version     string            `json:"version"`
			AppVersion  string            `json:"appVersion"`
			Annotations map[string]string `json:"annotations"`
		}
		readYAML("Chart.yaml", &chart)
		var told []struct{ Kind, Version, Name, DisplayName, Description string }
		Expect(yaml.Unmarshal([]byte(chart.Annotations["artifacthub.io/crds"]), &told)).To(Succeed())
		rendered, _ := render(ctx, suite.Namespace, "")
		Expect(told).To(HaveLen(len(keepers(rendered))))
		for _, one := range told {
			definition := rendered["CustomResourceDefinition/"+one.Name]
			Expect(at(definition, "spec", "names", "kind")).To(Equal(one.Kind))
			Expect(at(definition, "spec", "versions")).To(ConsistOf(HaveKeyWithValue("name", one.Version)))
			Expect(one.DisplayName).NotTo(BeEmpty())
			Expect(one.Description).NotTo(BeEmpty())
		}
		var changes []struct{ Kind, Description string }
		Expect(yaml.UnmarshalStrict([]byte(chart.Annotations["artifacthub.io/changes"]), &changes)).To(Succeed())
		Expect(changes).To(HaveEach(HaveField("Kind", BeElementOf("added", "changed", "deprecated", "removed", "fixed", "security"))))
		var links []struct{ Name, URL string }
		Expect(yaml.UnmarshalStrict([]byte(chart.Annotations["artifacthub.io/links"]), &links)).To(Succeed())
		Expect(links).To(HaveEach(HaveField("URL", HavePrefix("https://"))))
		Expect(chart.Version).To(Equal(chart.AppVersion))
	})

	It("has the sample among its examples", func() {
		var chart struct {
			Annotations map[string]string `json:"annotations"`
		}
		readYAML("Chart.yaml", &chart)
		var examples []map[string]any
		Expect(yaml.Unmarshal([]byte(chart.Annotations["artifacthub.io/crdsExamples"]), &examples)).To(Succeed())
		Expect(examples).NotTo(BeEmpty())
		var sample map[string]any
		readYAML("files/sample.yaml", &sample)
		delete(sample, "status")
		Expect(examples).To(ContainElement(HaveKeyWithValue("spec", sample["spec"])), "which NOTES.txt and test/docs try")
	})
})

// readYAML reads a file of the chart.
func readYAML(name string, into any) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(suite.RepositoryRoot(), chartDir, name))
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.Unmarshal(text, into)).To(Succeed())
}

// defaultsOf returns the path of each value -> its default in JSON. A map of others is none itself.
func defaultsOf(prefix string, values map[string]any) map[string]string {
	GinkgoHelper()
	defaults := map[string]string{}
	for name, value := range values {
		if inner, ok := value.(map[string]any); ok && len(inner) > 0 && name != "resources" {
			maps.Copy(defaults, defaultsOf(prefix+name+".", inner))
			continue
		}
		text, err := json.Marshal(value)
		Expect(err).NotTo(HaveOccurred())
		defaults[prefix+name] = string(text)
	}
	return defaults
}
