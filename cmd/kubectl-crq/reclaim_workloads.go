// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	jobutil "k8s.io/kubernetes/pkg/controller/job/util"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// appetite is whether a workload has pods, or is going to.
type appetite string

const (
	// wants: it has pods, or its controller makes them by itself.
	wants appetite = "wants pods"
	// rests: it is scaled to nothing or suspended, and may have pods again.
	rests appetite = "rests"
	// isOver: it never has pods again.
	isOver appetite = "is over"
)

// workload makes pods by a template.
type workload struct {
	kind     schema.GroupKind
	object   client.Object
	template *corev1.PodTemplateSpec
	appetite appetite
}

// text is as in "Deployment web".
func (w *workload) text() string { return w.kind.Kind + " " + w.object.GetName() }

// templated are the resources of workloads.
func templated() []string {
	return []string{"deployments", "replicasets", "statefulsets", "daemonsets", "replicationcontrollers", "jobs", "cronjobs"}
}

func (f *finder) findWorkloads() {
	addWorkloads(f, f.Deployments)
	addWorkloads(f, f.ReplicaSets)
	addWorkloads(f, f.StatefulSets)
	addWorkloads(f, f.DaemonSets)
	addWorkloads(f, f.Controllers)
	addWorkloads(f, f.Jobs)
	addWorkloads(f, f.CronJobs)
}

func addWorkloads[T any, P interface {
	*T
	client.Object
}](f *finder, objects []T) {
	for i := range objects {
		object := P(&objects[i])
		if template := reading.TemplateOf(object); template != nil {
			f.byUID[object.GetUID()] = len(f.workloads)
			f.workloads = append(f.workloads, workload{reading.KindOf(object).GroupKind(), object, template, appetiteOf(object)})
		}
	}
}

// appetiteOf takes a suspended Job for a workload that goes on: it has begun, or waits in a queue. A DaemonSet may get
// a node at any time.
func appetiteOf(object client.Object) appetite {
	switch object := object.(type) {
	case *batchv1.Job:
		if jobutil.IsJobFinished(object) {
			return isOver
		}
		return wants
	case *batchv1.CronJob:
		if ptr.Deref(object.Spec.Suspend, false) {
			return rests
		}
		return wants
	case *appsv1.DaemonSet:
		return wants
	}
	if of, _ := scaleOf(object); of.wants == 0 {
		return rests
	}
	return wants
}

// owner is the controller that an object says it has. Each creator of the object may write anything there.
type owner struct {
	schema.GroupVersionKind
	name string
	uid  types.UID
}

func (o owner) objectName() render.ObjectName { return render.ObjectName{Kind: o.Kind, Name: o.name} }

var kindPattern = regexp.MustCompile("^[A-Za-z][A-Za-z0-9]*$")

// ownerOf returns the controller of an object. A reference that no API server could serve is left out.
func ownerOf(object metav1.Object) (owner, bool) {
	reference := metav1.GetControllerOf(object)
	if reference == nil {
		return owner{}, false
	}
	version, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil || !kindPattern.MatchString(reference.Kind) || !isSubdomain(reference.Name) || !isVersion(version) {
		return owner{}, false
	}
	return owner{version.WithKind(reference.Kind), reference.Name, reference.UID}, true
}

func isSubdomain(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

func isVersion(of schema.GroupVersion) bool {
	return (of.Group == "" || isSubdomain(of.Group)) && len(validation.IsDNS1035Label(of.Version)) == 0
}

// isSchedule reports whether the owner makes objects at times, and leaves them alone afterwards.
func (o owner) isSchedule() bool { return o.Kind == "CronJob" && o.Group == "batch" }

// deepest is how many owners are above each other at most; references may go round in a circle.
const deepest = 8

// ownersOf returns the controllers above a pod, the nearest first and the deciding one last.
func (f *finder) ownersOf(pod client.Object) []owner {
	var owners []owner
	for object := pod; object != nil && len(owners) < deepest; {
		next, known := ownerOf(object)
		if !known || len(owners) > 0 && next.isSchedule() {
			break
		}
		owners, object = append(owners, next), nil
		if above := f.known(next); above != nil {
			object = above.object
		}
	}
	return owners
}

// known returns the workload that a reference is to; nil if there is none that is as the reference says.
func (f *finder) known(reference owner) *workload {
	at, there := f.byUID[reference.uid]
	if !there {
		return nil
	}
	one := &f.workloads[at]
	if one.object.GetName() != reference.name || one.kind != reference.GroupKind() {
		return nil
	}
	return one
}

// offer gives a finding its command, unless another controller looks after the object.
func offer(finding *render.Finding, on client.Object, command, caution string) {
	if above, owned := ownerOf(on); owned && !above.isSchedule() {
		finding.Command, finding.Caution = "", askOwner(above.objectName())
		return
	}
	finding.Command, finding.Caution = command, caution
}

func askOwner(name render.ObjectName) string {
	return name.String() + " controls it, and may need it or make it again. Ask those who run " + name.String() + "."
}

func askMaker(name render.ObjectName) string {
	return "this command doesn't know how to make " + name.String() + " smaller. Ask those who run it."
}

// kubectl returns a command line of kubectl in a namespace, which any shell takes as it is meant.
func kubectl(namespace string, words ...string) string {
	line := slices.Concat([]string{"kubectl"}, words, []string{"-n", namespace})
	for i := range line {
		line[i] = quoted(line[i])
	}
	return strings.Join(line, " ")
}

var plainWord = regexp.MustCompile("^[A-Za-z0-9._/=:-]+$")

// quoted returns a word as a shell reads it.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
