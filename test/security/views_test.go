// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	views = "localresourcequotas"
	// everyone may do what a user without any role may.
	everyone = "everyone"
)

// readers are the roles that may read views.
func readers() []string { return []string{"view", "edit", "admin", projectOwner} }

func viewIn(namespace, name string) *quotav1.LocalResourceQuota {
	return &quotav1.LocalResourceQuota{ObjectMeta: builders.Meta(namespace, name)}
}

// writes are all ways to write a view, by the verb that they need.
func writes() map[string]func(context.Context, client.Client, *quotav1.LocalResourceQuota) error {
	return map[string]func(context.Context, client.Client, *quotav1.LocalResourceQuota) error{
		"create": func(ctx context.Context, by client.Client, view *quotav1.LocalResourceQuota) error {
			return by.Create(ctx, viewIn(view.Namespace, "forged"))
		},
		"update": func(ctx context.Context, by client.Client, view *quotav1.LocalResourceQuota) error {
			return by.Update(ctx, view)
		},
		"patch": func(ctx context.Context, by client.Client, view *quotav1.LocalResourceQuota) error {
			return by.Patch(ctx, view, suite.Merge(`{"status":{"summary":"all yours"}}`))
		},
		"delete": func(ctx context.Context, by client.Client, view *quotav1.LocalResourceQuota) error {
			return by.Delete(ctx, view)
		},
		"deletecollection": func(ctx context.Context, by client.Client, view *quotav1.LocalResourceQuota) error {
			return by.DeleteAllOf(ctx, view, client.InNamespace(view.Namespace))
		},
	}
}

// wantNothingRead fails if the user gets, lists or watches views in a namespace;
// in all of them, if it is empty.
func wantNothingRead(ctx context.Context, by client.WithWatch, namespace string) {
	GinkgoHelper()
	Expect(by.List(ctx, &quotav1.LocalResourceQuotaList{}, client.InNamespace(namespace))).To(suite.BeForbidden("list", views))
	_, err := by.Watch(ctx, &quotav1.LocalResourceQuotaList{}, client.InNamespace(namespace))
	Expect(err).To(suite.BeForbidden("watch", views))
	if namespace != "" {
		view := viewIn(namespace, "viewed")
		Expect(by.Get(ctx, client.ObjectKeyFromObject(view), view)).To(suite.BeForbidden("get", views))
	}
}

var _ = Describe("Local views", Label("owners"), Ordered, func() {
	const own, other = "viewed-shop", "viewed-books"
	users := map[string]client.WithWatch{}

	BeforeAll(func(ctx SpecContext) {
		run(ctx)
		for _, name := range []string{own, other} {
			mustCreate(ctx, builders.Namespace(name).Label("team", "viewed").Obj())
		}
		enforced(ctx, builders.Quota("viewed").Label("team", "viewed").Hard("pods", "100"))
		for _, name := range []string{own, other} {
			Eventually(ctx, func(ctx context.Context) error {
				return admin.Get(ctx, types.NamespacedName{Namespace: name, Name: "viewed"}, viewIn(name, "viewed"))
			}).Should(Succeed())
		}
		users[everyone] = as(everyone)
		for _, role := range readers() {
			users[role] = granted(ctx, own, role, role+"-of-viewed")
			Eventually(ctx, func(ctx context.Context) error {
				return users[role].List(ctx, &quotav1.LocalResourceQuotaList{}, client.InNamespace(own))
			}).Should(Succeed(), role)
		}
	})

	for _, role := range readers() {
		It("are read in the own namespace by "+role, func(ctx SpecContext) {
			by := users[role]
			current := viewIn(own, "viewed")
			Expect(by.Get(ctx, client.ObjectKeyFromObject(current), current)).To(Succeed())
			list := &quotav1.LocalResourceQuotaList{}
			Expect(by.List(ctx, list, client.InNamespace(own))).To(Succeed())
			Expect(list.Items).To(HaveLen(1))

			events, err := by.Watch(ctx, list, client.InNamespace(own), &client.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			defer events.Stop()
			before := current.Status.Total.Used.Pods().Value()
			Expect(admin.Create(ctx, builders.Pod(other, "of-"+role).Obj())).To(Succeed())
			Eventually(ctx, func(g Gomega) {
				var event watch.Event
				g.Expect(events.ResultChan()).To(Receive(&event))
				view, isView := event.Object.(*quotav1.LocalResourceQuota)
				g.Expect(isView).To(BeTrue(), "%v", event)
				g.Expect(view.Status.Total.Used.Pods().Value()).To(Equal(before + 1))
				g.Expect(view.Status.Used.Pods().Value()).To(BeZero())
			}).Should(Succeed())
		})

		It("are not read elsewhere by "+role, func(ctx SpecContext) {
			wantNothingRead(ctx, users[role], other)
			wantNothingRead(ctx, users[role], "")
		})
	}

	It("are not read by who has no role", func(ctx SpecContext) {
		wantNothingRead(ctx, users[everyone], own)
		wantNothingRead(ctx, users[everyone], "")
	})

	for _, role := range slices.Concat(readers(), []string{everyone}) {
		It("are all that "+role+" may read of a quota", func(ctx SpecContext) {
			key := types.NamespacedName{Name: "viewed"}
			Expect(users[role].Get(ctx, key, &quotav1.ClusterResourceQuota{})).To(suite.BeForbidden("get", "clusterresourcequotas"))
			Expect(users[role].List(ctx, &quotav1.ClusterResourceQuotaList{})).To(suite.BeForbidden("list", "clusterresourcequotas"))
			Expect(users[role].Get(ctx, key, &quotav1.QuotaLedger{})).To(suite.BeForbidden("get", "quotaledgers"))
			Expect(users[role].List(ctx, &quotav1.QuotaLedgerList{})).To(suite.BeForbidden("list", "quotaledgers"))
		})

		for verb, write := range writes() {
			It("are not written by "+role+": "+verb, func(ctx SpecContext) {
				current := viewIn(own, "viewed")
				Expect(admin.Get(ctx, client.ObjectKeyFromObject(current), current)).To(Succeed())
				Expect(write(ctx, users[role], current)).To(suite.BeForbidden(verb, views))
			})
		}
	}
})
