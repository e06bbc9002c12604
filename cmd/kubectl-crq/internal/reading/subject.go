// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// Subject is an object that the user asks about.
type Subject struct {
	schema.GroupVersionKind
	Name string
}

// Kinds returns the kinds that the user may ask about.
func Kinds() []schema.GroupVersionKind {
	apps, batch, core := appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion, corev1.SchemeGroupVersion
	return []schema.GroupVersionKind{
		apps.WithKind("Deployment"), apps.WithKind("StatefulSet"), apps.WithKind("DaemonSet"), apps.WithKind("ReplicaSet"),
		batch.WithKind("Job"), batch.WithKind("CronJob"), autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
		core.WithKind("Pod"), core.WithKind("PersistentVolumeClaim"), core.WithKind("Service"), core.WithKind("ReplicationController"),
	}
}

// ParseSubject reads KIND/NAME, or KIND and NAME apart. The kind may be all that the mapper takes for a resource, as
// kubectl's takes short names and groups.
func ParseSubject(args []string, mapper meta.RESTMapper) (Subject, error) {
	var kind, name string
	switch len(args) {
	case 1:
		kind, name, _ = strings.Cut(args[0], "/")
	case 2:
		kind, name = args[0], args[1]
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return Subject{}, outcomes.WantSubject.Err()
	}
	meant, err := mapper.KindFor(schema.ParseGroupResource(strings.ToLower(kind)).WithVersion(""))
	if err != nil && !meta.IsNoMatchError(err) {
		return Subject{}, fmt.Errorf("finding the kind %s: %w", kind, err)
	}
	found, known := kindLike(meant.GroupKind())
	if !known {
		return Subject{}, unknownKind(kind)
	}
	return Subject{found, name}, nil
}

// kindLike returns the version that is read of a kind.
func kindLike(kind schema.GroupKind) (schema.GroupVersionKind, bool) {
	at := slices.IndexFunc(Kinds(), func(known schema.GroupVersionKind) bool { return known.GroupKind() == kind })
	if at < 0 {
		return schema.GroupVersionKind{}, false
	}
	return Kinds()[at], true
}

func unknownKind(kind string) error {
	names := make([]string, 0, len(Kinds()))
	for _, known := range Kinds() {
		names = append(names, strings.ToLower(known.Kind))
	}
	return outcomes.UnknownSubject.Err(kind, strings.Join(names, ", "))
}

// KindOf returns the kind of an object that is one of Kinds.
func KindOf(object client.Object) schema.GroupVersionKind {
	kind, _ := apiutil.GVKForObject(object, scheme.Scheme) // it knows them all
	return kind
}

// ResourceOf returns the resource of one of Kinds.
func ResourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural
}

// empty returns an object of one of Kinds.
func empty(kind schema.GroupVersionKind) (client.Object, error) {
	made, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil, fmt.Errorf("making a %s: %w", kind.Kind, err)
	}
	object, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", made)
	}
	return object, nil
}
