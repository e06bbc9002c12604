// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"fmt"
	"iter"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// Names that all cases share: of the namespace, of the workload, and of the objects that every cluster has.
const (
	Namespace = "here"
	Name      = "web"
	sandbox   = "sandbox"
	standard  = "standard"
	fast      = "fast"
	gpu       = "gpu"
	important = "important"
	casual    = "casual"
)

// Case is a workload that is applied, and everything that decides whether it fits.
type Case struct {
	// Applied is the workload.
	Applied client.Object
	// Before is the workload before; nil if it is created.
	Before client.Object
	// Came is how many pods of Before came to be, at most.
	Came        int
	Quotas      []Quota
	LimitRanges []corev1.LimitRange
	// Nodes are the nodes on which a DaemonSet's pods run.
	Nodes int
	// Protected: nothing is refused in the namespace.
	Protected bool
}

// Quota is a quota, and the use of its other namespaces.
type Quota struct {
	*quotav1.ClusterResourceQuota

	Others corev1.ResourceList
}

// Classes returns the objects of all cases that belong to no namespace. A class without a name in a pod or claim is the default one.
func Classes() (*nodev1.RuntimeClass, []*schedulingv1.PriorityClass, []*storagev1.StorageClass) {
	usual := builders.PriorityClass(casual, 1)
	usual.GlobalDefault = true
	common := builders.ExpandableStorageClass(standard)
	common.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	return builders.RuntimeClass(sandbox, corev1.ResourceList{"cpu": resource.MustParse("50m"), "memory": resource.MustParse("10Mi")}),
		[]*schedulingv1.PriorityClass{usual, builders.PriorityClass(important, 10)},
		[]*storagev1.StorageClass{common, builders.ExpandableStorageClass(fast)}
}

// ClaimTemplate returns the template of the device claims of all cases.
func ClaimTemplate(namespace string) *resourceapi.ResourceClaimTemplate {
	made := &resourceapi.ResourceClaimTemplate{ObjectMeta: builders.Meta(namespace, gpu)}
	made.Spec.Spec.Devices.Requests = []resourceapi.DeviceRequest{{
		Name: "all", Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: gpu, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 2,
		},
	}}
	return made
}

// Cases generates cases.
func Cases() *rapid.Generator[Case] {
	return rapid.Custom(func(t *rapid.T) Case {
		drawn := Case{Nodes: rapid.IntRange(1, 3).Draw(t, "nodes"), Protected: chance(t, 20, "protected")}
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		drawn.Applied = anyWorkload(t, kind, anyTemplate(t))
		if changes[kind] && rapid.Bool().Draw(t, "changed") {
			drawn.Before, drawn.Applied = drawn.Applied, anyChange(t, drawn.Applied)
			drawn.Came = rapid.SampledFrom([]int{99, 99, 0, 1, 2}).Draw(t, "came")
		}
		// Of several LimitRanges with defaults of one resource, it is a matter of chance which one counts.
		for _, name := range rapid.SampledFrom([][]corev1.ResourceName{nil, {"cpu"}, {"memory"}, {"cpu", "memory"}}).Draw(t, "LimitRanges") {
			drawn.LimitRanges = append(drawn.LimitRanges, anyLimitRange(name).Draw(t, "LimitRange"))
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "quotas") {
			drawn.Quotas = append(drawn.Quotas, anyQuota(t, fmt.Sprint("quota-", i)))
		}
		if drawn.Before != nil && rapid.Bool().Draw(t, "full") {
			drawn.Quotas = []Quota{fullQuota(t, drawn.Before, drawn.Nodes)}
		}
		// As the API server stores them.
		kubernetesTypes().Default(drawn.Applied)
		if drawn.Before != nil {
			kubernetesTypes().Default(drawn.Before)
		}
		return drawn
	})
}

// The kinds, and the ones of which changes are generated. A change of the others is nothing that preflight judges.
var (
	kinds = []string{
		"Deployment", "Deployment", "Deployment", "StatefulSet", "StatefulSet", "ReplicaSet", "DaemonSet", "Job", "CronJob",
		"ReplicationController", "Pod", "PersistentVolumeClaim", "Service", "ConfigMap",
	}
	changes = map[string]bool{"Deployment": true, "StatefulSet": true, "ReplicaSet": true, "DaemonSet": true, "ReplicationController": true}
)

