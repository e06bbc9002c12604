// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/controller/deployment/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// Situation is all that says why an object doesn't come up.
type Situation struct {
	Subject   Subject
	Namespace string
	// Chain begins with the subject and goes on with the objects that its controller made or scales: an autoscaler's
	// target, a Deployment's current ReplicaSet, a CronJob's newest Job. It is empty if the subject doesn't exist.
	Chain []client.Object
	// Target is the state of an autoscaler's target.
	Target ScaleTarget
	// Events of the namespace that may be about refusals.
	Events []corev1.Event
	// Pods of the namespace that have not ended, and all its claims.
	Pods   []corev1.Pod
	Claims []corev1.PersistentVolumeClaim
	Limits Limits
	// Present and Surroundings are as for fit, but hold only the objects that matter here.
	Present      fitting.Present
	Surroundings fitting.Surroundings
	Unread       Unread
	// Forbidden are the resources that the user may not read, sorted.
	Forbidden []string
}

// ScaleTarget is the state of an autoscaler's target.
type ScaleTarget string

const (
	// TargetRead: it is in the chain, or the subject is no autoscaler.
	TargetRead ScaleTarget = ""
	// TargetMissing: it doesn't exist.
	TargetMissing ScaleTarget = "doesn't exist"
	// TargetForeign: it is of a kind that a foreign controller looks after.
	TargetForeign ScaleTarget = "is of a kind that this command doesn't know"
)

// Workload returns the last link that makes pods, or is one: the one whose needs are compared with quotas.
func (s *Situation) Workload() (client.Object, bool) {
	for i, link := range slices.Backward(s.Chain) {
		// The ReplicaSet of a Deployment has no say: the Deployment decides how many there are.
		if isOfDeployment := i > 0 && KindOf(link).Kind == "ReplicaSet" && KindOf(s.Chain[i-1]).Kind == "Deployment"; isOfDeployment {
			continue
		}
		if TemplateOf(link) != nil {
			return link, true
		}
	}
	return nil, false
}

// Maker returns the link whose controller creates the pods.
func (s *Situation) Maker() client.Object { return s.Chain[len(s.Chain)-1] }

// TemplateOf returns the template of a workload's pods, or a template with the spec of a pod; nil for other objects.
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
	case *corev1.Pod:
		return &corev1.PodTemplateSpec{ObjectMeta: object.ObjectMeta, Spec: object.Spec}
	}
	return nil
}

// Situation reads the object and all that says why it doesn't come up: in one round of calls that are made at the same time,
// and one for each link of the chain. If the object doesn't exist, the Chain is empty, and that is no error.
func (r *Reader) Situation(ctx context.Context, namespace string, subject Subject) (*Situation, error) {
	found := &Situation{Subject: subject, Namespace: namespace}
	if err := r.readNamespace(ctx, found); err != nil {
		return nil, err
	}
	if len(found.Chain) == 0 {
		return found, nil
	}
	return found, r.follow(ctx, found)
}

