// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// API groups of whose quotas are converted. OpenShift's was in the core group until OpenShift 3.6.
const (
	coreGroup      = ""
	openShiftGroup = "quota.openshift.io"
	hncGroup       = "hnc.x-k8s.io"
	capsuleGroup   = "capsule.clastix.io"
	kubeVirtGroup  = "aaq.kubevirt.io"
)

// kindConversion is how one kind is converted.
type kindConversion struct {
	// versions are those whose fields are known, the newest one last.
	versions []string
	convert  func(object *Object, outcome *Outcome) error
	// fields are the fields that may be left, and why.
	fields []fieldNote
	// places are the paths of the fields that may be at a wrong one.
	places []string
}

func conversions() map[schema.GroupKind]kindConversion {
	inSpec := strings.Fields("spec.hard")
	inQuota := strings.Fields("spec.quota spec.quota.hard spec.quota.scopes spec.quota.scopeSelector")
	labeled := append(strings.Fields("spec.selector spec.selector.labels spec.selector.annotations spec.selector.labels.matchLabels "+
		"spec.selector.labels.matchExpressions"), inQuota...)
	inItems := strings.Fields("spec.resourceQuotas spec.resourceQuotas.items spec.resourceQuotas.scope spec.resourceQuotas.items[].hard " +
		"spec.resourceQuotas.items[].scopes spec.resourceQuotas.items[].scopeSelector")
	openShift := kindConversion{versions: []string{"v1"}, convert: convertOpenShift, places: labeled}
	return map[schema.GroupKind]kindConversion{
		{Group: openShiftGroup, Kind: "ClusterResourceQuota"}: openShift,
		{Group: coreGroup, Kind: "ClusterResourceQuota"}:      openShift,
		{Group: hncGroup, Kind: "HierarchicalResourceQuota"}: {
			versions: []string{"v1alpha2"}, convert: convertHNC, places: inSpec,
		},
		{Group: capsuleGroup, Kind: "Tenant"}: {
			versions: []string{"v1beta1", "v1beta2"}, convert: convertTenant, fields: ofTenant(), places: inItems,
		},
		{Group: capsuleGroup, Kind: "ResourcePool"}: {
			versions: []string{"v1beta2"}, convert: convertResourcePool, fields: ofResourcePool, places: append(inQuota, "spec.selectors"),
		},
		{Group: capsuleGroup, Kind: "GlobalResourceQuota"}: {
			versions: []string{"v1beta2"}, convert: convertGlobalResourceQuota, places: append(inQuota, "spec.namespaceSelectors"),
		},
		{Group: kubeVirtGroup, Kind: "ApplicationAwareClusterResourceQuota"}: {
			versions: []string{"v1alpha1"}, convert: convertKubeVirt, places: labeled,
		},
	}
}

// notConverted are the kinds that have to do with quotas and don't become any.
func notConverted() map[schema.GroupKind]Note {
	return map[schema.GroupKind]Note{
		{Group: quotav1.GroupVersion.Group, Kind: "ClusterResourceQuota"}:           {Skipped, outcomes.SkippedAlready.Text()},
		{Group: quotav1.GroupVersion.Group, Kind: "LocalResourceQuota"}:             {Skipped, outcomes.SkippedView.Text()},
		{Group: openShiftGroup, Kind: "AppliedClusterResourceQuota"}:                {Skipped, outcomes.SkippedView.Text()},
		{Group: coreGroup, Kind: "AppliedClusterResourceQuota"}:                     {Skipped, outcomes.SkippedView.Text()},
		{Group: coreGroup, Kind: "ResourceQuota"}:                                   {Skipped, outcomes.SkippedSingle.Text()},
		{Group: kubeVirtGroup, Kind: "ApplicationAwareAppliedClusterResourceQuota"}: {Skipped, outcomes.SkippedView.Text()},
		{Group: kubeVirtGroup, Kind: "ApplicationAwareResourceQuota"}:               {Skipped, outcomes.SkippedGated.Text()},
		{Group: kubeVirtGroup, Kind: "AAQ"}:                                         {Skipped, outcomes.SkippedAAQ.Text()},
		{Group: capsuleGroup, Kind: "ResourcePoolClaim"}:                            {Lost, outcomes.ClaimLost.Text()},
		{Group: capsuleGroup, Kind: "CustomQuota"}:                                  {Lost, outcomes.CustomLost.Text()},
		{Group: capsuleGroup, Kind: "GlobalCustomQuota"}:                            {Lost, outcomes.CustomLost.Text()},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:           {Skipped, outcomes.SkippedDefinition.Text()},
	}
}

// described returns a quota with the name, labels and annotations of the object.
func (o *Object) described(name string) *quotav1.ClusterResourceQuota {
	annotations := maps.Clone(o.metadata.Annotations)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	return &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: o.metadata.Labels, Annotations: annotations}}
}