// Drawn returns the case of a seed.
func Drawn(seed int) Case { return Cases().Example(seed) }

// Seeds yields the seeds of so many cases from 1 on. COMPARE says how many, and COMPARE_SEED which is the first.
func Seeds(many int) iter.Seq[int] {
	first := numberOr("COMPARE_SEED", 1)
	many = numberOr("COMPARE", many)
	return func(yield func(int) bool) {
		for seed := first; seed < first+many; seed++ {
			if !yield(seed) {
				return
			}
		}
	}
}

func numberOr(variable string, otherwise int) int {
	if value := os.Getenv(variable); value != "" {
		return number(value)
	}
	return otherwise
}

// IsPreflighted reports whether preflight judges the workload. Of a DaemonSet that is created it judges one pod, because
// nobody has counted the nodes yet.
func (c Case) IsPreflighted() bool {
	switch c.Applied.(type) {
	case *appsv1.DaemonSet:
		return !c.Protected && (c.Before != nil || c.Nodes == 1)
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.ReplicaSet, *corev1.ReplicationController, *batchv1.Job, *batchv1.CronJob:
		return !c.Protected
	default:
		return false
	}
}

// Asked returns what preflight is asked about, of which fit says that this is demanded.
func (c Case) Asked(demand fitting.Demand) Asked {
	asked := Asked{Judged: sets.New[string](), Denying: sets.New[string](), Same: c.asksTheSame(), LimitRanges: len(c.LimitRanges)}
	if demand.Pods != nil {
		asked.Replaces, asked.Grows = demand.Pods.Replaced() > 0, demand.Pods.Grows > 0 || demand.Pods.Either != nil
	}
	for _, quota := range c.Quotas {
		refuses := quota.Spec.Enforcement.Mode == ""
		if refuses {
			asked.Denying.Insert(quota.Name)
		}
		if quota.Spec.Preflight != quotav1.PreflightOff && quota.Spec.Enforcement.Mode != quotav1.EnforcementAudit {
			asked.Judged.Insert(quota.Name)
		}
	}
	return asked
}

// asksTheSame reports whether nothing but the way is changed in which pods are replaced.
func (c Case) asksTheSame() bool {
	if c.Before == nil {
		return false
	}
	before, _ := c.Before.DeepCopyObject().(client.Object)
	switch object := c.Applied.(type) {
	case *appsv1.Deployment:
		before, _ := before.(*appsv1.Deployment)
		before.Spec.Strategy = object.Spec.Strategy
	case *appsv1.StatefulSet:
		before, _ := before.(*appsv1.StatefulSet)
		before.Spec.UpdateStrategy = object.Spec.UpdateStrategy
	}
	return apiequality.Semantic.DeepEqual(before, c.Applied)
}

// String returns the case as manifests.
func (c Case) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d nodes, protected %t, %d pods came before\n", c.Nodes, c.Protected, c.Came)
	show := func(title string, object any) {
		encoded, err := yaml.Marshal(object)
		must(err)
		fmt.Fprintf(&text, "--- %s\n%s", title, encoded)
	}
	for _, quota := range c.Quotas {
		show("quota "+quota.Name, quota.Spec)
		show("others use", quota.Others)
	}
	for i := range c.LimitRanges {
		show("LimitRange", c.LimitRanges[i].Spec)
	}
	if c.Before != nil {
		show("before", c.Before)
	}
	show("applied", c.Applied)
	return text.String()
}

func chance(t *rapid.T, n int, label string) bool { return rapid.IntRange(1, n).Draw(t, label) == n }

