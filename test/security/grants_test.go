// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// grant is one right that a role gives.
type grant struct{ role, group, resource, verb string }

func (g grant) String() string {
	return fmt.Sprintf("%s: %s %s in group %q", g.role, g.verb, g.resource, g.group)
}

func (g grant) covers(r suite.Request) bool {
	return g.verb == r.Verb && (g.group == rbacv1.APIGroupAll || g.group == r.Group) &&
		(g.resource == rbacv1.ResourceAll || g.resource == r.Resource)
}

// breadth says how much the grant is for: one resource, all of a group, or all there are.
func (g grant) breadth() int {
	switch {
	case g.resource != rbacv1.ResourceAll:
		return 0
	case g.group != rbacv1.APIGroupAll:
		return 1
	default:
		return 2
	}
}

// grantsOf returns every right that some binding gives the ServiceAccount itself.
func grantsOf(ctx context.Context, reader client.Reader, namespace, name string) ([]grant, error) {
	matches := func(subject rbacv1.Subject) bool {
		return subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == namespace && subject.Name == name
	}
	var roles []rbacv1.RoleRef
	clusterBindings, bindings := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	if err := reader.List(ctx, clusterBindings); err != nil {
		return nil, err
	}
	if err := reader.List(ctx, bindings, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for i := range clusterBindings.Items {
		if slices.ContainsFunc(clusterBindings.Items[i].Subjects, matches) {
			roles = append(roles, clusterBindings.Items[i].RoleRef)
		}
	}
	for i := range bindings.Items {
		if slices.ContainsFunc(bindings.Items[i].Subjects, matches) {
			roles = append(roles, bindings.Items[i].RoleRef)
		}
	}
	var grants []grant
	for _, role := range roles {
		rules, err := rulesOf(ctx, reader, namespace, role)
		if err != nil {
			return nil, err
		}
		for _, rule := range rules {
			grants = append(grants, flatten(role.Name, rule)...)
		}
	}
	return grants, nil
}

func rulesOf(ctx context.Context, reader client.Reader, namespace string, role rbacv1.RoleRef) ([]rbacv1.PolicyRule, error) {
	if role.Kind == "ClusterRole" {
		found := &rbacv1.ClusterRole{}
		err := reader.Get(ctx, client.ObjectKey{Name: role.Name}, found)
		return found.Rules, err
	}
	found := &rbacv1.Role{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: role.Name}, found)
	return found.Rules, err
}

func flatten(role string, rule rbacv1.PolicyRule) []grant {
	var grants []grant
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				grants = append(grants, grant{role: role, group: group, resource: resource, verb: verb})
			}
		}
	}
	return grants
}

// unused returns the grants without which the same requests would have been allowed.
// A broad one is used by what no narrower one is for.
func unused(grants []grant, requests []suite.Request) []grant {
	var without []grant
	for _, given := range grants {
		used := slices.ContainsFunc(requests, func(r suite.Request) bool {
			return given.covers(r) && !slices.ContainsFunc(grants, func(other grant) bool {
				return other.breadth() < given.breadth() && other.covers(r)
			})
		})
		if !used {
			without = append(without, given)
		}
	}
	return without
}
