// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/singleflight"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/admission"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get
// +kubebuilder:rbac:groups=apps,resources=deployments;daemonsets,verbs=get
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get
// +kubebuilder:rbac:groups=kubevirt.io,resources=virtualmachineinstances;virtualmachineinstancemigrations,verbs=get

// Replacements tell whether a pod replaces another one, which is about to end. They look at the API server's objects and at
// the user who creates the pod. A user who may create pods can give them any label and any owner. But nobody else creates
// pods as the user of a controller, and a controller creates them as its workloads say.
//
// A workload that has more pods than it asks for ends some of them, and no pod takes more than the one that it replaces. So
// the surge that its pods take is free again once it has as many as it asks for, unless it is scaled up meanwhile.
type Replacements struct {
	ReplacementParts

	// flights are the looks under way. Requests for pods of one workload share a look, so what they learn is a second old at
	// most. As many of them as share it may take surge by it: their controller creates no more pods than its workload may
	// have, and the ledger bounds them all.
	flights singleflight.Group
	// turns has one element for each of them that has begun, and mu guards own.
	turns chan struct{}
	mu    sync.Mutex
	// own are the turns of each namespace that has a look under way.
	own map[string]*ownTurns
}

// ownTurns has one element for each look that a namespace has begun. Looks of others don't wait for these.
type ownTurns struct {
	turns chan struct{}
	// users are how many looks wait or have begun.
	users int
}

// ReplacementParts are the dependencies of Replacements.
type ReplacementParts struct {
	Clock    clock.Clock
	Typed    kubernetes.Interface
	Untyped  dynamic.Interface
	Metadata metadata.Interface
	// KubeVirt are the users as which the controllers of KubeVirt create pods.
	KubeVirt []string
	// Outcomes is told of each look.
	Outcomes outcomes.Observer
}

// looksAtOnce bounds the looks that have begun, and looksOfNamespace those of one namespace.
const (
	looksAtOnce      = 32
	looksOfNamespace = 8
)

// NewReplacements makes Replacements.
func NewReplacements(parts ReplacementParts) *Replacements {
	return &Replacements{ReplacementParts: parts, turns: make(chan struct{}, looksAtOnce), own: map[string]*ownTurns{}}
}

// proof is whether an object replaces another one. The zero value is that it isn't known to.
type proof struct {
	// surger is the workload of an object that does.
	surger ledger.Surger
	// grows: it takes more than the one that it replaces, or has other claims.
	grows bool
	// err is why it couldn't be found out.
	err error
}

func (p proof) replaces() bool { return p.surger.UID != "" }

// errLooks is the answer to a look that gets no turn in time.
var errLooks = errors.New("too many others are being looked up")

