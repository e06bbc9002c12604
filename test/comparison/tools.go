// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/webhooks/workloads"
)

// live returns the workload before, with the status that its controller would have written, and what it made as fit lists it.
func (c *Cluster) live() (client.Object, fitting.Present) {
	present := fitting.Present{
		Claims: sets.KeySet(c.claims), ReplicaSets: c.sets, ClaimTemplates: map[string]*resourceapi.ResourceClaimTemplate{gpu: ClaimTemplate(Namespace)},
		Nodes: func(*appsv1.DaemonSet) (int64, bool) { return int64(c.Nodes), true },
	}
	if c.Before == nil {
		return nil, present
	}
	before, _ := c.Before.DeepCopyObject().(client.Object)
	before.SetUID("before")
	before.SetGeneration(1)
	owner := types.UID("before")
	count := int32(len(c.pods))
	switch object := before.(type) {
	case *appsv1.Deployment:
		object.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: count, UpdatedReplicas: count, AvailableReplicas: count}
		for _, set := range c.sets {
			set.OwnerReferences = ownedBy(owner, "Deployment")
			owner = set.UID
			object.Annotations = map[string]string{"deployment.kubernetes.io/revision": "1"}
		}
	case *appsv1.StatefulSet:
		object.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: 1, Replicas: count, UpdatedReplicas: count, CurrentReplicas: count, CurrentRevision: "one", UpdateRevision: "one",
		}
	case *appsv1.DaemonSet:
		object.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "1"}
		object.Status = appsv1.DaemonSetStatus{
			ObservedGeneration: 1, CurrentNumberScheduled: count, UpdatedNumberScheduled: count, DesiredNumberScheduled: int32(c.Nodes),
		}
	case *appsv1.ReplicaSet:
		object.Status = appsv1.ReplicaSetStatus{ObservedGeneration: 1, Replicas: count}
	case *corev1.ReplicationController:
		object.Status = corev1.ReplicationControllerStatus{ObservedGeneration: 1, Replicas: count}
	}
	for _, pod := range c.pods {
		pod.OwnerReferences = ownedBy(owner, "owner")
		pod.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "one", "pod-template-generation": "1"}
		present.Pods = append(present.Pods, pod.Pod)
		for _, volume := range pod.Spec.Volumes {
			present.Claims.Insert(pod.Name + "-" + volume.Name)
		}
	}
	return before, present
}

func ownedBy(uid types.UID, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{UID: uid, Kind: kind, Controller: ptr.To(true)}}
}

// Fit asks what `kubectl crq fit` asks.
func (c *Cluster) Fit() (fitting.Verdict, fitting.Demand) {
	live, present := c.live()
	manifest := fitting.Manifest{
		Resource: resourceOf(c.Applied), Kind: c.Applied.GetObjectKind().GroupVersionKind().Kind, Object: c.applied(live), Live: live, Present: present,
	}
	demand, err := fitting.Expand(manifest)
	must(err)
	var views []quotav1.LocalResourceQuota
	for _, of := range c.Quotas {
		view := quotav1.LocalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: of.Name}}
		view.Status = quotav1.LocalResourceQuotaStatus{
			Total: corev1.ResourceQuotaStatus{Hard: of.Spec.Quota.Hard, Used: of.Others}, Reserved: c.reserved(of.Name), Protected: c.Protected,
			Scopes: of.Spec.Quota.Scopes, ScopeSelector: of.Spec.Quota.ScopeSelector,
		}
		if of.Spec.Surge.Hard != nil {
			view.Status.Surge = &quotav1.SurgeStatus{Hard: of.Spec.Surge.Hard}
		}
		if mode := of.Spec.Enforcement.Mode; mode != quotav1.EnforcementDeny {
			view.Status.Mode = mode
		}
		views = append(views, view)
	}
	fitter := fitting.NewFitter(c.evaluators, fitting.NewRules(fitting.NewTypes(), c.surroundings()).Complete)
	verdict, err := fitter.Fit([]fitting.Demand{demand}, fitting.LimitsOf(views, nil))
	must(err)
	return verdict, demand
}

// applied returns the applied workload as the API server hands it to webhooks.
func (c *Cluster) applied(live client.Object) client.Object {
	applied, _ := c.Applied.DeepCopyObject().(client.Object)
	applied.SetUID("before")
	applied.SetGeneration(1)
	if live != nil {
		applied.SetGeneration(2)
		applied.SetAnnotations(live.GetAnnotations())
	}
	return applied
}

func (c *Cluster) surroundings() fitting.Surroundings {
	runtimeClass, priorities, storage := Classes()
	found := fitting.Surroundings{LimitRanges: c.LimitRanges, RuntimeClasses: []nodev1.RuntimeClass{*runtimeClass}}
	for _, class := range priorities {
		found.PriorityClasses = append(found.PriorityClasses, *class)
	}
	for _, class := range storage {
		found.StorageClasses = append(found.StorageClasses, *class)
	}
	return found
}

// Preflight asks the webhook, and returns the lines of its answer.
func (c *Cluster) Preflight() []string {
	live, _ := c.live()
	kind := c.Applied.GetObjectKind().GroupVersionKind()
	resource := resourceOf(c.Applied)
	request := &admissionv1.AdmissionRequest{
		UID: "request", Kind: metav1.GroupVersionKind(kind), Resource: metav1.GroupVersionResource(resource), Namespace: Namespace, Name: Name,
		Operation: admissionv1.Create, Object: raw(c.applied(live)),
	}
	if live != nil {
		request.Operation, request.OldObject = admissionv1.Update, raw(live)
	}
	passive := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
	handler := workloads.NewHandler(workloads.Parts{
		Clock: passive, Coverage: known{c}, Ledgers: known{c}, Surroundings: known{c}, Evaluators: c.evaluators,
		Metrics: metrics.New(prometheus.NewRegistry()), Events: workloads.NewEvents(passive, nobody{}),
	})
	response := handler.Handle(context.Background(), request)
	lines := response.Warnings
	if !response.Allowed {
		lines = append(lines, strings.Split(response.Result.Message, "\n")...)
	}
	return lines
}

func raw(object client.Object) runtime.RawExtension {
	encoded, err := json.Marshal(object)
	must(err)
	return runtime.RawExtension{Raw: encoded}
}

// known is what the operator knows of a cluster.
type known struct{ *Cluster }

func (k known) Known(string) (namespaces.Covered, bool) {
	return namespaces.Covered{Definitions: k.quotas, Knowledge: make([]ledger.Knowledge, len(k.quotas))}, true
}

func (k known) Current(quota string) ledger.State { return k.drafts[quota].Peek() }

func (k known) Of(context.Context, string) fitting.Surroundings { return k.surroundings() }

// nobody hears events.
type nobody struct{}

func (nobody) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}
