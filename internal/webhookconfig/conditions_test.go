// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

// update is a change of one object.
type update struct {
	resource    schema.GroupVersionResource
	kind        schema.GroupVersionKind
	subresource string
	operation   admission.Operation
	old, object runtime.Object
}

func (u update) attributes() admission.Attributes {
	return admission.NewAttributesRecord(u.object, u.old, u.kind, "shop", "name", u.resource, u.subresource,
		u.operation, nil, false, nil)
}

// asked reports whether the webhook of objects is asked about an update.
func asked(t fataler, u update) bool {
	t.Helper()
	return matches(t, matchConditions(objectRules([]schema.GroupResource{u.resource.GroupResource()})), u)
}

// matches evaluates the conditions as the API server does.
func matches(t fataler, conditions []admissionregistrationv1.MatchCondition, u update) bool {
	t.Helper()
	expressions := make([]cel.ExpressionAccessor, 0, len(conditions))
	for _, condition := range conditions {
		expressions = append(expressions, &matchconditions.MatchCondition{Name: condition.Name, Expression: condition.Expression})
	}
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	compiled := compiler.CompileCondition(expressions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	matcher := matchconditions.NewMatcher(compiled, ptr.To(admissionregistrationv1.Fail), "webhook", "validating", ObjectsWebhook)
	attributes := &admission.VersionedAttributes{Attributes: u.attributes(), VersionedKind: u.kind}
	attributes.VersionedObject = admission.NewLazyObject(u.object)
	attributes.VersionedOldObject = admission.NewLazyObject(u.old)
	result := matcher.Match(t.Context(), attributes, nil, nil)
	if result.Error != nil {
		t.Fatalf("evaluating the conditions: %v", result.Error)
	}
	return result.Matches
}

// fataler has the methods that a test and a property have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
	Context() context.Context
}

func updateOf(resource, kind string, old, object runtime.Object) update {
	return update{
		resource:  schema.GroupVersionResource{Version: "v1", Resource: resource},
		kind:      schema.GroupVersionKind{Version: "v1", Kind: kind},
		operation: admission.Update, old: old, object: object,
	}
}

// changedPod is an update of a pod.
func changedPod(change func(*corev1.Pod)) update {
	old := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "name", UID: "uid", ResourceVersion: "1", Finalizers: []string{"example.com/hold"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "a", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1")},
		}}}},
	}
	object := old.DeepCopy()
	change(object)
	return updateOf("pods", "Pod", old, object)
}

func changedService(change func(*corev1.Service)) update {
	old := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "name", UID: "uid", ResourceVersion: "1"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	object := old.DeepCopy()
	change(object)
	return updateOf("services", "Service", old, object)
}

func changedClaim(change func(*corev1.PersistentVolumeClaim)) update {
	old := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "name", UID: "uid", ResourceVersion: "1"},
		Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")},
		}},
	}
	object := old.DeepCopy()
	change(object)
	return updateOf("persistentvolumeclaims", "PersistentVolumeClaim", old, object)
}

func changedDevices(change func(*resourceapi.ResourceClaim)) update {
	old := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "name", UID: "uid", ResourceVersion: "1"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "main", Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: "fpga", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
			},
		}}}},
	}
	object := old.DeepCopy()
	change(object)
	u := updateOf("resourceclaims", "ResourceClaim", old, object)
	u.kind.Group, u.resource.Group = resourceapi.GroupName, resourceapi.GroupName
	return u
}

func (u update) but(change func(*update)) update {
	change(&u)
	return u
}

func TestTheConditionsOfAnEntry(t *testing.T) {
	toNothing := func(u *update) { u.operation, u.old = admission.Create, nil }
	for name, test := range map[string]struct {
		update update
		want   bool
	}{
		"a pod is created":       {update: changedPod(func(*corev1.Pod) {}).but(toNothing), want: true},
		"a pod gets a label":     {update: changedPod(func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} })},
		"a pod's finalizer goes": {update: changedPod(func(p *corev1.Pod) { p.Finalizers = nil })},
		"a pod's image changes":  {update: changedPod(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "b" })},
		"a pod is resized": {
			update: changedPod(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2") }).
				but(func(u *update) { u.subresource = "resize" }), want: true,
		},
		"a service gets an annotation": {
			update: changedService(func(s *corev1.Service) { s.Annotations = map[string]string{"a": "b"} }), want: true,
		},
		"a service's finalizer comes": {update: changedService(func(s *corev1.Service) { s.Finalizers = []string{"example.com/hold"} })},
		"a service's status changes": {
			update: changedService(func(s *corev1.Service) {
				s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
			}),
		},
		"a claim is bound": {update: changedClaim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "volume" }), want: true},
		"a claim's finalizer comes": {
			update: changedClaim(func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"kubernetes.io/pvc-protection"} }),
		},
		"a claim of devices gets a label": {
			update: changedDevices(func(c *resourceapi.ResourceClaim) { c.Labels = map[string]string{"a": "b"} }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := asked(t, test.update); got != test.want {
				t.Errorf("asked: got %v, want %v", got, test.want)
			}
		})
	}
}

func changedQuota(change func(*quotav1.ClusterResourceQuota)) update {
	old := &quotav1.ClusterResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "uid", ResourceVersion: "1", Finalizers: []string{"foregroundDeletion"}},
	}
	old.Spec.Quota.Hard = corev1.ResourceList{"pods": resource.MustParse("1")}
	object := old.DeepCopy()
	change(object)
	u := updateOf("clusterresourcequotas", "ClusterResourceQuota", old, object)
	u.kind.Group, u.resource.Group = quotav1.GroupVersion.Group, quotav1.GroupVersion.Group
	return u
}

