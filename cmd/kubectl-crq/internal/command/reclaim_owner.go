// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// owner is the controller that an object says it has. Anybody who may create the object may write anything there.
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

// ownersOf returns the controllers above a pod, the nearest first and the one that decides last.
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
