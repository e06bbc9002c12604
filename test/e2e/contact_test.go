// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
	"github.com/sharedquota/shared-quota-operator/test/faults/proxy"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	// lostAfter is how long the API server may be silent.
	lostAfter = 5 * time.Second
	// atOnce is how soon a replica without contact answers.
	atOnce = time.Second
)

var _ = Describe("A replica that the API server doesn't answer", func() {
	DescribeTable("isn't ready and refuses at once, until it is answered again", func(ctx SpecContext, cut, mend func(*proxy.Proxy)) {
		team := newTeam()
		enforce(ctx, team.quota().Hard("pods", "1"))
		namespace := team.namespace(ctx)
		between := restartBehind(ctx)
		Expect(review(ctx, namespace)).To(HaveField("Allowed", BeTrue()))

		inTime(lostAfter+2*time.Second, func() time.Duration {
			mend(between)
			Eventually(ctx, readiness).Should(Equal(http.StatusOK))
			began := time.Now()
			cut(between)
			Consistently(ctx, readiness).WithTimeout(lostAfter - 2*time.Second).Should(Equal(http.StatusOK))
			Eventually(ctx, readiness).Should(Equal(http.StatusInternalServerError))
			return time.Since(began)
		})
		for range 3 {
			inTime(atOnce, func() time.Duration {
				asked := time.Now()
				answer := review(ctx, namespace)
				took := time.Since(asked)
				Expect(answer.Allowed).To(BeFalse())
				Expect(answer.Result).To(HaveField("Code", BeEquivalentTo(http.StatusServiceUnavailable)))
				Expect(answer.Result.Message).To(MatchRegexp(
					`^the replica \S+ has had no answer from the API server for \d+s, so it can't tell what quotas allow: try again in a moment$`))
				return took
			})
		}

		mend(between)
		Eventually(ctx, readiness).Should(Equal(http.StatusOK))
		Expect(review(ctx, namespace)).To(HaveField("Allowed", BeTrue()))
	},
		Entry("because nothing arrives any more", (*proxy.Proxy).Freeze, (*proxy.Proxy).Thaw),
		Entry("because connections break", (*proxy.Proxy).Sever, (*proxy.Proxy).Thaw),
	)

	It("answers a request that waits as soon as contact is lost", func(ctx SpecContext) {
		team := newTeam()
		enforce(ctx, team.quota().Hard("pods", "0"))
		namespace := team.namespace(ctx)
		between := restartBehind(ctx)
		Expect(review(ctx, namespace).Result).To(HaveField("Code", BeEquivalentTo(http.StatusForbidden)))

		inTime(lostAfter+atOnce, func() time.Duration {
			between.Thaw()
			Eventually(ctx, readiness).Should(Equal(http.StatusOK))
			between.Freeze()
			// A refusal needs a live read.
			began := time.Now()
			Expect(review(ctx, namespace).Result).To(HaveField("Code", BeEquivalentTo(http.StatusServiceUnavailable)))
			return time.Since(began)
		})
	})

	DescribeTable("admits a request that nothing refuses long before contact is lost", func(ctx SpecContext, epoch uint64) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "0").Enforcement(quotav1.EnforcementAudit, ""))
		namespace := team.namespace(ctx)
		between := restartBehind(ctx)
		ask := func(name string, epoch uint64) *admissionv1.AdmissionResponse {
			question := webhookconfig.Question{Witness: webhookconfig.WitnessNone, Epoch: epoch, Specs: webhookconfig.QuotaSet(nil), Admits: true}
			return post(ctx, "/admit-objects/"+question.Path(), podReview(namespace, name, false))
		}
		attempt := 0
		inTime(2*time.Second, func() time.Duration {
			between.Thaw()
			attempt++
			name := fmt.Sprintf("p%d", attempt)
			Eventually(func() map[string]string { return ask(name, 0).AuditAnnotations }).Should(
				HaveKeyWithValue("would-refuse", ContainSubstring("exceeded quota: "+quota.Name)))
			between.Freeze()
			began := time.Now()
			answer := ask(name+"-frozen", epoch)
			took := time.Since(began)
			AddReportEntry("admitted after", took.Round(time.Millisecond))
			Expect(answer.Allowed).To(BeTrue())
			Expect(answer.Warnings).To(ConsistOf(And(HavePrefix("not checked against "), ContainSubstring("and admitted: "))))
			return took
		})
	},
		Entry("because its charge can't be written", uint64(0)),
		Entry("because quotas changed that the replica hasn't seen and can't read", uint64(math.MaxInt64)),
	)
})

// restartBehind puts an operator in the place of the one that runs that reaches the
// API server through a proxy. After the spec, one takes its place that doesn't.
func restartBehind(ctx context.Context) *proxy.Proxy {
	GinkgoHelper()
	between, err := proxy.Start(cluster.Config(), 1)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(between.Close)
	kubeconfig, err := cluster.WriteKubeconfig(unique("proxied"), between.Config())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(restartWith, settings)
	proxied := settings
	proxied.Kubeconfig = kubeconfig
	restartWith(ctx, proxied)
	return between
}

func restartWith(ctx context.Context, options harness.OperatorOptions) {
	GinkgoHelper()
	settings = options
	restart(ctx)
}

// readiness returns the status of the operator's check of readiness.
func readiness(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, running.HealthURL+"/readyz", http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// review asks the operator, past the API server, whether a pod may be created, as a
// dry run.
func review(ctx SpecContext, namespace string) *admissionv1.AdmissionResponse {
	GinkgoHelper()
	return post(ctx, "/admit-objects", podReview(namespace, "p1", true))
}

// podReview is what the API server asks about a new pod.
func podReview(namespace, name string, dryRun bool) string {
	GinkgoHelper()
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID(name), Operation: admissionv1.Create, Namespace: namespace,
			Kind:     metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Object: runtime.RawExtension{
				Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"uid":"uid-of-%s"},"spec":{}}`, name, name),
			},
			DryRun: ptr.To(dryRun),
		},
	})
	Expect(err).NotTo(HaveOccurred())
	return string(body)
}
