// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

var errNotNeeded = errors.New("evaluating a claim needs no list of pods")

// timeout bounds each read.
const timeout = 5 * time.Second

// +kubebuilder:rbac:groups="",resources=pods,verbs=get
// +kubebuilder:rbac:groups=resource.k8s.io,resources=deviceclasses,verbs=list;watch

// Reader answers the evaluator of ResourceClaims two questions about a claim: which pod it was made for, and which other claims that
// pod has. Both are read live, and only for the rare claims that the scheduler makes for a pod's extended resources.
type Reader struct {
	client kubernetes.Interface
}

var (
	_ corev1listers.PodLister          = Reader{}
	_ corev1listers.PodNamespaceLister = podsOf{}
)

// Sources lets ResourceClaims be evaluated if the cluster serves them; if it
// doesn't, the ClaimSources are zero.
func Sources(ctx context.Context, mgr ctrl.Manager) (evaluation.ClaimSources, *Classes, error) {
	kind := resourceapi.SchemeGroupVersion.WithKind("DeviceClass")
	_, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return evaluation.ClaimSources{}, &Classes{}, nil
	}
	if err != nil {
		return evaluation.ClaimSources{}, nil, fmt.Errorf("looking for device classes: %w", err)
	}
	classes, err := follow(ctx, mgr)
	if err != nil {
		return evaluation.ClaimSources{}, nil, fmt.Errorf("following device classes: %w", err)
	}
	client, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return evaluation.ClaimSources{}, nil, fmt.Errorf("making the client of claims: %w", err)
	}
	reader := Reader{client: client}
	return evaluation.ClaimSources{DeviceClasses: classes.Offers, Pods: reader, ClaimsOfPod: reader.ClaimsOfPod}, classes, nil
}

// ClaimsOfPod returns the claims that a pod controls and that were made for its
// extended resources.
func (r Reader) ClaimsOfPod(namespace string, podUID types.UID) ([]*resourceapi.ResourceClaim, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	list, err := r.client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the claims of namespace %s: %w", namespace, err)
	}
	var claims []*resourceapi.ResourceClaim
	for i := range list.Items {
		claim := &list.Items[i]
		owner := metav1.GetControllerOfNoCopy(claim)
		if claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true" && owner != nil && owner.UID == podUID {
			claims = append(claims, claim)
		}
	}
	return claims, nil
}

// List is part of the PodLister interface, and not needed.
func (Reader) List(labels.Selector) ([]*corev1.Pod, error) { return nil, errNotNeeded }

// Pods returns the pods of a namespace.
func (r Reader) Pods(namespace string) corev1listers.PodNamespaceLister {
	return podsOf{reader: r, namespace: namespace}
}

type podsOf struct {
	reader    Reader
	namespace string
}

// List is part of the PodNamespaceLister interface, and not needed.
func (podsOf) List(labels.Selector) ([]*corev1.Pod, error) { return nil, errNotNeeded }

// Get reads one pod.
func (p podsOf) Get(name string) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	pod, err := p.reader.client.CoreV1().Pods(p.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading pod %s/%s: %w", p.namespace, name, err)
	}
	return pod, nil
}
