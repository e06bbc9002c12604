// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	devices = "requests.dra.example/gpu"
	// allUsedSince is the version of Kubernetes that serves all that the rights are for.
	allUsedSince = "1.37"
	secrets      = corev1.ResourceName("count/secrets")
	widgets      = corev1.ResourceName("count/widgets.example.com")
)

// invisible tells of which grants the audit log can't show the use.
func invisible(given grant, requests []suite.Request) bool {
	switch given.verb {
	case "list":
		// A watch that begins with a list asks for the watch alone, where the API server
		// can stream lists; not every one can.
		watch := given
		watch.verb = "watch"
		return slices.ContainsFunc(requests, watch.covers)
	case "create":
		// Server-side apply that creates is asked about as a patch and as a creation; the
		// log has the patch.
		return given.resource == "validatingwebhookconfigurations"
	default:
		return false
	}
}

// neverUsed returns what the operator may do and has never done.
func neverUsed(ctx context.Context) []grant {
	GinkgoHelper()
	requests := audit.Since(time.Time{})
	grants, err := grantsOf(ctx, admin, suite.Namespace, suite.ServiceAccount)
	Expect(err).NotTo(HaveOccurred())
	Expect(len(grants)).To(BeNumerically(">", 20), "the roles are bound")
	return slices.DeleteFunc(unused(grants, requests), func(given grant) bool { return invisible(given, requests) })
}

// may tells whether the operator may do what is asked.
func may(ctx context.Context, asked authorizationv1.ResourceAttributes) bool {
	GinkgoHelper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: suite.User, Groups: []string{"system:serviceaccounts", "system:authenticated"}, ResourceAttributes: &asked,
	}}
	Expect(admin.Create(ctx, review)).To(Succeed())
	return review.Status.Allowed
}