func anyOf[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

func anyWorkload(t *rapid.T, kind string, template corev1.PodTemplateSpec) client.Object {
	replicas := ptr.To(int32(rapid.IntRange(0, 6).Draw(t, "replicas")))
	meta, selector := builders.Meta(Namespace, Name), &metav1.LabelSelector{MatchLabels: template.Labels}
	switch kind {
	case "Deployment":
		return &appsv1.Deployment{TypeMeta: of("apps/v1", kind), ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: replicas, Selector: selector, Template: template, Strategy: anyStrategy(t), Paused: chance(t, 10, "paused"),
		}}
	case "StatefulSet":
		set := &appsv1.StatefulSet{TypeMeta: of("apps/v1", kind), ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
			Replicas: replicas, Selector: selector, Template: template, UpdateStrategy: anyUpdateStrategy(t),
			PodManagementPolicy: anyOf(t, "management", appsv1.ParallelPodManagement, appsv1.OrderedReadyPodManagement),
		}}
		for i := range anyOf(t, "claim templates", 0, 0, 1, 2) {
			set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, *anyClaim(t, fmt.Sprint("data-", i)))
		}
		return set
	case "ReplicaSet":
		return &appsv1.ReplicaSet{TypeMeta: of("apps/v1", kind), ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{
			Replicas: replicas, Selector: selector, Template: template,
		}}
	case "DaemonSet":
		set := &appsv1.DaemonSet{TypeMeta: of("apps/v1", kind), ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
			Selector: selector, Template: template,
		}}
		if rapid.Bool().Draw(t, "surges") {
			set.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: ptr.To(intstr.FromInt(1)), MaxUnavailable: ptr.To(intstr.FromInt(0))},
			}
		}
		return set
	case "ReplicationController":
		return &corev1.ReplicationController{TypeMeta: of("v1", kind), ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{
			Replicas: replicas, Selector: template.Labels, Template: &template,
		}}
	case "Job":
		return &batchv1.Job{TypeMeta: of("batch/v1", kind), ObjectMeta: meta, Spec: anyJob(t, template)}
	case "CronJob":
		return &batchv1.CronJob{TypeMeta: of("batch/v1", kind), ObjectMeta: meta, Spec: batchv1.CronJobSpec{
			Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: anyJob(t, template)}, Suspend: ptr.To(chance(t, 10, "suspended")),
			ConcurrencyPolicy: anyOf(t, "concurrency", batchv1.AllowConcurrent, batchv1.ForbidConcurrent),
		}}
	case "Pod":
		return &corev1.Pod{TypeMeta: of("v1", kind), ObjectMeta: meta, Spec: template.Spec}
	case "PersistentVolumeClaim":
		claim := anyClaim(t, Name)
		claim.TypeMeta, claim.Namespace = of("v1", kind), Namespace
		return claim
	case "Service":
		return &corev1.Service{TypeMeta: of("v1", kind), ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Type:  anyOf(t, "type", corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer),
			Ports: []corev1.ServicePort{{Port: 80}},
		}}
	default:
		return &corev1.ConfigMap{TypeMeta: of("v1", kind), ObjectMeta: meta}
	}
}

func of(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

// anyChange changes the number of pods, the template, or how pods are replaced.
func anyChange(t *rapid.T, object client.Object) client.Object {
	changed, _ := object.DeepCopyObject().(client.Object)
	switch object := changed.(type) {
	case *appsv1.Deployment:
		object.Spec.Replicas = ptr.To(int32(rapid.IntRange(0, 6).Draw(t, "replicas")))
		object.Spec.Template = anotherTemplate(t, object.Spec.Template)
		object.Spec.Strategy = anyStrategy(t)
	case *appsv1.StatefulSet:
		object.Spec.Replicas = ptr.To(int32(rapid.IntRange(0, 6).Draw(t, "replicas")))
		object.Spec.Template = anotherTemplate(t, object.Spec.Template)
		object.Spec.UpdateStrategy = anyUpdateStrategy(t)
	case *appsv1.ReplicaSet:
		object.Spec.Replicas = ptr.To(int32(rapid.IntRange(0, 6).Draw(t, "replicas")))
	case *corev1.ReplicationController:
		object.Spec.Replicas = ptr.To(int32(rapid.IntRange(0, 6).Draw(t, "replicas")))
		*object.Spec.Template = anotherTemplate(t, *object.Spec.Template)
	case *appsv1.DaemonSet:
		object.Spec.Template = anotherTemplate(t, object.Spec.Template)
	}
	return changed
}

// anotherTemplate draws the same template, one that costs the same, or any.
func anotherTemplate(t *rapid.T, template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	switch anyOf(t, "template", "same", "image", "any") {
	case "image":
		template.Spec.Containers[0].Image = "app:2"
		return template
	case "any":
		return anyTemplate(t)
	}
	return template
}

func anyStrategy(t *rapid.T) appsv1.DeploymentStrategy {
	if chance(t, 4, "recreates") {
		return appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	surge := rapid.IntRange(0, 2).Draw(t, "surge")
	unavailable := anyOf(t, "unavailable", 0, 0, 1, 2)
	if surge+unavailable == 0 {
		surge = 1
	}
	return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxSurge: ptr.To(intstr.FromInt(surge)), MaxUnavailable: ptr.To(intstr.FromInt(unavailable)),
	}}
}

