// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// saved are the kinds that a backup tool saves, in the order in which it creates them anew. That of ledgers is the worst.
func saved() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Pod"},
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
		{Group: "quota.sharedquota.dev", Version: "v1", Kind: "QuotaLedger"},
		{Group: "quota.sharedquota.dev", Version: "v1", Kind: "ClusterResourceQuota"},
		{Group: "quota.sharedquota.dev", Version: "v1", Kind: "LocalResourceQuota"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	}
}

// backup is what a tool has saved.
type backup []unstructured.Unstructured

func save(ctx context.Context, api client.Client) backup {
	GinkgoHelper()
	var all backup
	for _, kind := range saved() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		Expect(api.List(ctx, list)).To(Succeed())
		for _, object := range list.Items {
			if space := object.GetNamespace(); !strings.HasPrefix(space, "kube-") && space != "default" {
				all = append(all, object)
			}
		}
	}
	return all
}

// fromBackup is the message of each condition that was restored, so that it isn't taken for what the operator says.
const fromBackup = "restored from a backup"

// restore creates everything anew, with its status. What is there already stays.
func (b backup) restore(ctx context.Context, api client.Client) {
	GinkgoHelper()
	for i := range b {
		object := b[i].DeepCopy()
		object.SetUID("")
		object.SetResourceVersion("")
		object.SetGeneration(0)
		object.SetManagedFields(nil)
		conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
		Expect(err).NotTo(HaveOccurred())
		for _, condition := range conditions {
			condition.(map[string]any)["message"] = fromBackup
		}
		if len(conditions) > 0 {
			Expect(unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions")).To(Succeed())
		}
		status, found := object.Object["status"]
		err = api.Create(ctx, object)
		Expect(client.IgnoreAlreadyExists(err)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		if object.GetKind() == "ClusterResourceQuota" && found && err == nil {
			Eventually(ctx, func(ctx context.Context) error {
				if err := api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
					return err
				}
				object.Object["status"] = status
				return api.Status().Update(ctx, object)
			}).Should(Succeed())
		}
	}
}

// age makes so many revisions in etcd.
func (r *restored) age(ctx context.Context, revisions int) {
	GinkgoHelper()
	direct, err := clientv3.New(clientv3.Config{Endpoints: []string{r.cluster.EtcdURL()}})
	Expect(err).NotTo(HaveOccurred())
	defer direct.Close()
	var writing errgroup.Group
	writing.SetLimit(50)
	for range revisions {
		writing.Go(func() error { _, err := direct.Put(ctx, "/filler", ""); return err })
	}
	Expect(writing.Wait()).To(Succeed())
}

var _ = Describe("A backup of all objects, created anew in another cluster", Ordered, ContinueOnFailure, func() {
	var saved backup
	BeforeAll(func(ctx SpecContext) {
		r := newRestored(ctx)
		r.age(ctx, 2000)
		r.run(ctx)
		r.createTeams(ctx)
		for i := range 6 {
			suite.Create(ctx, r.api, builders.Pod("red-a", fmt.Sprintf("saved-%d", i)).Obj())
		}
		Eventually(ctx, suite.Used(r.api, "red", "pods")).Should(Equal("6"))
		saved = save(ctx, r.api)
		r.stop()
	}, NodeTimeout(buildTimeout))

	for _, test := range []struct {
		name      string
		revisions int
		before    bool
	}{
		{name: "with lower resourceVersions, before the operator"},
		{name: "with higher resourceVersions, after the operator", revisions: 20000, before: true},
	} {
		It("is usable and exact in time "+test.name, func(ctx SpecContext) {
			r := newRestored(ctx)
			r.age(ctx, test.revisions)
			if test.before {
				r.run(ctx)
			}
			began := time.Now()
			r.unprotect(ctx)
			saved.restore(ctx, r.api)
			if !test.before {
				began = time.Now()
				r.run(ctx)
			}
			r.judge(ctx)
			r.waitUntilCorrected(ctx)
			left := func() time.Duration { return time.Until(began.Add(wellWithin)) }
			Eventually(ctx, func(ctx context.Context) error { return r.truth.Agrees(ctx, r.api) }).WithTimeout(left()).Should(Succeed())
			AddReportEntry("all is exact after", time.Since(began).Round(100*time.Millisecond))
			r.wantFull(ctx, map[string]int{"red": 6, "blue": 0})
			Expect(left()).To(BeNumerically(">", 0))
			r.wantNothingOver(ctx)
			r.stop()
		}, NodeTimeout(5*time.Minute))
	}
})

// waitUntilCorrected waits until the operator has said of each quota what it found, in place of what the backup says.
func (r *restored) waitUntilCorrected(ctx context.Context) {
	GinkgoHelper()
	for _, team := range []string{"red", "blue"} {
		quota := &quotav1.ClusterResourceQuota{}
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(r.api.Get(ctx, client.ObjectKey{Name: team}, quota)).To(Succeed())
			g.Expect(quota.Status.Conditions).NotTo(ContainElement(HaveField("Message", fromBackup)))
		}).WithTimeout(wellWithin).Should(Succeed(), "quota %s", team)
	}
}

// unprotect takes the policy away by which only the operator may write ledgers, if it is there.
func (r *restored) unprotect(ctx context.Context) {
	GinkgoHelper()
	binding := &unstructured.Unstructured{}
	binding.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding",
	})
	binding.SetName("shared-quota-protection")
	Expect(client.IgnoreNotFound(r.api.Delete(ctx, binding))).To(Succeed())
	ledger := &quotav1.QuotaLedger{ObjectMeta: builders.Meta("", "probe")}
	Eventually(ctx, func(ctx context.Context) error {
		err := r.api.Create(ctx, ledger.DeepCopy(), client.DryRunAll)
		if apierrors.IsForbidden(err) {
			return err
		}
		return nil
	}).Should(Succeed())
}