// The whole scenario is one spec: what it asks for only makes sense together.
var _ = Describe("The operator, with the rights of config/rbac", Label("rights"), Ordered, func() {
	const name = "queue"
	var began time.Time

	BeforeAll(func(ctx SpecContext) {
		end(ctx)
		began = time.Now()
		run(ctx)
		scenario(ctx)
	})

	It("wakes every kind of workload that waits for room", func(ctx SpecContext) {
		waiting := refuseWorkloads(ctx, name)
		Eventually(ctx, room(waiting)).Should(HaveLen(len(waiting)))
		// Once nobody waits any more, what the replica published is deleted.
		for kind, workload := range waiting {
			Expect(createPodOf(ctx, workload)).To(Succeed(), kind)
		}
	})

	It("counts every kind that lives in namespaces", func(ctx SpecContext) {
		kinds := listable(ctx)
		Expect(kinds).To(ContainElements(secrets, widgets))
		countAll(ctx, kinds)
	})

	It("is forbidden nothing that it asks for", func() {
		Expect(audit.Forbidden(began)).To(BeEmpty())
		for _, replica := range replicas.Running {
			Expect(suite.LogOf(replica.Process)).NotTo(ContainSubstring("forbidden"))
		}
	})

	// A replica deletes its ConfigMap a while after nobody waits any more.
	It("is given nothing that it doesn't use", suite.Since(allUsedSince), func(ctx SpecContext) {
		Eventually(ctx, neverUsed).Should(BeEmpty())
	})

	It("is served like Kubernetes' own controllers while the API server is busy", func(ctx SpecContext) {
		schema := &flowcontrolv1.FlowSchema{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: "shared-quota-operator"}, schema)).To(Succeed())
		Expect(meta.IsStatusConditionTrue(conditionsOf(schema), string(flowcontrolv1.FlowSchemaConditionDangling))).To(BeFalse())
		Eventually(ctx, servedBy).Should(Equal(string(schema.UID)))
	})

	It("is accepted in a namespace that only takes restricted pods", func(ctx SpecContext) {
		namespace := &corev1.Namespace{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: suite.Namespace}, namespace)).To(Succeed())
		Expect(namespace.Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "restricted"))
		// The Deployment's controller has made them; no node is there to run them.
		Eventually(ctx, func(ctx context.Context) (int, error) {
			pods := &corev1.PodList{}
			err := admin.List(ctx, pods, client.InNamespace(suite.Namespace))
			return len(pods.Items), err
		}).Should(BeNumerically(">=", 2))
		pod := builders.Pod(suite.Namespace, "unrestricted").Obj()
		Expect(admin.Create(ctx, pod)).To(MatchError(ContainSubstring("violates PodSecurity")))
	})

	DescribeTable("may not", func(ctx SpecContext, asked authorizationv1.ResourceAttributes) {
		Expect(may(ctx, asked)).To(BeFalse())
	},
		Entry("run commands in a pod, by a request to get",
			authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "exec", Namespace: "shop", Name: "p"}),
		Entry("reach kubelets through the API server",
			authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes", Subresource: "proxy", Name: "n"}),
		Entry("read logs", authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "shop", Name: "p"}),
		Entry("write pods", authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Namespace: "shop"}),
		Entry("change other Secrets", authorizationv1.ResourceAttributes{Verb: "update", Resource: "secrets", Namespace: suite.Namespace, Name: "x"}),
		Entry("make tokens", authorizationv1.ResourceAttributes{
			Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: suite.Namespace, Name: suite.ServiceAccount}),
		Entry("change workloads", authorizationv1.ResourceAttributes{
			Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web"}),
		Entry("change claims", authorizationv1.ResourceAttributes{Verb: "patch", Resource: "persistentvolumeclaims", Namespace: "shop", Name: "c"}),
		Entry("replace a workload's status", authorizationv1.ResourceAttributes{
			Verb: "update", Group: "apps", Resource: "deployments", Subresource: "status", Namespace: "shop", Name: "web"}),
		Entry("write others' ConfigMaps", authorizationv1.ResourceAttributes{Verb: "update", Resource: "configmaps", Namespace: "shop", Name: "c"}),
		Entry("write quotas",
			authorizationv1.ResourceAttributes{Verb: "update", Group: quotav1.GroupVersion.Group, Resource: "clusterresourcequotas", Name: "q"}),
		Entry("change roles", authorizationv1.ResourceAttributes{Verb: "update", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "x"}),
		Entry("change another's validating webhooks", authorizationv1.ResourceAttributes{
			Verb: "update", Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations", Name: "another"}),
		Entry("patch another's validating webhooks", authorizationv1.ResourceAttributes{
			Verb: "patch", Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations", Name: "another"}),
		Entry("change other webhooks than validating ones",
			authorizationv1.ResourceAttributes{Verb: "patch", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Name: "x"}),
	)
})

func conditionsOf(schema *flowcontrolv1.FlowSchema) []metav1.Condition {
	var conditions []metav1.Condition
	for _, condition := range schema.Status.Conditions {
		conditions = append(conditions, metav1.Condition{Type: string(condition.Type), Status: metav1.ConditionStatus(condition.Status)})
	}
	return conditions
}

// servedBy returns the UID of the FlowSchema that a request of the operator meets.
func servedBy(ctx context.Context) (string, error) {
	identity := replicas.Identity()
	transport, err := rest.TransportFor(identity)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, identity.Host+"/api/v1/namespaces", nil)
	if err != nil {
		return "", err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	return response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID), response.Body.Close()
}

// scenario has the operator do all that it does.
func scenario(ctx context.Context) {
	GinkgoHelper()
	mustCreate(ctx, builders.Namespace("shop").Label("team", "a").Obj(), builders.Namespace("office").Label("team", "a").Obj())
	limits := builders.Quota("a").Label("team", "a").Hard("pods", "2").Hard(devices, "8").Hard(widgets, "1")
	enforced(ctx, limits)
	quota, used := limits.Obj(), suite.Used(admin, "a", "pods")

	// Where it lives is looked up, for a warning.
	mustCreate(ctx, builders.Quota("b").Label("team", "b").Hard("count/gadgets.example.com", "1").Obj())

	mustCreate(ctx, builders.Custom(widget, "shop", "w"), builders.Pod("shop", "p1").Limit("dra.example/gpu", "1").Obj())
	mustCreate(ctx, builders.Pod("office", "p2").Obj())
	Expect(admin.Create(ctx, builders.Pod("office", "p3").Obj())).To(suite.BeExceeded("a", "pods"))
	if suite.IsSince(ctx, devicesSince) {
		createClaimOfPod(ctx, "shop", "p1")
	}
	Eventually(ctx, used).Should(Equal("2"))

	Expect(admin.Delete(ctx, builders.Pod("office", "p2").Obj(), client.GracePeriodSeconds(0))).To(Succeed())
	Eventually(ctx, used).Should(Equal("1"))
	// Of the limit that is reached again a series of events is made, by a patch.
	mustCreate(ctx, builders.Pod("office", "p4").Obj())
	Eventually(ctx, used).Should(Equal("2"))
	Expect(admin.Patch(ctx, builders.Namespace("office").Obj(), suite.Merge(`{"metadata":{"labels":{"team":null}}}`))).To(Succeed())
	Eventually(ctx, suite.Gone(admin, &quotav1.LocalResourceQuota{ObjectMeta: builders.Meta("office", "a")})).Should(BeTrue())
	scale(ctx)
	replace(ctx)
	spoil(ctx)
	// The operator asks who scrapes it, and whether they may.
	suite.Scrape(ctx, scraper, replicas.Running[0])

	Expect(admin.Delete(ctx, quota)).To(Succeed())
	Eventually(ctx, suite.Gone(admin, ledgerOf("a"))).Should(BeTrue())
}

// scale asks for fewer pods of each kind that has a scale: the operator reads what is scaled.
func scale(ctx context.Context) {
	GinkgoHelper()
	for kind, object := range map[string]client.Object{
		"deployment": builders.Deployment("shop", "scaled", 0), "replicaset": builders.ReplicaSet("shop", "scaled"),
		"statefulset": builders.StatefulSet("shop", "scaled"), "replicationcontroller": builders.ReplicationController("shop", "scaled"),
	} {
		mustCreate(ctx, object)
		suite.Kubectl(ctx, cluster, "scale", "-n", "shop", kind+"/scaled", "--replicas=1")
		suite.Kubectl(ctx, cluster, "scale", "-n", "shop", kind+"/scaled", "--replicas=0")
		Expect(admin.Delete(ctx, object)).To(Succeed())
	}
}

// createClaimOfPod does what the scheduler does for a pod with extended resources:
// what the claim adds is measured against the pod.
func createClaimOfPod(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)).To(Succeed())
	claim := builders.DeviceClaim(namespace, name+"-claim").Exactly("gpu", 1).Obj()
	claim.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
	claim.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true),
	}}
	mustCreate(ctx, claim)
}

