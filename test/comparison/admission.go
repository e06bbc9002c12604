// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	appsinstall "k8s.io/kubernetes/pkg/apis/apps/install"
	batchinstall "k8s.io/kubernetes/pkg/apis/batch/install"
	"k8s.io/kubernetes/pkg/apis/core"
	coreinstall "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// Short is a resource of a quota of which a request took too much.
type Short struct {
	Quota    string
	Resource corev1.ResourceName
}

// RefusalError is the first refusal of an object.
type RefusalError struct {
	// Kind of the object.
	Kind string
	// Shorts are all that the object took too much of; empty if it was refused for what it is.
	Shorts []Short
	// Message is what it was refused for otherwise.
	Message string
}

func (r *RefusalError) Error() string {
	return fmt.Sprintf("%s refused: %v %s", r.Kind, r.Shorts, r.Message)
}

// Cluster admits objects into the namespace of a case.
type Cluster struct {
	Case

	plugins    []admission.Interface
	evaluators *evaluation.Evaluators
	quotas     []definition.Definition
	drafts     map[string]*ledger.Draft // quota -> its ledger
	// forced: nothing is refused, because it came before the quotas were as they are.
	forced bool
	// instead is the pod that a created one is to replace; nil for none. replaces: it does, so that it may take surge with its
	// claims, because it takes no more.
	instead  *pod
	replaces bool
	// surged: a pod has taken surge.
	surged bool
	// remarks are what quotas would have refused that refuse nothing.
	remarks map[Short]bool
	serial  int

	pods   []*pod
	claims map[string]bool // name of a StatefulSet's claim -> it is there
	sets   []*appsv1.ReplicaSet
	// started is how many pods a job began with.
	started int
}

// pod is a pod that lives, and what was charged for it and for its claims.
type pod struct {
	*corev1.Pod

	template *corev1.PodTemplateSpec
	charged  []ledger.Key
	ordinal  int
}

// NewCluster returns the cluster of a case before anything was applied.
func NewCluster(of Case) *Cluster {
	cluster := &Cluster{
		Case: of, drafts: map[string]*ledger.Draft{}, remarks: map[Short]bool{}, claims: map[string]bool{},
		evaluators: evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}),
	}
	for _, of := range of.Quotas {
		object := of.DeepCopy()
		object.UID, object.Generation = types.UID(of.Name), 1
		compiled, err := definition.Compile(object)
		must(err)
		cluster.quotas = append(cluster.quotas, compiled)
		cluster.drafts[of.Name] = ledger.Edit(ledger.State{Basis: compiled.Limits.Basis, Used: of.Others})
	}
	cluster.plug()
	return cluster
}

// kubernetesTypes returns the types of the API server, with its defaults and conversions.
var kubernetesTypes = sync.OnceValue(func() *runtime.Scheme { // made once: that takes longer than a case
	scheme := runtime.NewScheme()
	coreinstall.Install(scheme)
	appsinstall.Install(scheme)
	batchinstall.Install(scheme)
	return scheme
})

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// plug makes Kubernetes' own admission plugins, which read from indexers and call nobody. LimitRanger looks live if it has none.
func (c *Cluster) plug() {
	calls, err := kubernetes.NewForConfig(&rest.Config{Host: "nowhere.invalid"})
	must(err)
	all := informers.NewSharedInformerFactory(calls, 0)
	ranges := all.Core().V1().LimitRanges().Informer().GetIndexer()
	must(ranges.Add(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "none"}}))
	for i := range c.LimitRanges {
		must(ranges.Add(&c.LimitRanges[i]))
	}
	runtimeClass, priorities, _ := Classes()
	must(all.Node().V1().RuntimeClasses().Informer().GetIndexer().Add(runtimeClass))
	for _, class := range priorities {
		must(all.Scheduling().V1().PriorityClasses().Informer().GetIndexer().Add(class))
	}
	ranger, err := limitranger.NewLimitRanger(nil)
	must(err)
	prioritizer, runtimes := priority.NewPlugin(), runtimeclass.NewRuntimeClass()
	for _, plugin := range []interface {
		SetExternalKubeInformerFactory(f informers.SharedInformerFactory)
		SetExternalKubeClientSet(client kubernetes.Interface)
		SetReadyFunc(ready admission.ReadyFunc)
	}{ranger, prioritizer, runtimes} {
		plugin.SetExternalKubeInformerFactory(all)
		plugin.SetExternalKubeClientSet(calls)
		plugin.SetReadyFunc(func() bool { return true })
	}
	c.plugins = []admission.Interface{ranger, prioritizer, runtimes} // in the order of the API server
}

// create admits one object, and returns what it was charged as. It is complete then, as the API server would store it.
func (c *Cluster) create(resource schema.GroupVersionResource, kind string, object client.Object) (*ledger.Key, error) {
	if err := c.complete(resource, kind, object); err != nil && !c.forced {
		return nil, &RefusalError{Kind: kind, Message: err.Error()}
	}
	return c.charge(resource, kind, object, nil)
}

