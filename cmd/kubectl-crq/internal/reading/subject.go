// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	nodev1 "k8s.io/api/node/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// Kind is a kind of object that somebody may ask about.
type Kind struct {
	schema.GroupVersionKind
	// Names are what people call it, the one to complete first; the plural is the second.
	Names []string
	// empty returns an object of the kind.
	empty func() client.Object
}

// Resource returns the kind's resource in the API.
func (k Kind) Resource() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.Names[1])
}

// Subject is an object that somebody asks about.
type Subject struct {
	Kind
	Name string
}

// Kinds returns the kinds that somebody may ask about.
func Kinds() []Kind {
	apps, batch, core := appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion, corev1.SchemeGroupVersion
	return []Kind{
		kind[appsv1.Deployment](apps, "Deployment", "deployment", "deployments", "deploy"),
		kind[appsv1.StatefulSet](apps, "StatefulSet", "statefulset", "statefulsets", "sts"),
		kind[appsv1.DaemonSet](apps, "DaemonSet", "daemonset", "daemonsets", "ds"),
		kind[appsv1.ReplicaSet](apps, "ReplicaSet", "replicaset", "replicasets", "rs"),
		kind[batchv1.Job](batch, "Job", "job", "jobs"),
		kind[batchv1.CronJob](batch, "CronJob", "cronjob", "cronjobs", "cj"),
		kind[autoscalingv2.HorizontalPodAutoscaler](
			autoscalingv2.SchemeGroupVersion, "HorizontalPodAutoscaler", "horizontalpodautoscaler", "horizontalpodautoscalers", "hpa"),
		kind[corev1.Pod](core, "Pod", "pod", "pods", "po"),
		kind[corev1.PersistentVolumeClaim](core, "PersistentVolumeClaim", "persistentvolumeclaim", "persistentvolumeclaims", "pvc"),
		kind[corev1.Service](core, "Service", "service", "services", "svc"),
		kind[corev1.ReplicationController](core, "ReplicationController", "replicationcontroller", "replicationcontrollers", "rc"),
	}
}

func kind[T any, P interface {
	*T
	client.Object
}](version schema.GroupVersion, name string, names ...string) Kind {
	return Kind{GroupVersionKind: version.WithKind(name), Names: names, empty: func() client.Object { return P(new(T)) }}
}

// ParseSubject reads KIND/NAME, or KIND and NAME apart. Kinds may be short names and plurals, and have
// their group, as kubectl get -o name prints it.
func ParseSubject(args []string) (Subject, error) {
	var kind, name string
	switch len(args) {
	case 1:
		kind, name, _ = strings.Cut(args[0], "/")
	case 2:
		kind, name = args[0], args[1]
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return Subject{}, errors.New(wantSubject)
	}
	found, known := kindNamed(kind)
	if !known {
		return Subject{}, errors.New(unknownKind(kind))
	}
	return Subject{Kind: found, Name: name}, nil
}

// kindNamed returns the kind that people call so.
func kindNamed(name string) (Kind, bool) {
	plain, group, grouped := strings.Cut(strings.ToLower(name), ".")
	for _, kind := range Kinds() {
		if slices.Contains(kind.Names, plain) && (!grouped || group == kind.Group) {
			return kind, true
		}
	}
	return Kind{}, false
}

// kindOf returns the kind that another object refers to, as by spec.scaleTargetRef.
func kindOf(apiVersion, name string) (Kind, bool) {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return Kind{}, false
	}
	for _, kind := range Kinds() {
		if kind.Group == version.Group && kind.Kind == name {
			return kind, true
		}
	}
	return Kind{}, false
}

// Mapper returns what a client must know to read the kinds that Situation and Namespaces read. It
// spares each call of a command the discovery of all that the cluster serves.
func Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range Kinds() {
		mapper.Add(kind.GroupVersionKind, meta.RESTScopeNamespace)
	}
	core := corev1.SchemeGroupVersion
	for _, kind := range []schema.GroupVersionKind{
		core.WithKind("Event"), core.WithKind("LimitRange"), core.WithKind("ResourceQuota"),
		discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), resourceapi.SchemeGroupVersion.WithKind("ResourceClaimTemplate"),
		quotav1.GroupVersion.WithKind("LocalResourceQuota"),
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	for _, kind := range []schema.GroupVersionKind{
		core.WithKind("Namespace"), schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"),
		nodev1.SchemeGroupVersion.WithKind("RuntimeClass"), storagev1.SchemeGroupVersion.WithKind("StorageClass"),
		quotav1.GroupVersion.WithKind("ClusterResourceQuota"),
	} {
		mapper.Add(kind, meta.RESTScopeRoot)
	}
	return mapper
}

const wantSubject = "want KIND/NAME or KIND NAME, as in deployment/web"

func unknownKind(kind string) string {
	names := make([]string, 0, len(Kinds()))
	for _, known := range Kinds() {
		names = append(names, known.Names[0])
	}
	return fmt.Sprintf("unknown kind %q: want one of %s, or a short name of it", kind, strings.Join(names, ", "))
}