// spoil damages what the operator repairs: its certificate and its webhooks.
func spoil(ctx context.Context) {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: suite.Namespace, Name: suite.CertSecret}, secret)).To(Succeed())
	before := string(secret.Data[corev1.TLSCertKey])
	secret.Data[corev1.TLSCertKey] = []byte("nonsense")
	Expect(admin.Update(ctx, secret)).To(Succeed())
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		g.Expect(string(secret.Data[corev1.TLSCertKey])).To(And(ContainSubstring("BEGIN CERTIFICATE"), Not(Equal(before))))
	}).Should(Succeed())

	const added = "added.example.com"
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Eventually(ctx, func(ctx context.Context) error { // The operator writes it, too, for its new certificate.
		if err := admin.Get(ctx, client.ObjectKey{Name: "shared-quota"}, configuration); err != nil {
			return err
		}
		entry := *configuration.Webhooks[0].DeepCopy()
		entry.Name = added
		configuration.Webhooks = append(configuration.Webhooks, entry)
		return admin.Update(ctx, configuration)
	}).Should(Succeed())
	Eventually(ctx, func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKeyFromObject(configuration), configuration)
		return slices.ContainsFunc(configuration.Webhooks, func(entry admissionregistrationv1.ValidatingWebhook) bool {
			return entry.Name == added
		}), err
	}).Should(BeFalse())
}
