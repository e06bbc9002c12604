// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package protection

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// beRefused matches the answer to whoever isn't the operator.
func beRefused(kind, name string) gomegatypes.GomegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(
		"%[1]s %[2]s is written by the shared quota operator alone; edit the ClusterResourceQuota %[2]s instead", kind, name)))
}

// team makes a quota for a namespace of the same name, and returns once both are
// there, the ledger and the view.
func team(ctx context.Context, name, pods string) *quotav1.ClusterResourceQuota {
	GinkgoHelper()
	Expect(admin.Create(ctx, builders.Namespace(name).Label("team", name).Obj())).To(Succeed())
	quota := builders.Quota(name).Label("team", name).Hard("pods", pods).Obj()
	// The API server trusts an operator that was started again a moment later.
	Eventually(ctx, func(ctx context.Context) error { return admin.Create(ctx, quota) }).Should(Succeed())
	suite.WaitUntilEnforced(ctx, admin, name)
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		g.Expect(admin.Get(ctx, types.NamespacedName{Name: name}, &quotav1.QuotaLedger{})).To(Succeed())
		g.Expect(admin.Get(ctx, types.NamespacedName{Namespace: name, Name: name}, &quotav1.LocalResourceQuota{})).To(Succeed())
	}).Should(Succeed())
	return quota
}

// leave stops the operator until the spec has ended, and takes its webhooks back:
// what nobody answers is refused, a finalizer's removal included.
func leave(ctx context.Context) {
	GinkgoHelper()
	Expect(running.Stop()).To(Succeed())
	DeferCleanup(start)
	Expect(admin.Delete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "shared-quota"},
	})).To(Succeed())
}

func ledgerOf(name string) *quotav1.QuotaLedger {
	return &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func viewOf(name string) *quotav1.LocalResourceQuota {
	return &quotav1.LocalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}}
}

func gone(object client.Object) func(ctx context.Context) bool {
	return func(ctx context.Context) bool {
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(object), object))
	}
}

func merge(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }

// as returns the client of a user whom RBAC lets do everything.
func as(user string) client.Client {
	GinkgoHelper()
	return suite.Client(cluster.As(user, "system:masters"), suite.Deadline)
}

func wantNotCreated(ctx context.Context, by client.Client) {
	GinkgoHelper()
	Expect(by.Create(ctx, ledgerOf("forged"))).To(beRefused("QuotaLedger", "forged"))
	forged := viewOf("shop")
	forged.Name = "forged"
	Expect(by.Create(ctx, forged)).To(beRefused("LocalResourceQuota", "forged"))
}

// harms are all ways to write an object that is there.
func harms() map[string]func(context.Context, client.Client, client.Object) error {
	patch := merge(`{"metadata":{"labels":{"mine":"yes"}},"entries":{"used":{"pods":"9"}}}`)
	return map[string]func(context.Context, client.Client, client.Object) error{
		"update": func(ctx context.Context, by client.Client, object client.Object) error {
			return retry.RetryOnConflict(retry.DefaultRetry, func() error { // with the operator, who writes it, too
				Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
				object.SetLabels(map[string]string{"mine": "yes"})
				return by.Update(ctx, object)
			})
		},
		"patch": func(ctx context.Context, by client.Client, object client.Object) error {
			return by.Patch(ctx, object, patch)
		},
		"delete": func(ctx context.Context, by client.Client, object client.Object) error { return by.Delete(ctx, object) },
		"deletecollection": func(ctx context.Context, by client.Client, object client.Object) error {
			return by.DeleteAllOf(ctx, object, client.InNamespace(object.GetNamespace()))
		},
	}
}

