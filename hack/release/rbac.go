// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// clusterPermissions are the rules of all ClusterRoles that are bound to the
// operator. The ClusterServiceVersion holds these; other ClusterRoles and
// ClusterRoleBindings, which are for people, are returned to be objects of the
// bundle.
//
// What the operator may do in its own namespace is not among the permissions of
// the ClusterServiceVersion: for an operator of all namespaces OLM makes these
// ClusterRoles, and the operator could write Secrets and Leases everywhere. Its
// Roles and RoleBindings are objects of the bundle, too.
func (g *inputs) clusterPermissions() ([]operatorsv1alpha1.StrategyDeploymentPermissions, []*unstructured.Unstructured, error) {
	var permissions []operatorsv1alpha1.StrategyDeploymentPermissions
	var bound, forPeople []string
	for i := range g.bindings {
		binding := &g.bindings[i]
		switch own, err := g.isOwn(binding); {
		case err != nil:
			return nil, nil, fmt.Errorf("ClusterRoleBinding %s: %w", binding.Name, err)
		case !own:
			forPeople = append(forPeople, binding.RoleRef.Name)
			continue
		}
		role := slices.IndexFunc(g.roles, func(role rbacv1.ClusterRole) bool { return role.Name == binding.RoleRef.Name })
		if role < 0 {
			return nil, nil, fmt.Errorf("ClusterRoleBinding %s: there is no ClusterRole %s", binding.Name, binding.RoleRef.Name)
		}
		bound = append(bound, binding.Name, binding.RoleRef.Name)
		permissions = append(permissions, operatorsv1alpha1.StrategyDeploymentPermissions{
			ServiceAccountName: g.account.GetName(), Rules: g.roles[role].Rules,
		})
	}
	return permissions, g.roleObjects(bound, forPeople), nil
}

// isOwn tells whether a binding is for the operator alone.
func (g *inputs) isOwn(binding *rbacv1.ClusterRoleBinding) (bool, error) {
	own := 0
	for _, subject := range binding.Subjects {
		if g.isAccount(subject) {
			own++
		}
	}
	if own > 0 && own < len(binding.Subjects) {
		return false, fmt.Errorf("it is for the operator and for others, whose namespaces OLM doesn't know")
	}
	return own > 0, nil
}

// roleObjects are the ClusterRoles and ClusterRoleBindings but those by which the
// operator alone has its permissions.
func (g *inputs) roleObjects(bound, forPeople []string) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, object := range g.all {
		role := object.GetKind() == "ClusterRole" && slices.Contains(forPeople, object.GetName())
		cluster := object.GetKind() == "ClusterRole" || object.GetKind() == "ClusterRoleBinding"
		if cluster && (role || !slices.Contains(bound, object.GetName())) {
			objects = append(objects, object)
		}
	}
	return objects
}
