// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of all types in this package.
var GroupVersion = schema.GroupVersion{Group: "quota.sharedquota.dev", Version: "v1"}

var schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers the types of this package.
var AddToScheme = schemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ClusterResourceQuota{}, &ClusterResourceQuotaList{},
		&LocalResourceQuota{}, &LocalResourceQuotaList{},
		&QuotaLedger{}, &QuotaLedgerList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