// withSpec returns a quota with the name, labels, annotations and spec of an object whose spec has the same fields.
func (o *Object) withSpec(outcome *Outcome) (*quotav1.ClusterResourceQuota, error) {
	var spec struct {
		Selector quotav1.ClusterResourceQuotaSelector `json:"selector"`
		Quota    quotav1.ResourceQuotaSpec            `json:"quota"`
	}
	if err := o.decode("spec", &spec); err != nil {
		return nil, err
	}
	quota := o.described(o.metadata.Name)
	quota.Spec.Selector, quota.Spec.Quota = spec.Selector, spec.Quota
	if len(quota.Spec.Selector.AnnotationSelector) > 0 {
		outcome.note(Remark, outcomes.AnnotationsAsked.Text())
	}
	return quota, nil
}

// OpenShift counts image streams under a name of its own, and Kubernetes by their resource.
const (
	openShiftImageStreams = corev1.ResourceName("openshift.io/imagestreams")
	countedImageStreams   = corev1.ResourceName("count/imagestreams.image.openshift.io")
)

// convertOpenShift converts OpenShift's ClusterResourceQuota, whose spec has the
// same fields (github.com/openshift/api, quota/v1/types.go, from v3.9.0 to 2026).
func convertOpenShift(object *Object, outcome *Outcome) error {
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

// treeLabelSuffix ends the label that HNC gives to a namespace and all below it: NAMESPACE.tree.hnc.x-k8s.io/depth.
const treeLabelSuffix = ".tree.hnc.x-k8s.io/depth"

// convertHNC converts HNC's HierarchicalResourceQuota, which has limits and nothing else
// (sigs.k8s.io/hierarchical-namespaces v1.1.0, api/v1alpha2/hierarchicalresourcequota_types.go). Its name is unique in its
// namespace only, so the quota's begins with that.
func convertHNC(object *Object, outcome *Outcome) error {
	namespace := object.metadata.Namespace
	if namespace == "" {
		return outcomes.WithoutNamespace.Err()
	}
	var spec struct {
		Hard corev1.ResourceList `json:"hard"`
	}
	if err := object.decode("spec", &spec); err != nil {
		return err
	}
	quota := object.described(namespace + "-" + object.metadata.Name)
	quota.Spec.Quota.Hard = spec.Hard
	quota.Spec.Selector = quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: namespace + treeLabelSuffix, Operator: metav1.LabelSelectorOpExists},
		},
	}}
	outcome.note(Remark, outcomes.HNCLabels.Text(namespace, treeLabelSuffix))
	outcome.add(quota)
	return nil
}

const (
	// machineInstances, machineCPU and machineMemory are the names by which KubeVirt limits virtual machines apart from
	// pods (github.com/kubevirt/application-aware-quota, pkg/apis/core/v1alpha1/types.go). It writes requests. before
	// them; some of its users leave that out.
	machineInstances = "instances/vmi"
	machineCPU       = "cpu/vmi"
	machineMemory    = "memory/vmi"
	// countedMachines counts virtual machines that run by their own resource.
	countedMachines = corev1.ResourceName("count/virtualmachineinstances.kubevirt.io")
)

// convertKubeVirt converts KubeVirt's ApplicationAwareClusterResourceQuota, whose spec is that
// of OpenShift's ClusterResourceQuota, with limits on virtual machines besides.
func convertKubeVirt(object *Object, outcome *Outcome) error {
	quota, err := object.withSpec(outcome)
	if err != nil {
		return err
	}
	convertMachines(&quota.Spec.Quota, outcome)
	outcome.note(Remark, outcomes.NotGated.Text())
	outcome.add(quota)
	return nil
}

// convertMachines replaces the limits on virtual machines. Their number is counted by their own resource; the resources
// that they request aren't counted.
func convertMachines(spec *quotav1.ResourceQuotaSpec, outcome *Outcome) {
	for _, name := range slices.Sorted(maps.Keys(spec.Hard)) {
		limit := spec.Hard[name]
		switch strings.TrimPrefix(string(name), "requests.") {
		case machineInstances:
			countInstead(spec, name, countedMachines, outcome, "KubeVirt")
		case machineCPU, machineMemory:
			delete(spec.Hard, name)
			outcome.note(Lost, outcomes.MachinesLost.Text(name, limit.String()))
		}
	}
}

// countInstead replaces a limit by a count of the resource. A quota with scopes counts only objects that can be in a scope.
func countInstead(spec *quotav1.ResourceQuotaSpec, name, counted corev1.ResourceName, outcome *Outcome, peer string) {
	limit := spec.Hard[name]
	delete(spec.Hard, name)
	if len(spec.Scopes) > 0 || spec.ScopeSelector != nil {
		outcome.note(Lost, outcomes.NeverInScope.Text(name, limit.String(), plurals[counted], counted))
		return
	}
	if other, both := spec.Hard[counted]; !both || limit.Cmp(other) < 0 {
		spec.Hard[counted] = limit
	}
	outcome.note(Remark, outcomes.RenamedLimit.Text(name, limit.String(), peer, counted))
}
