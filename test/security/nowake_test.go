// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// refuseWorkloads lets a pod of each kind of workload be refused, and then makes room. It returns the workloads.
func refuseWorkloads(ctx context.Context, name string) map[string]client.Object {
	GinkgoHelper()
	mustCreate(ctx, builders.Namespace(name).Label("team", name).Obj())
	waiting := workloads(name)
	for _, workload := range waiting {
		mustCreate(ctx, workload)
	}
	enforced(ctx, builders.Quota(name).Label("team", name).Hard("pods", "1"))
	for kind, workload := range waiting {
		Expect(createPodOf(ctx, workload)).To(suite.BeExceeded(name, "pods"), kind)
	}
	Eventually(ctx, suite.Quota(admin, name)).Should(HaveField("Status.Waiting", HaveField("Owners", BeEquivalentTo(len(waiting)))))
	room := &quotav1.ClusterResourceQuota{ObjectMeta: builders.Meta("", name)}
	Expect(admin.Patch(ctx, room, suite.Merge(`{"spec":{"quota":{"hard":{"pods":"9"}}}}`))).To(Succeed())
	return waiting
}

// createPodOf creates a pod that the workload controls.
func createPodOf(ctx context.Context, workload client.Object) error {
	pod := builders.Pod(workload.GetNamespace(), "of-"+workload.GetName()).Obj()
	if err := controllerutil.SetControllerReference(workload, pod, admin.Scheme()); err != nil {
		return err
	}
	return admin.Create(ctx, pod)
}

// room returns what each workload's annotation says, without those that have none.
func room(workloads map[string]client.Object) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var times []string
		for _, workload := range workloads {
			if err := admin.Get(ctx, client.ObjectKeyFromObject(workload), workload); err != nil {
				return nil, err
			}
			if at, woken := workload.GetAnnotations()[quotav1.RoomAnnotation]; woken {
				times = append(times, at)
			}
		}
		return times, nil
	}
}

var _ = Describe("The operator that doesn't wake workloads", Label("rights"), Ordered, func() {
	const name = "unwoken"
	var began time.Time

	BeforeAll(func(ctx SpecContext) {
		end(ctx)
		suite.InstallFrom(ctx, cluster, "config/no-wake")
		for _, command := range []string{"clusterrolebinding shared-quota-wake-rolebinding", "clusterrole shared-quota-wake-role"} {
			suite.Kubectl(ctx, cluster, append([]string{"delete", "--ignore-not-found"}, strings.Fields(command)...)...)
		}
		began = time.Now()
		runAsInstalled(ctx)
		DeferCleanup(end)
	})

	It("leaves those that wait alone", func(ctx SpecContext) {
		waiting := refuseWorkloads(ctx, name)
		Consistently(ctx, room(waiting)).WithTimeout(3 * time.Second).Should(BeEmpty())
	})

	It("may not change them", func(ctx SpecContext) {
		Expect(may(ctx, authorizationv1.ResourceAttributes{
			Verb: "patch", Group: "apps", Resource: "replicasets", Subresource: "status", Namespace: name, Name: "replicaset",
		})).To(BeFalse())
	})

	It("is forbidden nothing that it asks for", func() { Expect(audit.Forbidden(began)).To(BeEmpty()) })
})
