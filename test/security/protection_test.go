// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// protected is the name of a quota, and of its namespace.
const protected = "protected"

// beRefused matches the answer to whoever isn't the operator.
func beRefused(kind, name string) gomegatypes.GomegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(
		"%[1]s %[2]s is written by the shared quota operator alone; edit the ClusterResourceQuota %[2]s instead", kind, name)))
}

// team makes a quota for a namespace of the same name, and returns once both are
// there, the ledger and the view.
func team(ctx context.Context, name, pods string) *quotav1.ClusterResourceQuota {
	GinkgoHelper()
	mustCreate(ctx, builders.Namespace(name).Label("team", name).Obj())
	quota := builders.Quota(name).Label("team", name).Hard("pods", pods)
	enforced(ctx, quota)
	for _, object := range []client.Object{ledgerOf(name), viewOf(name)} {
		Eventually(ctx, func(ctx context.Context) error { return admin.Get(ctx, client.ObjectKeyFromObject(object), object) }).Should(Succeed())
	}
	return quota.Obj()
}

func ledgerOf(name string) *quotav1.QuotaLedger {
	return &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func viewOf(name string) *quotav1.LocalResourceQuota {
	return &quotav1.LocalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}}
}

// powerful returns the client of a user whom RBAC lets do everything.
func powerful(user string) client.Client { return as(user, "system:masters") }

func wantNotCreated(ctx context.Context, by client.Client) {
	GinkgoHelper()
	Expect(by.Create(ctx, ledgerOf("forged"))).To(beRefused("QuotaLedger", "forged"))
	forged := viewOf(protected)
	forged.Name = "forged"
	Expect(by.Create(ctx, forged)).To(beRefused("LocalResourceQuota", "forged"))
}

