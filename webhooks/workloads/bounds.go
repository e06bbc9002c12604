// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// Judging costs processor time, which the webhook that enforces quotas needs. So a request is judged only if it is of
// usual size, if few others are judged at the moment, and as long as its caller waits for the answer.
const (
	// answerWithin is how long a request is judged at most. The API server waits for two seconds.
	answerWithin = 1500 * time.Millisecond
	// turnWithin is how long a request waits for others that are judged.
	turnWithin = 250 * time.Millisecond
	// maxParts bounds the containers, volumes and claims of a workload's pods.
	maxParts = 500
)

var (
	errLate = outcomes.JudgedTooLate.Err()
	errBusy = outcomes.JudgesBusy.Err()
)

// newTurns lets as many requests be judged at once as there are processors.
func newTurns() *semaphore.Weighted { return semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0))) }

// turn waits until a request may take processor time, which ends with done. Reads of others' answers need none.
func (h *Handler) turn(ctx context.Context) (done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, turnWithin)
	defer cancel()
	if h.turns.Acquire(ctx, 1) != nil {
		return nil, errBusy
	}
	return func() { h.turns.Release(1) }, nil
}

// tooManyParts returns an error for a workload that has too many parts.
func tooManyParts(object client.Object) error {
	spec, claims := podSpec(object)
	if spec == nil {
		return nil
	}
	parts := len(spec.Containers) + len(spec.InitContainers) + len(spec.Volumes) + len(spec.ResourceClaims) + claims
	if parts > maxParts {
		return outcomes.TooManyParts.Err(maxParts)
	}
	return nil
}

// podSpec returns that of a workload's pods, and how many claims are made for each besides. It is nil if there is none.
func podSpec(object client.Object) (spec *corev1.PodSpec, claims int) {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return &object.Spec.Template.Spec, 0
	case *appsv1.StatefulSet:
		return &object.Spec.Template.Spec, len(object.Spec.VolumeClaimTemplates)
	case *appsv1.DaemonSet:
		return &object.Spec.Template.Spec, 0
	case *appsv1.ReplicaSet:
		return &object.Spec.Template.Spec, 0
	case *batchv1.Job:
		return &object.Spec.Template.Spec, 0
	case *batchv1.CronJob:
		return &object.Spec.JobTemplate.Spec.Template.Spec, 0
	case *corev1.ReplicationController:
		if object.Spec.Template != nil {
			return &object.Spec.Template.Spec, 0
		}
	}
	return nil, 0
}
