// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// settle is how long a replica that could write its configuration again would take for it at most.
const settle = 3 * time.Second

// deployment is what runs of the operator's Deployment. It is used by one goroutine.
type deployment struct {
	*harness.Production

	replicas []*harness.Operator
	// args are further arguments, in place of what a kubelet mounts.
	args []string
	// address is that of the next replica.
	address int
}

// runDeployment runs as many replicas as the Deployment of a namespace says, and returns once the
// API server knows them.
func runDeployment(ctx context.Context, namespace string, args ...string) *deployment {
	GinkgoHelper()
	production, err := cluster.StartProduction(ctx, namespace, suite.Deployment, suite.WebhookService)
	Expect(err).NotTo(HaveOccurred())
	d := &deployment{Production: production, args: args}
	live := &appsv1.Deployment{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: suite.Deployment}, live)).To(Succeed())
	for range ptr.Deref(live.Spec.Replicas, 0) {
		d.add(ctx)
	}
	return d
}

// add starts a replica of the Deployment's image, and returns once the API server knows it.
func (d *deployment) add(ctx context.Context) {
	GinkgoHelper()
	release := binary
	if strings.HasSuffix(d.Image(), ":v2") {
		release = next
	}
	replica, err := d.Start(ctx, harness.ReplicaOptions{
		Binary: release, Address: harness.Address(d.address), Args: append(slices.Clone(d.args), "--shutdown-delay-duration=1s"),
	})
	Expect(err).NotTo(HaveOccurred())
	d.address = (d.address + 1) % harness.Addresses
	d.replicas = append(d.replicas, replica)
	Eventually(d.Ready).Should(ConsistOf(d.replicas))
}

// roll replaces the replicas one by one by those of the Deployment as it is now, and calls between while
// both run.
func (d *deployment) roll(ctx context.Context, between func()) {
	GinkgoHelper()
	Expect(d.Reload(ctx)).To(Succeed())
	for range len(d.replicas) {
		d.add(ctx)
		Expect(d.Stop(d.replicas[0])).To(Succeed())
		d.replicas = d.replicas[1:]
		between()
	}
}

// end ends all replicas, as the deletion of their pods does.
func (d *deployment) end() {
	GinkgoHelper()
	for _, replica := range d.replicas {
		Expect(d.Stop(replica)).To(Succeed())
	}
	d.replicas = nil
	d.Close()
}

// endWithoutRights is end after an uninstall. A leader that can't renew its lease may have ended by itself.
func (d *deployment) endWithoutRights() {
	GinkgoHelper()
	for _, replica := range d.replicas {
		if err := d.Stop(replica); err != nil {
			Expect(err).To(MatchError(harness.ErrExited))
		}
	}
	d.replicas = nil
	d.Close()
}

// configurationIsGone reports whether there is no webhook configuration of the operator.
func configurationIsGone(ctx context.Context) bool {
	err := admin.Get(ctx, client.ObjectKey{Name: "shared-quota"}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	return apierrors.IsNotFound(err)
}

// left returns what there is of the operator outside of the namespaces that it limits, but the ConfigMaps in its
// own namespace, whose names are random.
func left(ctx context.Context) []string {
	GinkgoHelper()
	const admission, rbac = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
	var names []string
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "Secret"},
		{Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "FlowSchema"},
		{Group: admission, Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		{Group: admission, Version: "v1", Kind: "ValidatingAdmissionPolicy"},
		{Group: admission, Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
		{Group: rbac, Version: "v1", Kind: "ClusterRole"}, {Group: rbac, Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: rbac, Version: "v1", Kind: "Role"}, {Group: rbac, Version: "v1", Kind: "RoleBinding"},
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		Expect(admin.List(ctx, list)).To(Succeed())
		for _, object := range list.Items {
			if strings.Contains(object.Name, "shared") || strings.Contains(object.Name, "project-owner") {
				names = append(names, kind.Kind+" "+object.Name)
			}
		}
	}
	return names
}

func balancer(namespace, name string) *corev1.Service {
	return builders.Service(namespace, name).Type(corev1.ServiceTypeLoadBalancer, 80).Obj()
}

// beFull matches the refusal of a load balancer by the first quota, of which two are used.
func beFull() gomegatypes.GomegaMatcher { return beUsed("2") }

// beOver is beFull with three that are used.
func beOver() gomegatypes.GomegaMatcher { return beUsed("3") }

func beUsed(used string) gomegatypes.GomegaMatcher {
	return MatchError(And(
		ContainSubstring("exceeded quota: payments, requested: services.loadbalancers=1, used: services.loadbalancers="+used),
		ContainSubstring("limited: services.loadbalancers=2"),
	))
}