var _ = Describe("Ledgers and local views", Ordered, func() {
	const name = "shop"

	BeforeAll(func(ctx SpecContext) {
		team(ctx, name, "2")
		// A policy takes effect a moment after it was stored.
		Eventually(ctx, func(ctx context.Context) error {
			return admin.Patch(ctx, ledgerOf(name), merge(`{"metadata":{"labels":{"a":"b"}}}`), client.DryRunAll)
		}).Should(beRefused("QuotaLedger", name))
	})

	for user, by := range map[string]func() client.Client{
		"a member of system:masters":            func() client.Client { return admin },
		"an impersonated one":                   func() client.Client { return as("mallory") },
		"somebody with every right by RBAC":     func() client.Client { return owner },
		"another ServiceAccount of that name":   func() client.Client { return as("system:serviceaccount:default:shared-quota-manager") },
		"another ServiceAccount beside it":      func() client.Client { return as("system:serviceaccount:shared-quota-system:default") },
		"another controller of Kubernetes' own": func() client.Client { return as("system:serviceaccount:kube-system:job-controller") },
	} {
		It("are not created by "+user, func(ctx SpecContext) {
			wantNotCreated(ctx, by())
		})
		for verb, harm := range harms() {
			It(fmt.Sprintf("are not touched by %s: %s", user, verb), func(ctx SpecContext) {
				Expect(harm(ctx, by(), viewOf(name))).To(beRefused("LocalResourceQuota", name))
				Expect(harm(ctx, by(), ledgerOf(name))).To(beRefused("QuotaLedger", name))
			})
		}
		It("have no status of their own that could be written by "+user, func(ctx SpecContext) {
			for _, object := range []client.Object{ledgerOf(name), viewOf(name)} {
				Expect(by().Status().Patch(ctx, object, merge(`{"status":{}}`))).To(Satisfy(apierrors.IsNotFound))
			}
		})
	}

	for _, controller := range []string{"generic-garbage-collector", "namespace-controller"} {
		It("are neither created nor changed by the "+controller, func(ctx SpecContext) {
			by := as("system:serviceaccount:kube-system:" + controller)
			wantNotCreated(ctx, by)
			Expect(by.Patch(ctx, ledgerOf(name), merge(`{"entries":{"used":{"pods":"9"}}}`))).To(beRefused("QuotaLedger", name))
			Expect(by.Patch(ctx, ledgerOf(name), merge(`{"entries":null}`))).To(beRefused("QuotaLedger", name))
			Expect(by.Patch(ctx, viewOf(name), merge(`{"status":{"summary":"pods: 9/2"}}`))).To(beRefused("LocalResourceQuota", name))
		})
	}

	It("are not deleted by the namespace controller, where they are ledgers", func(ctx SpecContext) {
		by := as("system:serviceaccount:kube-system:namespace-controller")
		Expect(by.Delete(ctx, ledgerOf(name))).To(beRefused("QuotaLedger", name))
	})

	It("are written by the operator, who counts and limits", func(ctx SpecContext) {
		for i := range 2 {
			Expect(admin.Create(ctx, builders.Pod(name, fmt.Sprintf("p%d", i)).Obj())).To(Succeed())
		}
		Expect(admin.Create(ctx, builders.Pod(name, "p2").Obj())).To(MatchError(ContainSubstring("exceeded quota: shop, requested: pods=1")))
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			ledger, view := ledgerOf(name), viewOf(name)
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(ledger), ledger)).To(Succeed())
			g.Expect(ledger.Entries.Used.Pods().Value()).To(BeEquivalentTo(2))
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(view), view)).To(Succeed())
			g.Expect(view.Status.Total.Used.Pods().Value()).To(BeEquivalentTo(2))
		}).Should(Succeed())
	})

	It("are told of by the operator in events, with no more rights than it has", func(ctx SpecContext) {
		reasons := func(namespace, kind string) func(ctx context.Context) ([]string, error) {
			return func(ctx context.Context) (found []string, err error) {
				list := &eventsv1.EventList{}
				err = admin.List(ctx, list, client.InNamespace(namespace))
				for i := range list.Items {
					if event := &list.Items[i]; event.Regarding.Kind == kind && event.Regarding.Name == name {
						found = append(found, event.Reason)
					}
				}
				return found, err
			}
		}
		want := ContainElements(quotav1.ReasonLimitReached, quotav1.ReasonQuotaExceeded)
		Eventually(ctx, reasons(name, "LocalResourceQuota")).Should(want)
		Eventually(ctx, reasons(corev1.NamespaceDefault, "ClusterResourceQuota")).Should(want)
		Expect(suite.LogOf(running.Process)).NotTo(ContainSubstring("Server rejected event"))
	})

	It("go with a namespace", func(ctx SpecContext) {
		team(ctx, "leaving", "1")
		leave(ctx) // so that it is the namespace controller who deletes the view
		namespace := builders.Namespace("leaving").Obj()
		Expect(admin.Delete(ctx, namespace)).To(Succeed())
		Eventually(ctx, gone(namespace)).Should(BeTrue())
	})

	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		It(fmt.Sprintf("go with a quota that is deleted in the %s while no operator runs", policy), func(ctx SpecContext) {
			name := map[metav1.DeletionPropagation]string{"Background": "ending", "Foreground": "closing"}[policy]
			quota := team(ctx, name, "1")
			leave(ctx)
			Expect(admin.Delete(ctx, quota, client.PropagationPolicy(policy))).To(Succeed())
			for _, object := range []client.Object{quota, ledgerOf(name), viewOf(name)} {
				Eventually(ctx, gone(object)).Should(BeTrue())
			}
		})
	}

	It("stay without an owner, as they are, when a quota is deleted as an orphan's parent", func(ctx SpecContext) {
		quota := team(ctx, "parting", "1")
		leave(ctx)
		Expect(admin.Delete(ctx, quota, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Eventually(ctx, gone(quota)).Should(BeTrue())
		for _, object := range []client.Object{ledgerOf("parting"), viewOf("parting")} {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			Expect(object.GetOwnerReferences()).To(BeEmpty())
		}
	})

	It("are made by a controller manager that has one user for all controllers, too", func(ctx SpecContext) {
		team(ctx, "plain", "1")
		leave(ctx)
		all := as("system:kube-controller-manager")
		Expect(all.Delete(ctx, viewOf("plain"))).To(Succeed())
		Expect(all.Delete(ctx, ledgerOf("plain"))).To(Succeed())
	})

	It("can be uninstalled with everything else, while all of it is in use", func(ctx SpecContext) {
		Expect(admin.Create(ctx, builders.ConfigMap(corev1.NamespaceDefault, "bystander"))).To(Succeed())
		suite.Kubectl(ctx, cluster, "delete", "-k", "config/default", "--timeout=90s")
		for _, kind := range []string{"ClusterResourceQuota", "QuotaLedger", "LocalResourceQuota"} {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(quotav1.GroupVersion.WithKind(kind + "List"))
			Eventually(ctx, func(ctx context.Context) error { return admin.List(ctx, list) }).
				Should(Or(Satisfy(meta.IsNoMatchError), Satisfy(apierrors.IsNotFound)), kind)
		}
	})
})
