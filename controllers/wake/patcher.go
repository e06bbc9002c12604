// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// callTimeout bounds one call of the API server.
const callTimeout = 5 * time.Second

// Workloads are the owners of objects, at the API server.
type Workloads struct {
	client dynamic.Interface
	// metadata reads only the metadata of objects.
	metadata metadata.Interface
}

// NewWorkloads makes Workloads.
func NewWorkloads(client dynamic.Interface, metadata metadata.Interface) *Workloads {
	return &Workloads{client: client, metadata: metadata}
}

// Wake makes a workload's controller try again, and returns how many objects the workload lacks; zero if it is
// gone.
func (w *Workloads) Wake(ctx context.Context, owner waiting.Owner, now time.Time) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": owner.UID, "annotations": map[string]string{quotav1.RoomAnnotation: now.UTC().Format(time.RFC3339Nano)},
	}})
	if err != nil {
		return 0, fmt.Errorf("making the patch: %w", err)
	}
	workload, err := w.client.Resource(owner.Kind.Resource()).Namespace(owner.Namespace).
		Patch(ctx, owner.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if isGone(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("waking %s %s/%s: %w", owner.Kind, owner.Namespace, owner.Name, err)
	}
	if owner.Kind == waiting.Pod {
		return w.claim(ctx, workload)
	}
	return max(lacks(owner.Kind, workload), 0), nil
}

// isGone reports whether there is no workload of this UID: another one may have its name. If there is one, but the API
// server rejects every change of it, waking it is no use either.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsInvalid(err) ||
		apierrors.IsConflict(err) && strings.Contains(err.Error(), "Precondition failed")
}

// look is one at some workloads.
type look struct {
	*Workloads

	// namespace and resource -> the objects there
	made map[string][]metav1.PartialObjectMetadata
}

func (w *Workloads) look() *look {
	return &look{Workloads: w, made: map[string][]metav1.PartialObjectMetadata{}}
}

// lacks returns how many objects a workload lacks; zero if it is gone.
func (l *look) lacks(ctx context.Context, record waiting.Record) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	owner := record.Owner
	// The operator may list workloads, because it counts them, and not get single ones.
	list, err := l.client.Resource(owner.Kind.Resource()).Namespace(owner.Namespace).
		List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, owner.Name).String()})
	if err != nil {
		return 0, fmt.Errorf("reading %s %s/%s: %w", owner.Kind, owner.Namespace, owner.Name, err)
	}
	for i := range list.Items {
		if list.Items[i].GetUID() != owner.UID {
			continue
		}
		lacking := max(lacks(owner.Kind, &list.Items[i]), 0)
		if lacking > 0 && !made(owner.Kind).Empty() {
			return l.unlessMade(ctx, record, lacking)
		}
		return lacking, nil
	}
	return 0, nil
}

// unlessMade returns zero if the workload has an object that came after its last refusal. The status of such a
// workload doesn't say whether it lacks one.
func (l *look) unlessMade(ctx context.Context, record waiting.Record, lacking int64) (int64, error) {
	objects, err := l.objects(ctx, record.Namespace, made(record.Kind))
	if err != nil {
		return 0, err
	}
	for i := range objects {
		// The time of a creation is in whole seconds, rounded down.
		after := objects[i].CreationTimestamp.Add(time.Second).After(record.Last)
		if owner := metav1.GetControllerOfNoCopy(&objects[i]); after && owner != nil && owner.UID == record.UID {
			return 0, nil
		}
	}
	return lacking, nil
}

// objects lists a namespace's objects of a resource, once.
func (l *look) objects(
	ctx context.Context, namespace string, resource schema.GroupVersionResource,
) ([]metav1.PartialObjectMetadata, error) {
	key := namespace + "/" + resource.Resource
	if objects, ok := l.made[key]; ok {
		return objects, nil
	}
	// From the API server's cache, which is seconds old at most.
	list, err := l.metadata.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("listing %s in %s: %w", resource.Resource, namespace, err)
	}
	l.made[key] = list.Items
	return list.Items, nil
}