// harms are all ways to write an object that is there.
func harms() map[string]func(context.Context, client.Client, client.Object) error {
	patch := suite.Merge(`{"metadata":{"labels":{"mine":"yes"}},"entries":{"used":{"pods":"9"}}}`)
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

var _ = Describe("Ledgers and local views", Label("protection"), Ordered, func() {
	const name = protected
	// vera may do everything with the operator's types, by RBAC.
	var vera client.Client

	BeforeAll(func(ctx SpecContext) {
		run(ctx)
		suite.Kubectl(ctx, cluster, "create", "clusterrole", "owner", "--verb=*", "--resource=*.quota.sharedquota.dev")
		suite.Kubectl(ctx, cluster, "create", "clusterrolebinding", "owner", "--clusterrole=owner", "--user=vera")
		config, err := cluster.User("vera")
		Expect(err).NotTo(HaveOccurred())
		vera = suite.Client(config, suite.Deadline)
		team(ctx, name, "2")
		// A policy takes effect a moment after it was stored.
		Eventually(ctx, func(ctx context.Context) error {
			return admin.Patch(ctx, ledgerOf(name), suite.Merge(`{"metadata":{"labels":{"a":"b"}}}`), client.DryRunAll)
		}).Should(beRefused("QuotaLedger", name))
	})

	for user, by := range map[string]func() client.Client{
		"a member of system:masters":            func() client.Client { return admin },
		"an impersonated one":                   func() client.Client { return powerful("mallory") },
		"somebody with every right by RBAC":     func() client.Client { return vera },
		"another ServiceAccount of that name":   func() client.Client { return powerful("system:serviceaccount:default:shared-quota-manager") },
		"another ServiceAccount beside it":      func() client.Client { return powerful("system:serviceaccount:shared-quota-system:default") },
		"another controller of Kubernetes' own": func() client.Client { return powerful("system:serviceaccount:kube-system:job-controller") },
	} {
		It("are not created by "+user, func(ctx SpecContext) {
			wantNotCreated(ctx, by())
		})
		for verb, harm := range harms() {
			It(fmt.Sprintf("are not touched by %s: %s", user, verb), func(ctx SpecContext) {
				Expect(harm(ctx, by(), viewOf(name))).To(beRefused("LocalResourceQuota", name))
				Expect(harm(ctx, by(), ledgerOf(name))).To(suite.BeProtected()) // deletecollection may meet another one first
			})
		}
		It("have no status of their own that could be written by "+user, func(ctx SpecContext) {
			for _, object := range []client.Object{ledgerOf(name), viewOf(name)} {
				Expect(by().Status().Patch(ctx, object, suite.Merge(`{"status":{}}`))).To(Satisfy(apierrors.IsNotFound))
			}
		})
	}

	for _, controller := range []string{"generic-garbage-collector", "namespace-controller"} {
		It("are neither created nor changed by the "+controller, func(ctx SpecContext) {
			by := powerful("system:serviceaccount:kube-system:" + controller)
			wantNotCreated(ctx, by)
			Expect(by.Patch(ctx, ledgerOf(name), suite.Merge(`{"entries":{"used":{"pods":"9"}}}`))).To(beRefused("QuotaLedger", name))
			Expect(by.Patch(ctx, ledgerOf(name), suite.Merge(`{"entries":null}`))).To(beRefused("QuotaLedger", name))
			Expect(by.Patch(ctx, viewOf(name), suite.Merge(`{"status":{"summary":"pods: 9/2"}}`))).To(beRefused("LocalResourceQuota", name))
		})
	}

	It("are not deleted by the namespace controller, where they are ledgers", func(ctx SpecContext) {
		by := powerful("system:serviceaccount:kube-system:namespace-controller")
		Expect(by.Delete(ctx, ledgerOf(name))).To(beRefused("QuotaLedger", name))
	})

	It("are written by the operator, who counts and limits", func(ctx SpecContext) {
		for i := range 2 {
			Expect(admin.Create(ctx, builders.Pod(name, fmt.Sprintf("p%d", i)).Obj())).To(Succeed())
		}
		Expect(admin.Create(ctx, builders.Pod(name, "p2").Obj())).To(suite.BeExceeded(name, "pods"))
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
		for _, replica := range replicas.Running {
			Expect(suite.LogOf(replica.Process)).NotTo(ContainSubstring("Server rejected event"))
		}
	})

	It("can be uninstalled with everything else, while all of it is in use", func(ctx SpecContext) {
		Expect(admin.Create(ctx, builders.ConfigMap(corev1.NamespaceDefault, "bystander"))).To(Succeed())
		suite.Kubectl(ctx, cluster, "delete", "-k", "config/default", "--timeout=90s")
		replicas.EndWithoutRights()
		end(ctx)
		for _, kind := range []string{"ClusterResourceQuota", "QuotaLedger", "LocalResourceQuota"} {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(quotav1.GroupVersion.WithKind(kind + "List"))
			Eventually(ctx, func(ctx context.Context) error { return admin.List(ctx, list) }).
				Should(Or(Satisfy(meta.IsNoMatchError), Satisfy(apierrors.IsNotFound)), kind)
		}
	})
})

var _ = Describe("What the operator keeps, while no replica runs,", Label("protection"), Ordered, func() {
	teams := map[string]*quotav1.ClusterResourceQuota{}

	BeforeAll(func(ctx SpecContext) {
		run(ctx)
		for _, name := range []string{"leaving", "ending", "closing", "parting", "single"} {
			teams[name] = team(ctx, name, "1")
		}
		end(ctx)
	})

	It("goes with a namespace", func(ctx SpecContext) {
		namespace := builders.Namespace("leaving").Obj()
		Expect(admin.Delete(ctx, namespace)).To(Succeed())
		Eventually(ctx, suite.Gone(admin, namespace)).Should(BeTrue())
	})

	for name, policy := range map[string]metav1.DeletionPropagation{
		"ending": metav1.DeletePropagationBackground, "closing": metav1.DeletePropagationForeground,
	} {
		It(fmt.Sprintf("goes with a quota that is deleted in the %s", policy), func(ctx SpecContext) {
			Expect(admin.Delete(ctx, teams[name], client.PropagationPolicy(policy))).To(Succeed())
			for _, object := range []client.Object{teams[name], ledgerOf(name), viewOf(name)} {
				Eventually(ctx, suite.Gone(admin, object)).Should(BeTrue())
			}
		})
	}

	It("stays without an owner, as it is, when a quota is deleted as an orphan's parent", func(ctx SpecContext) {
		quota := teams["parting"]
		Expect(admin.Delete(ctx, quota, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Eventually(ctx, suite.Gone(admin, quota)).Should(BeTrue())
		for _, object := range []client.Object{ledgerOf("parting"), viewOf("parting")} {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			Expect(object.GetOwnerReferences()).To(BeEmpty())
		}
	})

	It("is deleted by a controller manager that has one user for all controllers, too", func(ctx SpecContext) {
		all := powerful("system:kube-controller-manager")
		Expect(all.Delete(ctx, viewOf("single"))).To(Succeed())
		Expect(all.Delete(ctx, ledgerOf("single"))).To(Succeed())
	})
})
