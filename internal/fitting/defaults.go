// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isDefaultClass is the annotation of a default storage class; the second is its
// older name.
const (
	isDefaultClass      = "storageclass.kubernetes.io/is-default-class"
	isDefaultClassOlder = "storageclass.beta.kubernetes.io/is-default-class"
)

// Surroundings are the objects that admission depends on. Objects that can't be
// read are left out.
type Surroundings struct {
	LimitRanges     []corev1.LimitRange
	PriorityClasses []schedulingv1.PriorityClass
	RuntimeClasses  []nodev1.RuntimeClass
	StorageClasses  []storagev1.StorageClass
	DeviceClasses   []resourceapi.DeviceClass
}

// Rules are the changes that admission makes to new objects.
type Rules struct {
	types       *Types
	limitRanges map[string][]*corev1.LimitRange // namespace -> its limit ranges
	// priorityClass and storageClass are the defaults, empty for none.
	priorityClass, storageClass string
	overheads                   map[string]corev1.ResourceList // runtime class -> its overhead
	// priorityClasses and runtimeClasses are the names of all that could be read.
	priorityClasses, runtimeClasses sets.Set[string]
}

// NewRules returns the rules that follow from the surroundings.
func NewRules(types *Types, surroundings Surroundings) *Rules {
	rules := &Rules{
		types: types, limitRanges: map[string][]*corev1.LimitRange{}, overheads: map[string]corev1.ResourceList{},
		priorityClass:   defaultPriorityClass(surroundings.PriorityClasses),
		storageClass:    defaultStorageClass(surroundings.StorageClasses),
		priorityClasses: sets.New[string](), runtimeClasses: sets.New[string](),
	}
	for i := range surroundings.PriorityClasses {
		rules.priorityClasses.Insert(surroundings.PriorityClasses[i].Name)
	}
	for i := range surroundings.LimitRanges {
		limitRange := &surroundings.LimitRanges[i]
		rules.limitRanges[limitRange.Namespace] = append(rules.limitRanges[limitRange.Namespace], limitRange)
	}
	for i := range surroundings.RuntimeClasses {
		rules.runtimeClasses.Insert(surroundings.RuntimeClasses[i].Name)
		if class := &surroundings.RuntimeClasses[i]; class.Overhead != nil {
			rules.overheads[class.Name] = class.Overhead.PodFixed
		}
	}
	return rules
}

// defaultPriorityClass returns the one of least value, if there are several.
func defaultPriorityClass(classes []schedulingv1.PriorityClass) string {
	var least *schedulingv1.PriorityClass
	for i := range classes {
		if classes[i].GlobalDefault && (least == nil || classes[i].Value < least.Value) {
			least = &classes[i]
		}
	}
	if least == nil {
		return ""
	}
	return least.Name
}