// complete changes and validates a pod or a claim as the API server does before it asks webhooks.
func (c *Cluster) complete(resource schema.GroupVersionResource, kind string, object client.Object) error {
	kubernetesTypes().Default(object)
	var internal runtime.Object
	prepare, validate := func() {}, func() error { return nil }
	switch object := object.(type) {
	case *corev1.Pod:
		pod := &core.Pod{}
		internal, prepare = pod, func() { podutil.DefaultPodLevelResources(pod) }
		validate = func() error {
			options := podutil.GetValidationOptionsFromPodSpecAndMeta(&pod.Spec, nil, &pod.ObjectMeta, nil)
			options.ResourceIsPod = true
			return validation.ValidatePodCreate(pod, options).ToAggregate()
		}
	case *corev1.PersistentVolumeClaim:
		internal = &core.PersistentVolumeClaim{}
		if object.Spec.StorageClassName == nil {
			object.Spec.StorageClassName = new(string)
			*object.Spec.StorageClassName = standard
		}
	default:
		return nil
	}
	must(kubernetesTypes().Convert(object, internal, nil))
	attributes := admission.NewAttributesRecord(internal, nil, resource.GroupVersion().WithKind(kind), Namespace, object.GetName(),
		resource, "", admission.Create, &metav1.CreateOptions{}, false, nil)
	for _, plugin := range c.plugins {
		if mutating, ok := plugin.(admission.MutationInterface); ok && plugin.Handles(admission.Create) {
			if err := mutating.Admit(context.Background(), attributes, nil); err != nil {
				return err
			}
		}
	}
	prepare()
	must(kubernetesTypes().Convert(internal, object, nil))
	if err := validate(); err != nil {
		return err
	}
	for _, plugin := range c.plugins {
		if validating, ok := plugin.(admission.ValidationInterface); ok && plugin.Handles(admission.Create) {
			if err := validating.Validate(context.Background(), attributes, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// charge charges all quotas or none. Nothing is charged in a protected namespace, of which no webhook is told.
func (c *Cluster) charge(resource schema.GroupVersionResource, kind string, object, old client.Object) (*ledger.Key, error) {
	c.serial++
	if pod, isPod := object.(*corev1.Pod); isPod {
		c.replaces = c.instead != nil && takesNoMore(pod, c.instead.Pod)
	}
	key := &ledger.Key{UID: types.UID(fmt.Sprint("uid-", c.serial)), Attempt: "first"}
	if c.Protected {
		return key, nil
	}
	var asked []evaluation.Quota
	for i := range c.quotas {
		asked = append(asked, c.quotas[i].Quota)
		asked[i].Advisory = asked[i].Advisory || c.forced
	}
	operation, before, options := admission.Create, runtime.Object(nil), runtime.Object(&metav1.CreateOptions{})
	if old != nil {
		operation, before, options = admission.Update, old, &metav1.UpdateOptions{}
	}
	amounts, err := c.evaluators.Charges(admission.NewAttributesRecord(object, before, resource.GroupVersion().WithKind(kind), Namespace,
		object.GetName(), resource, "", operation, options, false, nil), asked)
	if refused := (*evaluation.Refusal)(nil); errors.As(err, &refused) {
		return nil, &RefusalError{Kind: kind, Message: refused.Message}
	}
	must(err)
	var charges []ledger.Charge
	refusal := &RefusalError{Kind: kind}
	for _, amount := range amounts {
		limits := c.quotas[slices.IndexFunc(asked, func(quota evaluation.Quota) bool { return quota.Name == amount.Quota })].Limits
		limits.Advisory = limits.Advisory || c.forced
		charge := ledger.Charge{Limits: limits, Reservation: ledger.Reservation{
			Object:  ledger.Object{Resource: resource, Namespace: Namespace, Name: string(key.UID), UID: key.UID},
			Attempt: key.Attempt, Amounts: amount.Amounts,
		}}
		if c.instead != nil && c.replaces {
			charge.Replaces = ledger.Surger{UID: Name, Kind: "Deployment", Namespace: Namespace, Name: Name}
		}
		charges = append(charges, charge)
		decision := c.drafts[amount.Quota].Judge(charge)
		if denied, ok := decision.(ledger.Denied); ok {
			refusal.Shorts = append(refusal.Shorts, shorts(denied)...)
		} else if !ledger.IsGranted(decision) {
			panic(fmt.Sprintf("%s: %+v", amount.Quota, decision))
		}
	}
	if len(refusal.Shorts) > 0 {
		return nil, refusal
	}
	for _, charge := range charges {
		granted, _ := c.drafts[charge.Limits.Name].Reserve(charge).(ledger.Granted)
		c.surged = c.surged || len(c.drafts[charge.Limits.Name].Peek().Surgers) > 0
		for _, remark := range granted.Remarks {
			if denied, ok := remark.Refusal.(ledger.Denied); ok && !c.forced && (!denied.Provable || c.instead == nil || !c.replaces) {
				for _, short := range shorts(denied) {
					c.remarks[short] = true
				}
			}
		}
	}
	return key, nil
}

// takesNoMore reports whether a pod takes no more than another one of anything, and has the same claims.
func takesNoMore(after, before *corev1.Pod) bool {
	takes, err := evaluation.PodUsage(clock.RealClock{}, after)
	must(err)
	most, err := evaluation.PodUsage(clock.RealClock{}, before)
	must(err)
	for name, amount := range takes {
		if amount.Cmp(most[name]) > 0 {
			return false
		}
	}
	return apiequality.Semantic.DeepEqual(after.Spec.Volumes, before.Spec.Volumes) &&
		apiequality.Semantic.DeepEqual(after.Spec.ResourceClaims, before.Spec.ResourceClaims)
}

func shorts(denied ledger.Denied) []Short {
	var found []Short
	for _, name := range denied.Resources() {
		found = append(found, Short{denied.Quota, name})
	}
	return found
}

// free gives back what was charged for objects that are deleted.
func (c *Cluster) free(keys []ledger.Key) {
	for _, draft := range c.drafts {
		for _, key := range keys {
			draft.Release(key)
		}
	}
}

// reserved is what the objects of the namespace hold of a quota.
func (c *Cluster) reserved(of string) corev1.ResourceList { return c.drafts[of].Peek().Reserved() }
