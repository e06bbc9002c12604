// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// Link is one object on the way from a workload to its pods.
type Link struct {
	Kind   Kind
	Object client.Object
}

// Situation is all that says why an object doesn't come up.
type Situation struct {
	Subject   Subject
	Namespace string
	// Chain begins with the subject and goes on with what its controller made or scales: an autoscaler's
	// target, a Deployment's current ReplicaSet, a CronJob's newest Job. It is empty if the subject doesn't exist.
	Chain []Link
	// Target is what is known of an autoscaler's target.
	Target ScaleTarget
	// Events of the namespace that may be about refusals.
	Events []corev1.Event
	// Pods of the namespace that have not ended, and all its claims.
	Pods   []corev1.Pod
	Claims []corev1.PersistentVolumeClaim
	Limits Limits
	// Present and Surroundings are as for fit, but hold only what matters here.
	Present      fitting.Present
	Surroundings fitting.Surroundings
	Unread       Unread
	// Forbidden are the resources that the user may not read, sorted.
	Forbidden []string
}

// ScaleTarget is what is known of an autoscaler's target.
type ScaleTarget string

const (
	// TargetRead: it is in the chain, or the subject is no autoscaler.
	TargetRead ScaleTarget = ""
	// TargetMissing: it doesn't exist.
	TargetMissing ScaleTarget = "doesn't exist"
	// TargetForeign: it is of a kind that somebody else's controller looks after.
	TargetForeign ScaleTarget = "is of a kind that this command doesn't know"
)

// Workload returns the last link that makes pods: the one whose needs are compared with quotas.
func (s *Situation) Workload() (Link, bool) {
	for i, link := range slices.Backward(s.Chain) {
		// The ReplicaSet of a Deployment has no say: the Deployment decides how many there are.
		if i > 0 && link.Kind.Kind == "ReplicaSet" && s.Chain[i-1].Kind.Kind == "Deployment" {
			continue
		}
		if TemplateOf(link.Object) != nil {
			return link, true
		}
	}
	return Link{}, false
}

// Maker returns the link whose controller creates the pods.
func (s *Situation) Maker() Link { return s.Chain[len(s.Chain)-1] }

// TemplateOf returns the template of a workload's pods; nil if it makes none.
func TemplateOf(object client.Object) *corev1.PodTemplateSpec {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return &object.Spec.Template
	case *appsv1.ReplicaSet:
		return &object.Spec.Template
	case *appsv1.StatefulSet:
		return &object.Spec.Template
	case *appsv1.DaemonSet:
		return &object.Spec.Template
	case *batchv1.Job:
		return &object.Spec.Template
	case *batchv1.CronJob:
		return &object.Spec.JobTemplate.Spec.Template
	case *corev1.ReplicationController:
		return object.Spec.Template
	}
	return nil
}

// Situation reads the object and all that says why it doesn't come up: in two or three rounds, each of calls made
// at the same time. The error is apierrors' NotFound if neither the object exists nor an event is about it.
func (r *Reader) Situation(ctx context.Context, namespace string, subject Subject) (*Situation, error) {
	found := &Situation{Subject: subject, Namespace: namespace}
	if err := r.readNamespace(ctx, found); err != nil {
		return nil, err
	}
	if len(found.Chain) == 0 {
		return found, nil
	}
	if err := r.follow(ctx, found); err != nil {
		return nil, err
	}
	return found, r.readSurroundings(ctx, found)
}

// readNamespace reads in one round the object, and what doesn't depend on it.
func (r *Reader) readNamespace(ctx context.Context, found *Situation) error {
	in := client.InNamespace(found.Namespace)
	object, missing := found.Subject.empty(), false
	events, pods, claims, ranges := &corev1.EventList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.LimitRangeList{}
	views, quotas := &quotav1.LocalResourceQuotaList{}, &corev1.ResourceQuotaList{}
	round := r.newRound()
	round.call(func(ctx context.Context) error {
		err := r.client.Get(ctx, client.ObjectKey{Namespace: found.Namespace, Name: found.Subject.Name}, object)
		missing = apierrors.IsNotFound(err)
		return client.IgnoreNotFound(err)
	})
	round.list("events", events, in, client.MatchingFieldsSelector{Selector: telling()})
	round.list("pods", pods, in, client.MatchingFieldsSelector{Selector: living()})
	round.list("persistentvolumeclaims", claims, in)
	round.list("limitranges", ranges, in)
	round.list("resourcequotas", quotas, in)
	notServed := round.list("localresourcequotas", views, in)
	if err := round.wait(ctx); err != nil {
		return err
	}
	found.Events, found.Pods, found.Claims = events.Items, pods.Items, claims.Items
	found.Limits = Limits{Views: views.Items, Quotas: quotas.Items, NotInstalled: *notServed}
	found.Surroundings.LimitRanges = ranges.Items
	found.Forbidden = round.forbidden()
	found.Unread.LimitRanges = slices.Contains(found.Forbidden, "limitranges")
	if !missing {
		found.Chain = []Link{{Kind: found.Subject.Kind, Object: object}}
	}
	return nil
}

