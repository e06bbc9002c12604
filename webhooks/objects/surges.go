// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/internal/admission"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// Surges reports whether a workload that took surge still has more pods than it asks for.
func (r *Replacements) Surges(ctx context.Context, surger ledger.Surger) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, admission.ProofWait)
	defer cancel()
	more, err := r.surplus(ctx, surger)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return more > 0, err
}

// surplus is how many pods a workload has more than it asks for.
func (r *Replacements) surplus(ctx context.Context, surger ledger.Surger) (int, error) {
	reading := func(err error) error { return fmt.Errorf("reading %s %s: %w", surger.Kind, surger.Name, err) }
	switch surger.Kind {
	case deployments.Kind:
		deployment, err := r.Typed.AppsV1().Deployments(surger.Namespace).Get(ctx, surger.Name, metav1.GetOptions{})
		if err = is(deployment, surger.UID, err); err != nil {
			return 0, reading(err)
		}
		fleet, err := r.fleetOf(ctx, deployment, "")
		return fleet.all - int(ptr.Deref(deployment.Spec.Replicas, 1)), err
	case daemonSets.Kind:
		set, err := r.Typed.AppsV1().DaemonSets(surger.Namespace).Get(ctx, surger.Name, metav1.GetOptions{})
		if err = is(set, surger.UID, err); err != nil {
			return 0, reading(err)
		}
		number, err := r.number(ctx, set, set.Spec.Selector)
		return number - int(set.Status.DesiredNumberScheduled), err
	case jobs.Kind:
		job, err := r.Typed.BatchV1().Jobs(surger.Namespace).Get(ctx, surger.Name, metav1.GetOptions{})
		if err = is(job, surger.UID, err); err != nil {
			return 0, reading(err)
		}
		number, err := r.number(ctx, job, job.Spec.Selector)
		return number - atOnce(job), err
	case machines.Kind:
		machine := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: surger.Namespace, UID: surger.UID}}
		number, err := r.number(ctx, machine, &metav1.LabelSelector{MatchLabels: podsOf(surger.UID)})
		return number - 1, err
	default:
		return 0, nil
	}
}

// number is how many pods a workload has.
func (r *Replacements) number(ctx context.Context, workload metav1.Object, of *metav1.LabelSelector) (number int, err error) {
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil {
		return 0, fmt.Errorf("reading the selector of %s: %w", workload.GetName(), err)
	}
	err = r.pods(ctx, workload.GetNamespace(), selector, fields.Everything(), func(pod *metav1.PartialObjectMetadata) {
		if metav1.IsControlledBy(pod, workload) {
			number++
		}
	})
	return number, err
}