func anyUpdateStrategy(t *rapid.T) appsv1.StatefulSetUpdateStrategy {
	if chance(t, 4, "on delete") {
		return appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	}
	return appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{
		Partition: ptr.To(anyOf(t, "partition", int32(0), 0, 1, 3)),
	}}
}

func anyJob(t *rapid.T, template corev1.PodTemplateSpec) batchv1.JobSpec {
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return batchv1.JobSpec{
		Parallelism: ptr.To(int32(rapid.IntRange(0, 4).Draw(t, "parallelism"))),
		Completions: anyOf(t, "completions", nil, ptr.To(int32(1)), ptr.To(int32(4)), ptr.To(int32(7))),
		Suspend:     ptr.To(chance(t, 10, "suspended job")), Template: template,
	}
}

func anyClaim(t *rapid.T, name string) *corev1.PersistentVolumeClaim {
	claim := builders.VolumeClaim("", name).Size(anyOf(t, "size", "1Gi", "2Gi")).Obj()
	claim.Spec.StorageClassName = anyOf(t, "storage class", nil, ptr.To(fast), ptr.To(""))
	return claim
}

// anyTemplate draws pods that the API server would take as they are.
func anyTemplate(t *rapid.T) corev1.PodTemplateSpec {
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1", Resources: anyResources(t)}}}
	if chance(t, 4, "second container") {
		spec.Containers = append(spec.Containers, corev1.Container{Name: "second", Image: "app:1", Resources: anyResources(t)})
	}
	if chance(t, 3, "init") {
		spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: "init", Image: "app:1", Resources: anyResources(t)})
	}
	if chance(t, 4, "sidecar") {
		spec.InitContainers = append(spec.InitContainers, corev1.Container{
			Name: "sidecar", Image: "app:1", Resources: anyResources(t), RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		})
	}
	if chance(t, 6, "pod-level") {
		spec.Resources = anyPodLevel(t)
	}
	if chance(t, 5, "runtime class") {
		spec.RuntimeClassName = ptr.To(sandbox)
	}
	if chance(t, 5, "priority") {
		spec.PriorityClassName = important
	}
	for i := range anyOf(t, "ephemeral volumes", 0, 0, 0, 0, 1, 2) {
		claim := anyClaim(t, "")
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: fmt.Sprint("scratch-", i), VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim.Spec}},
		}})
	}
	if chance(t, 6, "devices") {
		spec.ResourceClaims = []corev1.PodResourceClaim{{Name: gpu, ResourceClaimTemplateName: ptr.To(gpu)}}
	}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": Name}}, Spec: spec}
}

// anyResources draws requests of which none is above its limit.
func anyResources(t *rapid.T) corev1.ResourceRequirements {
	made := corev1.ResourceRequirements{}
	for _, name := range []corev1.ResourceName{"cpu", "memory"} {
		unit := unitOf(name)
		request, limit := anyOf(t, string(name), 0, 0, 1, 2), anyOf(t, string(name)+" more", -1, -1, 0, 1)
		if request > 0 {
			put(&made.Requests, name, request, unit)
		}
		if limit >= 0 && request+limit > 0 {
			put(&made.Limits, name, request+limit, unit)
		}
	}
	return made
}

