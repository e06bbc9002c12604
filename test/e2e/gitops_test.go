// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/gitops"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// standing is what Flux waits for and Argo CD shows.
type standing struct {
	flux status.Status
	argo string
}

var (
	inProgress = standing{status.InProgressStatus, "Progressing"}
	inForce    = standing{status.CurrentStatus, "Healthy"}
	failed     = standing{status.FailedStatus, "Degraded"}
	toBeMended = standing{status.InProgressStatus, "Degraded"}
)

// standingOf returns how an object stands, and the messages of both.
func standingOf(ctx context.Context, object *unstructured.Unstructured) (current standing, flux, argo string) {
	GinkgoHelper()
	var err error
	current.flux, flux, err = gitops.Flux(object)
	Expect(err).NotTo(HaveOccurred())
	dir := filepath.Join(suite.RepositoryRoot(), "config", "argocd", object.GroupVersionKind().Group, object.GetKind())
	script, err := os.ReadFile(filepath.Join(dir, "health.lua"))
	Expect(err).NotTo(HaveOccurred())
	health, err := gitops.ArgoCD(ctx, string(script), object)
	Expect(err).NotTo(HaveOccurred())
	current.argo = health.Status
	return current, flux, health.Message
}

func unread(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(quotav1.GroupVersion.WithKind(kind))
	return object
}

// stands polls how a quota stands.
func stands(quota client.Object) func(context.Context) standing {
	return func(ctx context.Context) standing {
		object := unread("ClusterResourceQuota")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), object)).To(Succeed())
		is, _, _ := standingOf(ctx, object)
		return is
	}
}

// follow looks at each version of a quota from the generation on that the cause returns, until one is in force. Each must
// be in progress, or in force exactly if its conditions say so of its present spec.
func follow(ctx context.Context, name string, cause func() (generation int64)) {
	GinkgoHelper()
	watching, stop := context.WithTimeout(ctx, deadline)
	defer stop()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(quotav1.GroupVersion.WithKind("ClusterResourceQuotaList"))
	events, err := watcher.Watch(watching, list, client.MatchingFields{"metadata.name": name})
	Expect(err).NotTo(HaveOccurred())
	defer events.Stop()
	generation, seen := cause(), 0
	for event := range events.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		Expect(ok).To(BeTrue(), "%v", event)
		if object.GetGeneration() < generation {
			continue
		}
		is, flux, argo := standingOf(ctx, object)
		quota := &quotav1.ClusterResourceQuota{}
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, quota)).To(Succeed())
		met := quota.Status.ObservedGeneration == quota.Generation
		for kind, wanted := range map[string]string{
			quotav1.ConditionReady: "True", quotav1.ConditionEnforced: "True", quotav1.ConditionResourceUnavailable: "False",
		} {
			matches, err := HavePrefix(wanted).Match(conditionOf(quota, kind))
			Expect(err).NotTo(HaveOccurred())
			met = met && matches
		}
		wanted := inProgress
		if met {
			wanted = inForce
		}
		seen++
		Expect(is).To(Equal(wanted), "version %d of %s: Flux: %s; Argo CD: %s; %v", seen, name, flux, argo, quota.Status.Conditions)
		if met {
			AddReportEntry("versions until it was in force", seen)
			return
		}
	}
	Fail("the watch has ended")
}

// limit changes one limit, and returns the generation since then.
func limit(ctx context.Context, quota *quotav1.ClusterResourceQuota, name corev1.ResourceName, amount string) int64 {
	GinkgoHelper()
	Expect(tryChange(ctx, quota, func(spec *quotav1.ClusterResourceQuotaSpec) {
		spec.Quota.Hard[name] = resource.MustParse(amount)
	})).To(Succeed())
	return quota.Generation
}