func TestWhichQuotasAreValidated(t *testing.T) {
	more := func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota.Hard["pods"] = resource.MustParse("2") }
	leaving := func(q *quotav1.ClusterResourceQuota) { q.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	for name, test := range map[string]struct {
		update update
		want   bool
	}{
		"a new one":              {update: changedQuota(more).but(func(u *update) { u.operation, u.old = admission.Create, nil }), want: true},
		"one whose spec changes": {update: changedQuota(more), want: true},
		"not one that gets a label": {
			update: changedQuota(func(q *quotav1.ClusterResourceQuota) { q.Labels = map[string]string{"a": "b"} }),
		},
		"nor one whose finalizer goes while it is being deleted": {
			update: changedQuota(func(q *quotav1.ClusterResourceQuota) { leaving(q); q.Finalizers = nil }),
		},
		"nor one that changes while it is being deleted": {
			update: changedQuota(func(q *quotav1.ClusterResourceQuota) { leaving(q); more(q) }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := matches(t, quotaConditions(), test.update); got != test.want {
				t.Errorf("asked: got %v, want %v", got, test.want)
			}
		})
	}
}

// A request that isn't asked about charges no quota, with any limits.
func TestNothingThatChargesIsSkipped(t *testing.T) {
	evaluators := evaluation.New(clock.RealClock{}, evaluation.ClaimSources{})
	quotas := everyQuota()
	charged := 0
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.OneOf(anyChangedPod(), anyChangedService(), anyChangedClaim(), anyChangedDevices()).Draw(t, "update")
		charges, err := evaluators.Charges(u.attributes(), quotas)
		if err != nil {
			t.Fatalf("evaluating: %v", err)
		}
		if len(charges) == 0 {
			return
		}
		charged++
		if !asked(t, u) {
			t.Fatalf("not asked about what charges %v", charges)
		}
	})
	if charged == 0 {
		t.Error("no update charged anything")
	}
}

// everyQuota limits all resources that updates can charge, in each scope that
// they can move to.
func everyQuota() []evaluation.Quota {
	hard := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"services.loadbalancers", "services.nodeports", "requests.storage", "fpga.deviceclass.resource.k8s.io/devices", "gold.storageclass.storage.k8s.io/requests.storage"} {
		hard[name] = resource.MustParse("1M")
	}
	quotas := []evaluation.Quota{{Name: "objects", Spec: corev1.ResourceQuotaSpec{Hard: hard}}}
	for _, scope := range []corev1.ResourceQuotaScope{
		corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating,
	} {
		quotas = append(quotas, evaluation.Quota{Name: string(scope), Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{"pods": resource.MustParse("1M"), "requests.cpu": resource.MustParse("1M")}, Scopes: []corev1.ResourceQuotaScope{scope},
		}})
	}
	return quotas
}

func anyChangedPod() *rapid.Generator[update] {
	return rapid.Custom(func(t *rapid.T) update {
		return changedPod(func(pod *corev1.Pod) {
			if rapid.Bool().Draw(t, "deadline") {
				pod.Spec.ActiveDeadlineSeconds = ptr.To(rapid.Int64Range(1, 3).Draw(t, "seconds"))
			}
			if rapid.Bool().Draw(t, "label") {
				pod.Labels = map[string]string{"a": "b"}
			}
		})
	})
}

func anyChangedService() *rapid.Generator[update] {
	return rapid.Custom(func(t *rapid.T) update {
		return changedService(func(service *corev1.Service) {
			service.Spec.Type = rapid.SampledFrom([]corev1.ServiceType{
				corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer,
			}).Draw(t, "type")
			for i := range rapid.IntRange(0, 2).Draw(t, "ports") {
				service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint(i), Port: int32(81 + i)})
			}
			if rapid.Bool().Draw(t, "none allocated") {
				service.Spec.AllocateLoadBalancerNodePorts = ptr.To(false)
			}
		})
	})
}

func anyChangedDevices() *rapid.Generator[update] {
	return rapid.Custom(func(t *rapid.T) update {
		return changedDevices(func(claim *resourceapi.ResourceClaim) {
			claim.Spec.Devices.Requests[0].Exactly.Count = rapid.Int64Range(1, 3).Draw(t, "devices")
			if rapid.Bool().Draw(t, "label") {
				claim.Labels = map[string]string{"a": "b"}
			}
		})
	})
}

func anyChangedClaim() *rapid.Generator[update] {
	return rapid.Custom(func(t *rapid.T) update {
		return changedClaim(func(claim *corev1.PersistentVolumeClaim) {
			size := rapid.IntRange(1, 2).Draw(t, "size")
			claim.Spec.Resources.Requests["storage"] = resource.MustParse(fmt.Sprintf("%dGi", size))
			switch rapid.IntRange(0, 2).Draw(t, "class") {
			case 1:
				claim.Spec.StorageClassName = ptr.To("gold")
			case 2:
				claim.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "gold"}
			}
		})
	})
}

func TestOnlyUpdatesHaveConditions(t *testing.T) {
	if got := matchConditions(objectRules([]schema.GroupResource{deployments, {Resource: "configmaps"}})); got != nil {
		t.Errorf("creations alone: got %v, want none", got)
	}
	if got := matchConditions(objectRules([]schema.GroupResource{deployments, {Group: resourceapi.GroupName, Resource: "resourceclaims"}})); len(got) != 1 {
		t.Errorf("with updates: got %v, want one", got)
	}
}