// defaultStorageClass returns the latest one, if there are several.
func defaultStorageClass(classes []storagev1.StorageClass) string {
	var defaults []storagev1.StorageClass
	for _, class := range classes {
		if class.Annotations[isDefaultClass] == "true" || class.Annotations[isDefaultClassOlder] == "true" {
			defaults = append(defaults, class)
		}
	}
	if len(defaults) == 0 {
		return ""
	}
	latest := slices.MinFunc(defaults, func(a, b storagev1.StorageClass) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return latest.Name
}

// Complete returns a new object as admission would leave it. The refusal isn't
// empty if a LimitRange would refuse it.
func (r *Rules) Complete(object client.Object) (completed client.Object, refusal string) {
	switch object := object.(type) {
	case *corev1.Pod:
		return r.pod(object)
	case *corev1.PersistentVolumeClaim:
		return r.claim(object)
	}
	return object, ""
}

// Admit is Complete, and the refusal may also be the API server's: of resources that are invalid, and of classes that
// don't exist, if others of their kind could be read.
func (r *Rules) Admit(object client.Object) (completed client.Object, refusal string) {
	completed, refusal = r.Complete(object)
	pod, isPod := completed.(*corev1.Pod)
	if !isPod || refusal != "" {
		return completed, refusal
	}
	if class := pod.Spec.PriorityClassName; class != "" && r.priorityClasses.Len() > 0 && !r.priorityClasses.Has(class) {
		return completed, "no PriorityClass with name " + class + " was found"
	}
	if class := pod.Spec.RuntimeClassName; class != nil && r.runtimeClasses.Len() > 0 && !r.runtimeClasses.Has(*class) {
		return completed, fmt.Sprintf("pod rejected: RuntimeClass %q not found", *class)
	}
	internal := &core.Pod{}
	if err := r.types.scheme.Convert(pod, internal, nil); err != nil {
		return completed, reasonOf(fmt.Errorf("converting it: %w", err))
	}
	return completed, reasonOf(invalidResources(internal, nil))
}

func (r *Rules) pod(object *corev1.Pod) (completed client.Object, refusal string) {
	pod := object.DeepCopy()
	r.types.scheme.Default(pod)
	if pod.Spec.PriorityClassName == "" {
		pod.Spec.PriorityClassName = r.priorityClass
	}
	if pod.Spec.RuntimeClassName != nil && pod.Spec.Overhead == nil {
		pod.Spec.Overhead = r.overheads[*pod.Spec.RuntimeClassName]
	}
	limitRanges := r.limitRanges[pod.Namespace]
	if len(limitRanges) == 0 && pod.Spec.Resources == nil {
		return pod, ""
	}
	internal := &core.Pod{}
	err := r.admit(pod, internal, limitRanges, "pods", func() { podutil.DefaultPodLevelResources(internal) })
	if err == nil && len(limitRanges) > 0 {
		err = invalidResources(internal, limitRanges)
	}
	return pod, reasonOf(err)
}

// invalidResources returns the API server's validation errors for the containers of a pod and their resources, to which
// LimitRanges may have added their defaults.
func invalidResources(pod *core.Pod, limitRanges []*corev1.LimitRange) error {
	options := podutil.GetValidationOptionsFromPodSpecAndMeta(&pod.Spec, nil, &pod.ObjectMeta, nil)
	found := validation.ValidatePodSpec(&pod.Spec, &pod.ObjectMeta, field.NewPath("spec"), options)
	found = slices.DeleteFunc(found, func(err *field.Error) bool { return !isOfResources(err.Field) })
	if len(found) == 0 || len(limitRanges) == 0 {
		return found.ToAggregate() //nolint:wrapcheck // the errors name their fields
	}
	names := make([]string, 0, len(limitRanges))
	for _, limitRange := range limitRanges {
		names = append(names, limitRange.Name)
	}
	return fmt.Errorf("with the defaults of LimitRange %s: %w", strings.Join(names, ", "), found.ToAggregate())
}

func isOfResources(field string) bool {
	return strings.Contains(field, ".resources") || field == "spec.containers"
}

func (r *Rules) claim(object *corev1.PersistentVolumeClaim) (completed client.Object, refusal string) {
	claim := object.DeepCopy()
	r.types.scheme.Default(claim)
	_, older := claim.Annotations[corev1.BetaStorageClassAnnotation]
	if !older && claim.Spec.StorageClassName == nil && r.storageClass != "" {
		claim.Spec.StorageClassName = &r.storageClass
	}
	limitRanges := r.limitRanges[claim.Namespace]
	if len(limitRanges) == 0 {
		return claim, ""
	}
	err := r.admit(claim, &core.PersistentVolumeClaim{}, limitRanges, "persistentvolumeclaims", func() {})
	return claim, reasonOf(err)
}

// admit lets Kubernetes' own code change and then validate the object, in the type that it takes: LimitRanges
// change it, it is prepared for being stored, and LimitRanges validate it.
func (r *Rules) admit(
	object client.Object, internal runtime.Object, limitRanges []*corev1.LimitRange, resource string, prepare func(),
) error {
	if err := r.types.scheme.Convert(object, internal, nil); err != nil {
		return fmt.Errorf("converting it: %w", err)
	}
	plugin := &limitranger.DefaultLimitRangerActions{}
	for _, limitRange := range limitRanges {
		if err := plugin.MutateLimit(limitRange, resource, internal); err != nil {
			return fmt.Errorf("applying LimitRange %s: %w", limitRange.Name, err)
		}
	}
	prepare()
	if err := r.types.scheme.Convert(internal, object, nil); err != nil {
		return fmt.Errorf("converting it back: %w", err)
	}
	for _, limitRange := range limitRanges {
		if err := plugin.ValidateLimit(limitRange, resource, internal); err != nil {
			return err //nolint:wrapcheck // in Kubernetes' words
		}
	}
	return nil
}

func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