var _ = Describe("For Flux and Argo CD a quota", func() {
	It("is in progress until its present spec is counted and enforced", func(ctx SpecContext) {
		team := newTeam()
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.Pod(namespace, "p1").Obj())
		quota := team.quota().Hard("pods", "5").Obj()
		DeferCleanup(deleteIfThere, quota)
		follow(ctx, quota.Name, func() int64 {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(quota)
			Expect(err).NotTo(HaveOccurred())
			created := unread("ClusterResourceQuota")
			created.Object["metadata"], created.Object["spec"] = fields["metadata"], fields["spec"]
			Expect(api.Create(ctx, created)).To(Succeed())
			is, _, _ := standingOf(ctx, created)
			Expect(is).To(Equal(inProgress), "the answer of the API server: %v", created)
			return created.GetGeneration()
		})

		By("following an edit")
		follow(ctx, quota.Name, func() int64 { return limit(ctx, quota, "services", "2") })

		By("being exceeded, for which nobody needs to wait")
		follow(ctx, quota.Name, func() int64 { return limit(ctx, quota, "pods", "0") })
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			object := unread("ClusterResourceQuota")
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), object)).To(Succeed())
			is, _, message := standingOf(ctx, object)
			g.Expect(is).To(Equal(inForce))
			g.Expect(message).To(HavePrefix("pods: used 1, hard 0"))
		}).Should(Succeed())
	})

	It("is in progress before an operator sees it, and fails if its spec is invalid", func(ctx SpecContext) {
		team := newTeam()
		valid := team.quota().Hard("pods", "5").Obj()
		broken := builders.Quota(team.name+"-broken").Label(teamLabel, team.name).Hard("pods", "500m").Obj()
		away(running.Kill)
		mustDelete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "shared-quota"}})
		for _, quota := range []*quotav1.ClusterResourceQuota{valid, broken} {
			Eventually(ctx, func(ctx context.Context) error { return api.Create(ctx, quota) }).Should(Succeed())
			DeferCleanup(deleteIfThere, quota)
			Expect(stands(quota)(ctx)).To(Equal(inProgress))
			Expect(mustGetQuota(ctx, quota).Status.ObservedGeneration).To(Equal(int64(-1)))
		}

		By("starting the operator")
		start(ctx)
		Eventually(ctx, stands(valid)).Should(Equal(inForce))
		Eventually(ctx, stands(broken)).Should(Equal(failed))

		By("correcting the spec")
		follow(ctx, broken.Name, func() int64 { return limit(ctx, broken, "pods", "1") })
	})

	It("waits for what defines a resource, and fails if no quota is kept on one", func(ctx SpecContext) {
		team := newTeam()
		gadget := schema.GroupVersionKind{Group: team.name + ".example.com", Version: "v1", Kind: "Gadget"}
		early := createQuota(ctx, team.quota().Hard(corev1.ResourceName("count/gadgets."+gadget.Group), "1").Obj())
		Eventually(ctx, condition(early, quotav1.ConditionResourceUnavailable)).Should(HavePrefix("True NotServed"))
		Eventually(ctx, condition(early, quotav1.ConditionEnforced)).Should(HavePrefix("True"))
		Expect(stands(early)(ctx)).To(Equal(inProgress))
		installCustomResource(ctx, gadget, "gadgets")
		Eventually(ctx, stands(early)).Should(Equal(inForce))

		wrong := createQuota(ctx, builders.Quota(team.name+"-wrong").Label(teamLabel, team.name).Hard("pods", "5").Hard("count/nodes", "1").Obj())
		Eventually(ctx, stands(wrong)).Should(Equal(failed))
		change(ctx, wrong, func(spec *quotav1.ClusterResourceQuotaSpec) { delete(spec.Quota.Hard, "count/nodes") })
		Eventually(ctx, stands(wrong)).Should(Equal(inForce))
	})

	It("is in progress while its ledger can't be written, and Argo CD asks for help", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "5"))
		Expect(stands(quota)(ctx)).To(Equal(inForce))
		lift := forbidWritesOf(ctx, quota.Name, "the policy of a test forbids it")
		Expect(api.Create(ctx, builders.Pod(team.namespace(ctx), "p1").Obj())).NotTo(Succeed())
		Eventually(ctx, stands(quota)).Should(Equal(toBeMended))
		lift(ctx)
		Eventually(ctx, stands(quota)).Should(Equal(inForce))
	})

	It("is terminating as long as a finalizer keeps it", func(ctx SpecContext) {
		quota := enforce(ctx, newTeam().quota().Hard("pods", "5"))
		finalizers := func(finalizers string) {
			GinkgoHelper()
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))
			Expect(api.Patch(ctx, quota, patch)).To(Succeed())
		}
		finalizers(`["example.com/hold"]`)
		mustDelete(ctx, quota)
		object := unread("ClusterResourceQuota")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), object)).To(Succeed())
		flux, _, err := gitops.Flux(object)
		Expect(err).NotTo(HaveOccurred())
		Expect(flux).To(Equal(status.TerminatingStatus))
		finalizers("null")
		Eventually(ctx, func(ctx context.Context) error {
			return api.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		}).Should(MatchError(apierrors.IsNotFound, "not found"))
	})

	It("has views and a ledger that are current at once", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "0"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.Deployment(namespace, "web", 1))
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			local := unread("LocalResourceQuota")
			g.Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: quota.Name}, local)).To(Succeed())
			is, _, message := standingOf(ctx, local)
			g.Expect(is).To(Equal(inForce))
			g.Expect(message).To(HavePrefix("1 workload waits for room"))
		}).Should(Succeed())
		ledger := unread("QuotaLedger")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), ledger)).To(Succeed())
		is, _, err := gitops.Flux(ledger)
		Expect(err).NotTo(HaveOccurred())
		Expect(is).To(Equal(status.CurrentStatus))
	})
})
