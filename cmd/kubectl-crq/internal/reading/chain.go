// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/controller/deployment/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follow reads what the subject's controller made or scales, and what that did.
func (r *Reader) follow(ctx context.Context, found *Situation) error {
	switch object := found.Chain[0].Object.(type) {
	case *autoscalingv2.HorizontalPodAutoscaler:
		return r.followTarget(ctx, found, object)
	case *appsv1.Deployment:
		return r.followDeployment(ctx, found, object)
	case *batchv1.CronJob:
		return r.followCronJob(ctx, found, object)
	}
	return nil
}

func (r *Reader) followTarget(ctx context.Context, found *Situation, scaler *autoscalingv2.HorizontalPodAutoscaler) error {
	reference := scaler.Spec.ScaleTargetRef
	kind, known := kindOf(reference.APIVersion, reference.Kind)
	if !known {
		found.Target = TargetForeign
		return nil
	}
	target := kind.empty()
	err := r.client.Get(ctx, client.ObjectKey{Namespace: found.Namespace, Name: reference.Name}, target)
	switch {
	case apierrors.IsNotFound(err):
		found.Target = TargetMissing
		return nil
	case err != nil:
		return fmt.Errorf("reading its target: %w", err)
	}
	found.Chain = append(found.Chain, Link{Kind: kind, Object: target})
	if deployment, ok := target.(*appsv1.Deployment); ok {
		return r.followDeployment(ctx, found, deployment)
	}
	return nil
}

func (r *Reader) followDeployment(ctx context.Context, found *Situation, deployment *appsv1.Deployment) error {
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return fmt.Errorf("reading the selector of Deployment %s: %w", deployment.Name, err)
	}
	list := &appsv1.ReplicaSetList{}
	round := r.newRound()
	round.list("replicasets", list, client.InNamespace(found.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err := round.wait(ctx); err != nil {
		return err
	}
	found.Forbidden = append(found.Forbidden, round.forbidden()...)
	var owned []*appsv1.ReplicaSet
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], deployment) {
			owned = append(owned, &list.Items[i])
		}
	}
	found.Present.ReplicaSets = owned
	if current := util.FindNewReplicaSet(deployment, owned); current != nil {
		kind, _ := kindNamed("replicaset")
		found.Chain = append(found.Chain, Link{Kind: kind, Object: current})
	}
	return nil
}

func (r *Reader) followCronJob(ctx context.Context, found *Situation, cron *batchv1.CronJob) error {
	list := &batchv1.JobList{}
	round := r.newRound()
	round.list("jobs", list, client.InNamespace(found.Namespace))
	if err := round.wait(ctx); err != nil {
		return err
	}
	found.Forbidden = append(found.Forbidden, round.forbidden()...)
	var newest *batchv1.Job
	for i := range list.Items {
		job := &list.Items[i]
		if metav1.IsControlledBy(job, cron) && (newest == nil || newest.CreationTimestamp.Before(&job.CreationTimestamp)) {
			newest = job
		}
	}
	if newest != nil {
		kind, _ := kindNamed("job")
		found.Chain = append(found.Chain, Link{Kind: kind, Object: newest})
	}
	return nil
}
