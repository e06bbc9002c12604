// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	kubecontroller "k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// Nodes is on how many nodes a DaemonSet runs, if the user said so.
type Nodes struct {
	Said  bool
	Count int64
}

// Present reads the objects in a namespace that workloads made. Objects that the
// user may not read are noted, and taken for new.
func (r *Reader) Present(ctx context.Context, namespace string) (present fitting.Present, notes []string, err error) {
	pods, sets, claims, templates := &corev1.PodList{}, &appsv1.ReplicaSetList{}, &corev1.PersistentVolumeClaimList{},
		&resourceapi.ResourceClaimTemplateList{}
	round := r.newRound()
	in := client.InNamespace(namespace)
	list(round, "pods", pods, kept, in)
	list(round, "replicasets", sets, kept, in)
	list(round, "persistentvolumeclaims", claims, kept, in)
	// Not every cluster serves them. A claim whose template is missing is noted.
	list(round, "resourceclaimtemplates", templates, kept, in)
	if err := round.wait(ctx); err != nil {
		return present, nil, err
	}
	for _, resource := range round.forbidden() {
		if resource != "resourceclaimtemplates" {
			notes = append(notes, unreadPresent(resource, namespace))
		}
	}
	return presentOf(pods, sets, claims, templates), notes, nil
}

func presentOf(
	pods *corev1.PodList, replicaSets *appsv1.ReplicaSetList, claims *corev1.PersistentVolumeClaimList,
	templates *resourceapi.ResourceClaimTemplateList,
) fitting.Present {
	present := fitting.Present{Claims: sets.New[string](), ClaimTemplates: map[string]*resourceapi.ResourceClaimTemplate{}}
	for i := range pods.Items {
		if kubecontroller.IsPodActive(&pods.Items[i]) {
			present.Pods = append(present.Pods, &pods.Items[i])
		}
	}
	for i := range replicaSets.Items {
		present.ReplicaSets = append(present.ReplicaSets, &replicaSets.Items[i])
	}
	for i := range claims.Items {
		present.Claims.Insert(claims.Items[i].Name)
	}
	for i := range templates.Items {
		present.ClaimTemplates[templates.Items[i].Name] = &templates.Items[i]
	}
	return present
}

// NodesOf returns the function that counts the nodes on which a DaemonSet runs:
// the user's number counts, and else the nodes that can be read.
func (r *Reader) NodesOf(ctx context.Context, said Nodes) (func(*appsv1.DaemonSet) (int64, bool), error) {
	if said.Said {
		return func(*appsv1.DaemonSet) (int64, bool) { return said.Count, true }, nil
	}
	nodes := &corev1.NodeList{}
	round := r.newRound()
	list(round, "nodes", nodes, kept)
	if err := round.wait(ctx); err != nil {
		return nil, err
	}
	return func(set *appsv1.DaemonSet) (count int64, known bool) {
		for i := range nodes.Items {
			if runs, _ := daemon.NodeShouldRunDaemonPod(logr.Discard(), &nodes.Items[i], set); runs {
				count++
			}
		}
		return count, len(round.refused) == 0
	}, nil
}