// prove looks whether the object of a request is a pod that replaces another one, or comes with such a pod.
func (r *Replacements) prove(ctx context.Context, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes) proof {
	if r == nil || !creates(request) {
		return proof{}
	}
	asked, ok := r.asked(request, attributes)
	if !ok {
		return proof{}
	}
	var looked match
	var err error
	select {
	case result := <-r.flights.DoChan(asked.key(), func() (any, error) { return r.look(context.WithoutCancel(ctx), asked) }):
		looked, _ = result.Val.(match)
		err = result.Err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	found := r.compare(asked, looked, err)
	r.Outcomes.Looked(found.replaces(), found.err)
	return found
}

// compare returns the proof of a pod after a look, which may have been made for another pod of its workload: a webhook may
// have given that other requests.
func (r *Replacements) compare(asked ofPod, looked match, err error) proof {
	if err != nil || looked.old == nil {
		if apierrors.IsNotFound(err) {
			err = nil // an object that isn't there has no pods to replace
		}
		return proof{err: err}
	}
	fits, err := evaluation.TakesNoMore(r.Clock, cmp.Or(asked.pod, looked.with), looked.old)
	switch {
	case err != nil:
		return proof{err: err}
	case !fits:
		return proof{grows: true}
	default:
		return proof{surger: looked.surger}
	}
}

// look looks in its turn.
func (r *Replacements) look(ctx context.Context, asked ofPod) (found match, err error) {
	ctx, cancel := context.WithTimeout(ctx, admission.ProofWait)
	defer cancel()
	begun, end := r.begin(ctx, asked.namespace)
	defer end()
	if !begun {
		return match{}, errLooks
	}
	var with *corev1.Pod
	if asked.pod == nil {
		if asked, err = r.podOf(ctx, asked); err != nil {
			return match{}, err
		}
		with = asked.pod
	}
	look := map[schema.GroupKind]func(context.Context, ofPod) (match, error){
		replicaSets: r.ofReplicaSet, daemonSets: r.ofDaemonSet, jobs: r.ofJob, machines: r.ofMachine,
	}[kindOf(asked.owner)]
	if look == nil {
		return match{}, nil
	}
	found, err = look(ctx, asked)
	found.with = with
	return found, err
}

// begin waits for a turn, and reports whether there was one.
func (r *Replacements) begin(ctx context.Context, namespace string) (begun bool, end func()) {
	r.mu.Lock()
	own := r.own[namespace]
	if own == nil {
		own = &ownTurns{turns: make(chan struct{}, looksOfNamespace)}
		r.own[namespace] = own
	}
	own.users++
	r.mu.Unlock()
	var held []chan struct{}
	end = func() {
		for _, turns := range held {
			<-turns
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		own.users--
		if own.users == 0 {
			delete(r.own, namespace)
		}
	}
	for _, turns := range []chan struct{}{own.turns, r.turns} {
		select {
		case turns <- struct{}{}:
			held = append(held, turns)
		case <-ctx.Done():
			return false, end
		}
	}
	return true, end
}

// ofPod is a pod as it is asked about.
type ofPod struct {
	namespace string
	// owner is the controller of the pod. If pod is nil, it is the pod itself, which an object of another kind comes with.
	owner *metav1.OwnerReference
	pod   *corev1.Pod
	// there: the pod exists already.
	there bool
}

// key is equal for pods of which a look finds the same.
func (p ofPod) key() string {
	parts := []string{p.namespace, p.owner.Kind, p.owner.Name, string(p.owner.UID)}
	if p.pod != nil {
		annotations := p.pod.Annotations
		parts = append(parts, nodeOf(p.pod), annotations[indexAnnotation], p.pod.Labels[migrationLabel], annotations[migrationName])
	}
	return strings.Join(parts, "\n")
}

// The kinds of owners whose pods may replace others. A pod owns its claims.
var (
	replicaSets = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	deployments = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	daemonSets  = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	jobs        = schema.GroupKind{Group: "batch", Kind: "Job"}
	machines    = schema.GroupKind{Group: "kubevirt.io", Kind: "VirtualMachineInstance"}
	pods        = schema.GroupKind{Kind: "Pod"}
)

func kindOf(owner *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
}

// asked returns the pod that a request is about, if its user creates such pods, or the objects that come with pods.
func (r *Replacements) asked(request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes) (ofPod, bool) {
	owner := controllerOf(attributes)
	if owner == nil {
		return ofPod{}, false
	}
	users := map[schema.GroupKind][]string{
		replicaSets: controllers("replicaset-controller"), daemonSets: controllers("daemon-set-controller"),
		jobs: controllers("job-controller"), machines: r.KubeVirt,
	}
	asked := ofPod{namespace: request.Namespace, owner: owner}
	switch (schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}) {
	case schema.GroupResource{Resource: "pods"}:
		pod, isPod := attributes.GetObject().(*corev1.Pod)
		if !isPod {
			return ofPod{}, false
		}
		asked.pod = pod
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		users = map[schema.GroupKind][]string{pods: controllers("ephemeral-volume-controller")}
	case schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}:
		users = map[schema.GroupKind][]string{pods: controllers("resource-claim-controller")}
	default:
		return ofPod{}, false
	}
	return asked, slices.Contains(users[kindOf(owner)], request.UserInfo.Username)
}

// controllers returns the users as which a controller of Kubernetes creates objects. If the controllers have no service
// accounts of their own, all of them are one user.
func controllers(name string) []string {
	return []string{"system:serviceaccount:" + metav1.NamespaceSystem + ":" + name, "system:kube-controller-manager"}
}