// anyPodLevel draws what no container of anyTemplate exceeds.
func anyPodLevel(t *rapid.T) *corev1.ResourceRequirements {
	made := &corev1.ResourceRequirements{}
	for _, name := range []corev1.ResourceName{"cpu", "memory"} {
		if rapid.Bool().Draw(t, "pod-level request of "+string(name)) {
			put(&made.Requests, name, 8, unitOf(name))
		}
		if rapid.Bool().Draw(t, "pod-level limit of "+string(name)) {
			put(&made.Limits, name, 12, unitOf(name))
		}
	}
	if len(made.Requests)+len(made.Limits) == 0 {
		put(&made.Requests, "cpu", 8, unitOf("cpu"))
	}
	return made
}

func unitOf(name corev1.ResourceName) string {
	switch name {
	case "cpu", "requests.cpu", "limits.cpu":
		return "100m"
	case "memory", "requests.memory", "limits.memory":
		return "20Mi"
	case "requests.storage", "fast.storageclass.storage.k8s.io/requests.storage", "standard.storageclass.storage.k8s.io/requests.storage":
		return "1Gi"
	default:
		return "1"
	}
}

func put(list *corev1.ResourceList, name corev1.ResourceName, count int, unit string) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	amount := resource.MustParse(unit)
	amount.Mul(int64(count))
	(*list)[name] = amount
}

// anyLimitRange draws one that the API server takes.
func anyLimitRange(name corev1.ResourceName) *rapid.Generator[corev1.LimitRange] {
	return rapid.Custom(func(t *rapid.T) corev1.LimitRange { return drawLimitRange(t, name) }).Filter(func(made corev1.LimitRange) bool {
		internal := &core.LimitRange{}
		must(kubernetesTypes().Convert(&made, internal, nil))
		return len(validation.ValidateLimitRange(internal)) == 0
	})
}

func drawLimitRange(t *rapid.T, of corev1.ResourceName) corev1.LimitRange {
	made := corev1.LimitRange{ObjectMeta: builders.Meta(Namespace, string(of))}
	container := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer}
	{
		request, limit := anyOf(t, "default request of "+string(of), 0, 0, 1, 2), anyOf(t, "default of "+string(of), 0, 0, 2, 3)
		if request > 0 {
			put(&container.DefaultRequest, of, request, unitOf(of))
		}
		if limit > 0 {
			put(&container.Default, of, limit, unitOf(of))
		}
		if chance(t, 8, "minimum of "+string(of)) {
			put(&container.Min, of, 1, unitOf(of))
		}
		if chance(t, 8, "maximum of "+string(of)) {
			put(&container.Max, of, 3, unitOf(of))
		}
		if chance(t, 12, "ratio of "+string(of)) {
			put(&container.MaxLimitRequestRatio, of, 2, "1")
		}
	}
	made.Spec.Limits = []corev1.LimitRangeItem{container}
	if chance(t, 6, "maximum of pods") {
		pod := corev1.LimitRangeItem{Type: corev1.LimitTypePod}
		put(&pod.Max, "cpu", 6, unitOf("cpu"))
		made.Spec.Limits = append(made.Spec.Limits, pod)
	}
	if chance(t, 6, "maximum of claims") {
		claim := corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim}
		put(&claim.Max, "storage", 1, "1Gi")
		made.Spec.Limits = append(made.Spec.Limits, claim)
	}
	kubernetesTypes().Default(&made)
	return made
}

// limited are the resources that quotas limit, and the most units of them. Limits are drawn below that, so that some of the
// workloads fit and some don't.
var limited = []struct {
	name corev1.ResourceName
	most int
}{
	{"pods", 8}, {"pods", 8}, {"count/pods", 8}, {"requests.cpu", 16}, {"cpu", 16}, {"limits.cpu", 20}, {"requests.memory", 16}, {"limits.memory", 20},
	{"persistentvolumeclaims", 8}, {"requests.storage", 10}, {"fast.storageclass.storage.k8s.io/requests.storage", 6},
	{"standard.storageclass.storage.k8s.io/requests.storage", 6}, {"count/replicasets.apps", 2}, {"count/controllerrevisions.apps", 2},
	{"count/deployments.apps", 2}, {"count/jobs.batch", 2}, {"count/resourceclaims.resource.k8s.io", 6},
	{"gpu.deviceclass.resource.k8s.io/devices", 10}, {"services", 2}, {"services.loadbalancers", 1}, {"configmaps", 2}, {"count/statefulsets.apps", 2},
}

