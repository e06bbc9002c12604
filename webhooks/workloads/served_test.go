// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
)

// world is all that a Handler goes by.
type world struct {
	unknown      bool
	definitions  []definition.Definition
	ledgers      map[string]ledger.State
	surroundings fitting.Surroundings
	live         []client.Object
	liveError    error
	panics       bool
	// slow: surroundings take longer than anybody waits.
	slow     bool
	recorder recorder
	clock    *clocktesting.FakeClock
}

// limit is one quota: its limit, and its use.
type limit struct {
	name        string
	hard, used  corev1.ResourceList
	surge       corev1.ResourceList
	mode        quotav1.PreflightMode
	enforcement quotav1.EnforcementMode
}

func newWorld(tb testing.TB, limits ...limit) *world {
	tb.Helper()
	w := &world{ledgers: map[string]ledger.State{}, clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))}
	for _, limit := range limits {
		quota := &quotav1.ClusterResourceQuota{}
		quota.Name, quota.UID, quota.Generation = limit.name, "uid", 1
		quota.Spec.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
		quota.Spec.Quota.Hard, quota.Spec.Preflight = limit.hard, limit.mode
		quota.Spec.Enforcement.Mode, quota.Spec.Surge.Hard = limit.enforcement, limit.surge
		compiled, err := definition.Compile(quota)
		if err != nil {
			tb.Fatal(err)
		}
		w.definitions = append(w.definitions, compiled)
		w.ledgers[limit.name] = ledger.State{Basis: compiled.Limits.Basis, Used: limit.used}
	}
	return w
}

func (w *world) Known(string) (namespaces.Covered, bool) {
	if w.panics {
		panic("nobody expects this")
	}
	return namespaces.Covered{Definitions: w.definitions, Knowledge: make([]ledger.Knowledge, len(w.definitions))}, !w.unknown
}

func (w *world) Current(quota string) ledger.State { return w.ledgers[quota] }

func (w *world) Of(ctx context.Context, _ string) fitting.Surroundings {
	if w.slow {
		<-ctx.Done()
	}
	return w.surroundings
}

func (w *world) handler() *Handler {
	reader := fake.NewClientBuilder().WithObjects(w.live...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if w.liveError != nil {
				return w.liveError
			}
			return to.Get(ctx, key, into, options...)
		},
	}).Build()
	return NewHandler(Parts{
		Clock: w.clock, Coverage: w, Ledgers: w, Surroundings: w, Live: reader,
		Evaluators: evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}),
		Metrics:    metrics.New(prometheus.NewRegistry()), Events: NewEvents(w.clock, &w.recorder),
	})
}

// recorder keeps its events.
type recorder struct{ told []string }

func (r *recorder) Eventf(regarding, _ runtime.Object, _, reason, _, _ string, args ...any) {
	reference, _ := regarding.(*corev1.ObjectReference)
	r.told = append(r.told, fmt.Sprint(reference.Kind, " ", reference.Name, ": ", reason, ": ", args[0]))
}

func list(pairs ...string) corev1.ResourceList {
	made := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		made[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return made
}

func template(requests ...string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "web", Resources: corev1.ResourceRequirements{Requests: list(requests...)},
	}}}}
}

func deployment(replicas int32, requests ...string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "search", UID: "workload", Generation: 1},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Template: template(requests...),
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{}},
		},
	}
}

// running is a Deployment all of whose pods are there.
func running(replicas int32, requests ...string) *appsv1.Deployment {
	made := deployment(replicas, requests...)
	made.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas}
	return made
}

var apps = map[string]schema.GroupVersionKind{
	"deployments": {Group: "apps", Version: "v1", Kind: "Deployment"}, "statefulsets": {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	"daemonsets": {Group: "apps", Version: "v1", Kind: "DaemonSet"}, "jobs": {Group: "batch", Version: "v1", Kind: "Job"},
	"cronjobs": {Group: "batch", Version: "v1", Kind: "CronJob"}, "horizontalpodautoscalers": {Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
}

func raw(object any) runtime.RawExtension {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return runtime.RawExtension{Raw: text}
}

func creation(resource string, object any) *admissionv1.AdmissionRequest {
	kind := apps[resource]
	return &admissionv1.AdmissionRequest{
		UID: "request", Namespace: "checkout", Name: "search", Operation: admissionv1.Create, Object: raw(object),
		Kind:     metav1.GroupVersionKind(kind),
		Resource: metav1.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: resource},
	}
}

func update(resource string, old, object any) *admissionv1.AdmissionRequest {
	request := creation(resource, object)
	request.Operation, request.OldObject = admissionv1.Update, raw(old)
	return request
}

func scaling(replicas int32) *admissionv1.AdmissionRequest {
	request := update("deployments", autoscalingv1.Scale{}, autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}})
	request.SubResource, request.Kind = "scale", metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	return request
}

func dry(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionRequest {
	request.DryRun = ptr.To(true)
	return request
}

var errTimeout = errors.New("timed out")
