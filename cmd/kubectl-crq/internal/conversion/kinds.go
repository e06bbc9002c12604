// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// API groups of whose quotas are converted. OpenShift's was in the core group
// until OpenShift 3.6.
const (
	coreGroup      = ""
	openShiftGroup = "quota.openshift.io"
	hncGroup       = "hnc.x-k8s.io"
	capsuleGroup   = "capsule.clastix.io"
)

// kindConversion is how one kind is converted.
type kindConversion struct {
	// versions are those whose fields are known.
	versions []string
	convert  func(object *Object, defaultNamespace string, outcome *Outcome) error
	// fields are those that may be left, and why.
	fields []fieldNote
}

func conversions() map[schema.GroupKind]kindConversion {
	openShift := kindConversion{versions: []string{"v1"}, convert: convertOpenShift}
	return map[schema.GroupKind]kindConversion{
		{Group: openShiftGroup, Kind: "ClusterResourceQuota"}: openShift,
		{Group: coreGroup, Kind: "ClusterResourceQuota"}:      openShift,
		{Group: hncGroup, Kind: "HierarchicalResourceQuota"}: {
			versions: []string{"v1alpha2"}, convert: convertHNC,
		},
		{Group: capsuleGroup, Kind: "Tenant"}: {
			versions: []string{"v1beta1", "v1beta2"}, convert: convertTenant, fields: ofTenant,
		},
		{Group: capsuleGroup, Kind: "ResourcePool"}: {
			versions: []string{"v1beta2"}, convert: convertResourcePool, fields: ofResourcePool,
		},
		{Group: capsuleGroup, Kind: "GlobalResourceQuota"}: {
			versions: []string{"v1beta2"}, convert: convertGlobalResourceQuota,
		},
	}
}

// notConverted are the kinds that have to do with quotas and don't become any.
func notConverted() map[schema.GroupKind]Note {
	return map[schema.GroupKind]Note{
		{Group: quotav1.GroupVersion.Group, Kind: "ClusterResourceQuota"}: {Skipped, skippedAlready},
		{Group: openShiftGroup, Kind: "AppliedClusterResourceQuota"}:      {Skipped, skippedView},
		{Group: coreGroup, Kind: "AppliedClusterResourceQuota"}:           {Skipped, skippedView},
		{Group: coreGroup, Kind: "ResourceQuota"}:                         {Skipped, skippedSingle},
		{Group: capsuleGroup, Kind: "ResourcePoolClaim"}:                  {Lost, lostClaim},
		{Group: capsuleGroup, Kind: "CustomQuota"}:                        {Lost, lostCustom},
		{Group: capsuleGroup, Kind: "GlobalCustomQuota"}:                  {Lost, lostCustom},
	}
}

// conversionOf returns how a kind is converted, or why it isn't.
func conversionOf(kind schema.GroupVersionKind) (as kindConversion, why Note, converted bool) {
	as, converted = conversions()[kind.GroupKind()]
	if !converted {
		why, known := notConverted()[kind.GroupKind()]
		if !known {
			why = Note{Skipped, skippedOther}
		}
		return kindConversion{}, why, false
	}
	if !slices.Contains(as.versions, kind.Version) {
		return kindConversion{}, Note{Refused, unknownVersion(kind, as.versions)}, false
	}
	return as, Note{}, true
}

// described returns a quota with the name, labels and annotations of the object.
func (o *Object) described(name string) (*quotav1.ClusterResourceQuota, error) {
	quota := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := o.take(&quota.Labels, "metadata", "labels"); err != nil {
		return nil, err
	}
	if err := o.take(&quota.Annotations, "metadata", "annotations"); err != nil {
		return nil, err
	}
	delete(quota.Annotations, corev1.LastAppliedConfigAnnotation)
	if len(quota.Annotations) == 0 {
		quota.Annotations = nil
	}
	return quota, nil
}