// telling selects the events that may be about refusals. A busy namespace has many more of schedulers and kubelets.
func telling() fields.Selector {
	others := []string{"FailedScheduling", "BackOff", "Unhealthy", "Failed", "FailedMount", "FailedCreatePodSandBox"}
	selectors := make([]fields.Selector, 0, 1+len(others))
	selectors = append(selectors, fields.OneTermEqualSelector("type", corev1.EventTypeWarning))
	for _, reason := range others {
		selectors = append(selectors, fields.OneTermNotEqualSelector("reason", reason))
	}
	return fields.AndSelectors(selectors...)
}

// living selects the pods that have not ended.
func living() fields.Selector {
	return fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))
}

// readSurroundings reads only those classes and templates that what the workload makes depends on.
func (r *Reader) readSurroundings(ctx context.Context, found *Situation) error {
	templates := &resourceapi.ResourceClaimTemplateList{}
	priorities, runtimes, storages := &schedulingv1.PriorityClassList{}, &nodev1.RuntimeClassList{}, &storagev1.StorageClassList{}
	round := r.newRound()
	want := wantedOf(found)
	for _, part := range []struct {
		wanted   bool
		resource string
		list     client.ObjectList
	}{
		{want.PriorityClasses, "priorityclasses", priorities}, {want.RuntimeClasses, "runtimeclasses", runtimes},
		{want.StorageClasses, "storageclasses", storages},
	} {
		if part.wanted {
			round.list(part.resource, part.list)
		}
	}
	if want.templates {
		round.list("resourceclaimtemplates", templates, client.InNamespace(found.Namespace))
	}
	if err := round.wait(ctx); err != nil {
		return err
	}
	forbidden := round.forbidden()
	found.Surroundings.PriorityClasses, found.Surroundings.RuntimeClasses = priorities.Items, runtimes.Items
	found.Surroundings.StorageClasses = storages.Items
	found.Unread.PriorityClasses = slices.Contains(forbidden, "priorityclasses")
	found.Unread.RuntimeClasses = slices.Contains(forbidden, "runtimeclasses")
	found.Unread.StorageClasses = slices.Contains(forbidden, "storageclasses")
	replicaSets := found.Present.ReplicaSets
	found.Present = presentOf(&corev1.PodList{Items: found.Pods}, &appsv1.ReplicaSetList{},
		&corev1.PersistentVolumeClaimList{Items: found.Claims}, templates)
	found.Present.ReplicaSets, found.Present.Unlisted = replicaSets, found.isUnlisted()
	return nil
}

// isUnlisted reports whether the user may not list what there is, so that only statuses tell how much that is.
func (s *Situation) isUnlisted() bool {
	return slices.ContainsFunc([]string{"pods", "replicasets", "persistentvolumeclaims"}, func(resource string) bool {
		return slices.Contains(s.Forbidden, resource)
	})
}

// wanted is what a workload's pods depend on.
type wanted struct {
	Unread
	templates bool
}

func wantedOf(found *Situation) wanted {
	link, makes := found.Workload()
	if !makes {
		return wanted{}
	}
	spec := TemplateOf(link.Object).Spec
	limits := fitting.LimitsOf(found.Limits.Views, found.Limits.Quotas)
	fromTemplate := func(claim corev1.PodResourceClaim) bool { return claim.ResourceClaimTemplateName != nil }
	return wanted{
		Unread: Unread{
			PriorityClasses: spec.PriorityClassName == "" && slices.ContainsFunc(limits, ByPriority),
			RuntimeClasses:  spec.RuntimeClassName != nil && spec.Overhead == nil,
			StorageClasses:  slices.ContainsFunc(limits, ByStorageClass),
		},
		templates: slices.ContainsFunc(spec.ResourceClaims, fromTemplate),
	}
}

// Holders returns the ClusterResourceQuotas of these names, nil for each that the user may not read.
func (r *Reader) Holders(ctx context.Context, names []string) ([]*quotav1.ClusterResourceQuota, error) {
	read := make([]*quotav1.ClusterResourceQuota, len(names))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		group.Go(func() error {
			quota := &quotav1.ClusterResourceQuota{}
			err := r.client.Get(ctx, client.ObjectKey{Name: name}, quota)
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("reading quota %s: %w", name, err)
			}
			read[i] = quota
			return nil
		})
	}
	return read, group.Wait() //nolint:wrapcheck // wrapped above
}
