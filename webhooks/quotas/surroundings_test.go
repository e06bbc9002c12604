// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
)

// surroundings are the cluster that warnings are about.
type surroundings struct {
	// namespace name -> its team
	teams map[string]string
	// resource -> how it is served, if not in namespaces; nil if that is unknown
	served map[schema.GroupResource]*Served
	// quota name -> the selector of OpenShift's quota of that name
	openShift map[string]quotav1.ClusterResourceQuotaSelector
	quotas    []quotav1.ClusterResourceQuota
	defined   []definition.Definition // of quotas, once a call asks
	// resource -> its objects
	objects map[string][]client.Object

	// The error of each question.
	namespacesErr, servedErr, openShiftErr, visitErr error
	// hang keeps every question waiting until its context ends.
	hang bool
	// mu guards the fields below.
	mu sync.Mutex
	// asked is how many questions there were, and visited the listed resources.
	asked   int
	visited []string
}

func (s *surroundings) warner() *Warner {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	return &Warner{
		Clock: clock, Namespaces: s, Evaluators: evaluation.New(clock, evaluation.ClaimSources{}), Cluster: s,
		Protected: []string{"kube-system", "kube-public"},
	}
}

func (s *surroundings) answer(ctx context.Context, err error) error {
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	if s.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (s *surroundings) labels(namespace string) map[string]string {
	return map[string]string{"team": s.teams[namespace], corev1.LabelMetadataName: namespace}
}

func (s *surroundings) Selected(ctx context.Context, selectors ...definition.Selector) ([]string, error) {
	if err := s.answer(ctx, s.namespacesErr); err != nil {
		return nil, err
	}
	var selected []string
	for _, name := range slices.Sorted(maps.Keys(s.teams)) {
		if !slices.ContainsFunc(selectors, func(selector definition.Selector) bool { return !selector.Matches(s.labels(name), nil) }) {
			selected = append(selected, name)
		}
	}
	return selected, nil
}

func (s *surroundings) Known(namespace string) (namespaces.Covered, bool) {
	for i := len(s.defined); i < len(s.quotas); i++ {
		s.defined = append(s.defined, definition.Salvage(&s.quotas[i]))
	}
	covered := namespaces.Covered{}
	for i := range s.defined {
		if s.defined[i].Selector.Matches(s.labels(namespace), nil) {
			covered.Definitions = append(covered.Definitions, s.defined[i])
		}
	}
	return covered, true
}

func (s *surroundings) Served(ctx context.Context, resources []schema.GroupResource) (map[schema.GroupResource]Served, error) {
	if err := s.answer(ctx, s.servedErr); err != nil {
		return nil, err
	}
	served := map[schema.GroupResource]Served{{Group: "batch", Resource: "jobs"}: {Version: "v1", Namespaced: true}}
	for _, resource := range resources {
		how, known := s.served[resource]
		switch {
		case !known:
			served[resource] = Served{Version: "v1", Namespaced: true}
		case how != nil:
			served[resource] = *how
		}
	}
	return served, nil
}

func (s *surroundings) OpenShiftSelector(ctx context.Context, name string) (quotav1.ClusterResourceQuotaSelector, bool, error) {
	if err := s.answer(ctx, s.openShiftErr); err != nil {
		return quotav1.ClusterResourceQuotaSelector{}, false, err
	}
	selector, found := s.openShift[name]
	return selector, found, nil
}

func (s *surroundings) Quotas(context.Context) ([]quotav1.ClusterResourceQuota, error) {
	return s.quotas, nil
}

func (s *surroundings) Visit(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, visit func(client.Object) error,
) error {
	s.mu.Lock()
	s.visited = append(s.visited, resource.Resource+"/"+namespace)
	s.mu.Unlock()
	if err := s.answer(ctx, s.visitErr); err != nil {
		return err
	}
	for _, object := range s.objects[resource.Resource] {
		if namespace == "" || object.GetNamespace() == namespace {
			if err := visit(object); err != nil {
				return err
			}
		}
	}
	return nil
}