// readNamespace reads in one round the object, and everything that doesn't depend on it.
func (r *Reader) readNamespace(ctx context.Context, found *Situation) error {
	in := client.InNamespace(found.Namespace)
	object, err := empty(found.Subject.GroupVersionKind)
	if err != nil {
		return err
	}
	missing := false
	templates := &resourceapi.ResourceClaimTemplateList{}
	round := r.newRound()
	round.call(func(ctx context.Context) error {
		err := r.client.Get(ctx, client.ObjectKey{Namespace: found.Namespace, Name: found.Subject.Name}, object)
		missing = apierrors.IsNotFound(err)
		return client.IgnoreNotFound(err)
	})
	list(round, "events", &corev1.EventList{}, itemsTo(&found.Events),
		in, client.MatchingFieldsSelector{Selector: telling()})
	list(round, "pods", &corev1.PodList{}, itemsTo(&found.Pods),
		in, client.MatchingFieldsSelector{Selector: living()})
	list(round, "persistentvolumeclaims", &corev1.PersistentVolumeClaimList{}, itemsTo(&found.Claims), in)
	list(round, "limitranges", &corev1.LimitRangeList{}, itemsTo(&found.Surroundings.LimitRanges), in)
	list(round, "resourceclaimtemplates", templates, kept, in)
	round.classes(&found.Surroundings)
	limits := round.limits(in)
	if err := round.wait(ctx); err != nil {
		return err
	}
	found.Limits, found.Forbidden, found.Unread = limits(), round.forbidden(), round.unread()
	found.Present = presentOf(&corev1.PodList{Items: found.Pods}, &appsv1.ReplicaSetList{},
		&corev1.PersistentVolumeClaimList{Items: found.Claims}, templates)
	found.Present.Unlisted = found.isUnlisted()
	if !missing {
		found.Chain = []client.Object{object}
	}
	return r.complete(ctx, &found.Limits, []string{found.Namespace})
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

// isUnlisted reports whether the user may not list the present objects, so that only statuses have their number.
func (s *Situation) isUnlisted() bool {
	return slices.ContainsFunc([]string{"pods", "replicasets", "persistentvolumeclaims"}, func(resource string) bool {
		return slices.Contains(s.Forbidden, resource)
	})
}

// Holders returns the ClusterResourceQuotas of these names, nil for each that the user may not read.
func (r *Reader) Holders(ctx context.Context, names []string) ([]*quotav1.ClusterResourceQuota, error) {
	read := make([]*quotav1.ClusterResourceQuota, len(names))
	round := r.newRound()
	for i, name := range names {
		round.call(func(ctx context.Context) error {
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
	return read, round.wait(ctx)
}

// follow reads the object that the last link of the chain made or scales, and the next ones.
func (r *Reader) follow(ctx context.Context, found *Situation) error {
	for {
		var next client.Object
		var err error
		switch link := found.Maker().(type) {
		case *autoscalingv2.HorizontalPodAutoscaler:
			next, err = r.target(ctx, found, link)
		case *appsv1.Deployment:
			var sets []*appsv1.ReplicaSet
			sets, err = madeBy[appsv1.ReplicaSet](ctx, r, found, link, "replicasets", &appsv1.ReplicaSetList{})
			found.Present.ReplicaSets, found.Present.Unlisted = sets, found.isUnlisted()
			if current := util.FindNewReplicaSet(link, sets); current != nil {
				next = current
			}
		case *batchv1.CronJob:
			var jobs []*batchv1.Job
			jobs, err = madeBy[batchv1.Job](ctx, r, found, link, "jobs", &batchv1.JobList{})
			if len(jobs) > 0 {
				next = slices.MaxFunc(jobs, func(a, b *batchv1.Job) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
			}
		}
		if err != nil || next == nil {
			return err
		}
		found.Chain = append(found.Chain, next)
	}
}

// madeBy lists the objects of a resource that the owner controls.
func madeBy[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *Reader, found *Situation, owner client.Object, resource string, into client.ObjectList) (made []P, err error) {
	var all []T
	round := r.newRound()
	list(round, resource, into, itemsTo(&all), client.InNamespace(found.Namespace))
	if err := round.wait(ctx); err != nil {
		return nil, err
	}
	found.Forbidden = append(found.Forbidden, round.forbidden()...)
	for i := range all {
		if object := P(&all[i]); metav1.IsControlledBy(object, owner) {
			made = append(made, object)
		}
	}
	return made, nil
}

// target returns the object that an autoscaler scales; nil if it can't be looked at.
func (r *Reader) target(ctx context.Context, found *Situation, scaler *autoscalingv2.HorizontalPodAutoscaler) (client.Object, error) {
	reference := scaler.Spec.ScaleTargetRef
	kind, known := kindLike(schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind())
	if !known {
		found.Target = TargetForeign
		return nil, nil //nolint:nilnil // Target says why
	}
	target, err := empty(kind)
	if err != nil {
		return nil, err
	}
	err = r.client.Get(ctx, client.ObjectKey{Namespace: found.Namespace, Name: reference.Name}, target)
	switch {
	case apierrors.IsNotFound(err):
		found.Target = TargetMissing
		return nil, nil //nolint:nilnil // Target says why
	case err != nil:
		return nil, fmt.Errorf("reading its target: %w", err)
	}
	return target, nil
}

// Warning returns the latest warning among the events about an object, as in "FailedMount: MESSAGE"; empty if there is
// none, or if the user may not read events.
func (r *Reader) Warning(ctx context.Context, namespace, kind, name string) (string, error) {
	var events []corev1.Event
	round := r.newRound()
	list(round, "events", &corev1.EventList{}, itemsTo(&events), client.InNamespace(namespace),
		client.MatchingFields{"involvedObject.kind": kind, "involvedObject.name": name})
	if err := round.wait(ctx); err != nil {
		return "", err
	}
	events = slices.DeleteFunc(events, func(event corev1.Event) bool {
		return event.Type != corev1.EventTypeWarning || event.InvolvedObject.Kind != kind || event.InvolvedObject.Name != name
	})
	if len(events) == 0 {
		return "", nil
	}
	latest := slices.MaxFunc(events, func(a, b corev1.Event) int { return render.LastSeen(&a).Compare(render.LastSeen(&b)) })
	return latest.Reason + ": " + latest.Message, nil
}
