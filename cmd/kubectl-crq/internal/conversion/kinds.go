// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
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
	kubeVirtGroup  = "aaq.kubevirt.io"
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
		{Group: kubeVirtGroup, Kind: "ApplicationAwareClusterResourceQuota"}: {
			versions: []string{"v1alpha1"}, convert: convertKubeVirt,
		},
	}
}

// notConverted are the kinds that have to do with quotas and don't become any.
func notConverted() map[schema.GroupKind]Note {
	return map[schema.GroupKind]Note{
		{Group: quotav1.GroupVersion.Group, Kind: "ClusterResourceQuota"}:           {Skipped, skippedAlready},
		{Group: openShiftGroup, Kind: "AppliedClusterResourceQuota"}:                {Skipped, skippedView},
		{Group: coreGroup, Kind: "AppliedClusterResourceQuota"}:                     {Skipped, skippedView},
		{Group: coreGroup, Kind: "ResourceQuota"}:                                   {Skipped, skippedSingle},
		{Group: kubeVirtGroup, Kind: "ApplicationAwareAppliedClusterResourceQuota"}: {Skipped, skippedView},
		{Group: kubeVirtGroup, Kind: "ApplicationAwareResourceQuota"}:               {Skipped, skippedGated},
		{Group: kubeVirtGroup, Kind: "AAQ"}:                                         {Skipped, skippedAAQ},
		{Group: capsuleGroup, Kind: "ResourcePoolClaim"}:                            {Lost, lostClaim},
		{Group: capsuleGroup, Kind: "CustomQuota"}:                                  {Lost, lostCustom},
		{Group: capsuleGroup, Kind: "GlobalCustomQuota"}:                            {Lost, lostCustom},
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

// withSpec returns a quota with the name, labels, annotations and spec of an object whose spec has the same fields.
func (o *Object) withSpec(outcome *Outcome) (*quotav1.ClusterResourceQuota, error) {
	quota, err := o.described(o.metadata("name"))
	if err != nil {
		return nil, err
	}
	if err := o.take(&quota.Spec, "spec"); err != nil {
		return nil, err
	}
	if len(quota.Spec.Selector.AnnotationSelector) > 0 {
		outcome.remark(annotationsAsked)
	}
	return quota, nil
}

// What OpenShift counts under a name of its own, and Kubernetes by its resource.
const (
	openShiftImageStreams = corev1.ResourceName("openshift.io/imagestreams")
	countedImageStreams   = corev1.ResourceName("count/imagestreams.image.openshift.io")
)

// convertOpenShift converts OpenShift's ClusterResourceQuota, whose spec has the
// same fields (github.com/openshift/api, quota/v1/types.go, from v3.9.0 to 2026).
func convertOpenShift(object *Object, _ string, outcome *Outcome) error {
	quota, err := object.withSpec(outcome)
	if err != nil {
		return err
	}
	if _, limited := quota.Spec.Quota.Hard[openShiftImageStreams]; limited {
		countInstead(&quota.Spec.Quota, openShiftImageStreams, countedImageStreams, outcome, "OpenShift")
	}
	outcome.add(quota)
	return nil
}

// treeLabelSuffix ends the label that HNC gives to a namespace and all below it:
// NAMESPACE.tree.hnc.x-k8s.io/depth.
const treeLabelSuffix = ".tree.hnc.x-k8s.io/depth"

// convertHNC converts HNC's HierarchicalResourceQuota, which has limits and
// nothing else (sigs.k8s.io/hierarchical-namespaces v1.1.0,
// api/v1alpha2/hierarchicalresourcequota_types.go). Its name is unique in its
// namespace only, so the quota's begins with that.
func convertHNC(object *Object, defaultNamespace string, outcome *Outcome) error {
	namespace := object.metadata("namespace")
	if namespace == "" {
		namespace = defaultNamespace
	}
	if namespace == "" {
		return errors.New(withoutNamespace)
	}
	quota, err := object.described(namespace + "-" + object.metadata("name"))
	if err != nil {
		return err
	}
	if err := object.take(&quota.Spec.Quota.Hard, "spec", "hard"); err != nil {
		return err
	}
	object.ignore("metadata.namespace")
	quota.Spec.Selector = quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: namespace + treeLabelSuffix, Operator: metav1.LabelSelectorOpExists},
		},
	}}
	outcome.remark(hncLabelsStop(namespace))
	outcome.add(quota)
	return nil
}
