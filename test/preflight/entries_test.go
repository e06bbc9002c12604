// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// asked is how often the operator has judged a workload.
func asked(ctx context.Context) float64 {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics), nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	total := 0.0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, "sharedquota_preflight_requests_total{") {
			value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
			Expect(err).NotTo(HaveOccurred())
			total += value
		}
	}
	return total
}

func entries(ctx context.Context) []admissionregistrationv1.ValidatingWebhook {
	GinkgoHelper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Expect(api.Get(ctx, client.ObjectKey{Name: "shared-quota"}, configuration)).To(Succeed())
	var found []admissionregistrationv1.ValidatingWebhook
	for _, webhook := range configuration.Webhooks {
		if strings.HasPrefix(webhook.Name, "workloads") {
			found = append(found, webhook)
		}
	}
	return found
}

// entryOf returns the name of the entry that the namespace meets.
func entryOf(ctx context.Context, p place) string {
	GinkgoHelper()
	namespace := labels.Set{"preflight": p.name, corev1.LabelMetadataName: p.name}
	for _, entry := range entries(ctx) {
		selector, err := metav1.LabelSelectorAsSelector(entry.NamespaceSelector)
		Expect(err).NotTo(HaveOccurred())
		if selector.Matches(namespace) {
			return entry.Name
		}
	}
	return ""
}

var _ = Describe("The entry for workloads", func() {
	It("can't be in the way, and is repaired if somebody edits it", func(ctx SpecContext) {
		p := newPlace(ctx, "entry", 0, "pods", "3")
		name := entryOf(ctx, p)
		for _, entry := range entries(ctx) {
			Expect(entry.FailurePolicy).To(HaveValue(Equal(admissionregistrationv1.Ignore)))
			Expect(entry.TimeoutSeconds).To(HaveValue(BeEquivalentTo(2)))
		}
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		Eventually(ctx, func(ctx context.Context) error {
			if err := api.Get(ctx, client.ObjectKey{Name: "shared-quota"}, configuration); err != nil {
				return err
			}
			for i := range configuration.Webhooks {
				if configuration.Webhooks[i].Name == name {
					configuration.Webhooks[i].FailurePolicy = ptr.To(admissionregistrationv1.Fail)
				}
			}
			return api.Update(ctx, configuration)
		}).Should(Succeed())
		Eventually(ctx, entries).Should(HaveEach(HaveField("FailurePolicy", HaveValue(Equal(admissionregistrationv1.Ignore)))))
	})
})