// podsOnly are the resources that a quota with a scope of pods may limit.
var podsOnly = map[corev1.ResourceName]bool{
	"pods": true, "requests.cpu": true, "cpu": true, "limits.cpu": true, "requests.memory": true, "limits.memory": true,
}

func anyQuota(t *rapid.T, name string) Quota {
	built := builders.Quota(name).LabelIn("kubernetes.io/metadata.name", Namespace, "elsewhere")
	drawn := Quota{Others: corev1.ResourceList{}}
	scoped := chance(t, 5, "scoped")
	for range rapid.IntRange(1, 4).Draw(t, "limits") {
		of := rapid.SampledFrom(limited).Draw(t, "limited")
		if scoped && !podsOnly[of.name] {
			of.name, of.most = "pods", 8
		}
		hard, others := rapid.IntRange(0, of.most).Draw(t, "hard"), rapid.IntRange(0, max(1, of.most/4)).Draw(t, "others")
		list := corev1.ResourceList{}
		put(&list, of.name, hard, unitOf(of.name))
		amount := list[of.name]
		built.Hard(of.name, amount.String())
		if most := anyOf(t, "surge", 0, 1, 2, 3); most > 0 {
			surge := corev1.ResourceList{}
			put(&surge, of.name, rapid.IntRange(0, most*max(1, of.most/4)).Draw(t, "surge of it"), unitOf(of.name))
			amount := surge[of.name]
			built.Surge(of.name, amount.String())
		}
		put(&drawn.Others, of.name, others, unitOf(of.name))
	}
	if scoped {
		anyScope(t, built)
	}
	drawn.ClusterResourceQuota = built.Enforcement(anyOf(t, "mode", "", "", "", quotav1.EnforcementWarn, quotav1.EnforcementAudit), "").Obj()
	drawn.Spec.Preflight = anyOf(t, "preflight", "", "", "", quotav1.PreflightDeny, quotav1.PreflightOff)
	return drawn
}

// fullQuota draws one in which the workload before has about as many pods as it may, and that has surge.
func fullQuota(t *rapid.T, before client.Object, nodes int) Quota {
	pods := nodes
	switch before := before.(type) {
	case *appsv1.Deployment:
		pods = int(*before.Spec.Replicas)
	case *appsv1.StatefulSet:
		pods = int(*before.Spec.Replicas)
	}
	hard, surge := corev1.ResourceList{}, corev1.ResourceList{}
	put(&hard, corev1.ResourcePods, max(0, pods+rapid.IntRange(-1, 1).Draw(t, "more")), "1")
	put(&surge, corev1.ResourcePods, rapid.IntRange(0, 3).Draw(t, "surge of pods"), "1")
	drawn := Quota{Others: corev1.ResourceList{}}
	put(&drawn.Others, corev1.ResourcePods, anyOf(t, "others", 0, 0, 1), "1")
	drawn.ClusterResourceQuota = builders.Quota("full").LabelIn("kubernetes.io/metadata.name", Namespace, "elsewhere").
		Hard(corev1.ResourcePods, hard.Pods().String()).Surge(corev1.ResourcePods, surge.Pods().String()).Obj()
	return drawn
}

func anyScope(t *rapid.T, built *builders.QuotaBuilder) {
	switch anyOf(t, "scope", "priority", "terminating", "not") {
	case "priority":
		built.ScopeSelector(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpIn, anyOf(t, "class", important, casual))
	case "terminating":
		built.Scopes(corev1.ResourceQuotaScopeTerminating)
	default:
		built.Scopes(corev1.ResourceQuotaScopeNotTerminating)
	}
}
