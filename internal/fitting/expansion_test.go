// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// objectOf reads YAML as the command does, with Kubernetes' defaults.
func objectOf(t *testing.T, text string) client.Object {
	t.Helper()
	raw := &unstructured.Unstructured{}
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = raw.UnmarshalJSON(asJSON)
	}
	if err != nil {
		t.Fatal(err)
	}
	raw.SetName("web")
	raw.SetNamespace("shop")
	object, err := fitting.NewTypes().Typed(raw)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func manifestOf(t *testing.T, text string) fitting.Manifest {
	t.Helper()
	object := objectOf(t, text)
	kind := object.GetObjectKind().GroupVersionKind()
	return fitting.Manifest{
		Resource: schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: strings.ToLower(kind.Kind) + "s"},
		Kind:     kind.Kind, Object: object,
	}
}

// texts describe the demand: "2 Pod as pods end"; and of pods "3 of 5, 2 old, surge 1, unavailable 0: Pod".
func texts(demand fitting.Demand) []string {
	var texts []string
	for _, item := range demand.Items {
		text := fmt.Sprint(item.Count, " ", item.Kind)
		if item.Old != nil {
			text += " changed"
		}
		texts = append(texts, strings.TrimSpace(text+" "+string(item.When)))
	}
	if pods := demand.Pods; pods != nil {
		text := fmt.Sprintf("%d missing of %d, ", pods.Missing(), pods.Wanted)
		if pods.Replaced() > 0 {
			text += fmt.Sprintf("%d old, surge %d, unavailable %d, ", pods.Replaced(), pods.Surge, pods.Unavailable)
		}
		var kinds []string
		for _, item := range pods.New {
			kinds = append(kinds, fmt.Sprint(item.Count, " ", item.Kind))
		}
		texts = append(texts, text+"each "+strings.Join(kinds, ", "))
	}
	return texts
}

const (
	apps     = "apiVersion: apps/v1\n"
	batch    = "apiVersion: batch/v1\n"
	template = "{metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: web}]}}"
	runsOnce = "{spec: {restartPolicy: Never, containers: [{name: main, image: web}]}}"
	selector = "selector: {matchLabels: {a: b}}"
)

func deployment(spec string) string {
	return apps + "kind: Deployment\nspec: {" + selector + ", template: " + template + ", " + spec + "}"
}

func statefulSet(spec string) string {
	return apps + "kind: StatefulSet\nspec: {" + selector + ", template: " + template + ", " + spec + "}"
}

func daemonSet(spec string) string {
	return apps + "kind: DaemonSet\nspec: {" + selector + ", template: " + template + spec + "}"
}

func job(spec string) string {
	return batch + "kind: Job\nspec: {template: " + runsOnce + spec + "}"
}

func cronJob(spec, ofJob string) string {
	return batch + "kind: CronJob\nspec: {schedule: '0 0 * * *', jobTemplate: {spec: {template: " + runsOnce + ofJob + "}}" + spec + "}"
}

func TestExpandWhatIsNew(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		want  []string
		notes []string
	}{
		"a deployment":              {text: deployment("replicas: 3"), want: []string{"1 Deployment", "1 ReplicaSet", "3 missing of 3, each 1 Pod"}},
		"a deployment says no more": {text: deployment("paused: false"), want: []string{"1 Deployment", "1 ReplicaSet", "1 missing of 1, each 1 Pod"}},
		"a paused deployment makes nothing": {
			text: deployment("replicas: 3, paused: true"), want: []string{"1 Deployment"},
			notes: []string{"Deployment shop/web is paused: only scaling is counted; what is new waits until it is resumed."},
		},
		"many pods are one and a number": {
			text: deployment("replicas: 1000000"), want: []string{"1 Deployment", "1 ReplicaSet", "1000000 missing of 1000000, each 1 Pod"},
		},
		"a replica set": {
			text: apps + "kind: ReplicaSet\nspec: {" + selector + ", replicas: 4, template: " + template + "}",
			want: []string{"1 ReplicaSet", "4 missing of 4, each 1 Pod"},
		},
		"a replication controller": {
			text: "apiVersion: v1\nkind: ReplicationController\nspec: {replicas: 4, template: " + template + "}",
			want: []string{"1 ReplicationController", "4 missing of 4, each 1 Pod"},
		},
		"a stateful set with two claims for each pod": {
			text: statefulSet("replicas: 3, volumeClaimTemplates: [{metadata: {name: data}}, {metadata: {name: log}}]"),
			want: []string{"1 StatefulSet", "1 ControllerRevision", "3 PersistentVolumeClaim", "3 PersistentVolumeClaim", "3 missing of 3, each 1 Pod"},
		},
		"a daemon set on seven nodes": {
			text: daemonSet(""), want: []string{"1 DaemonSet", "1 ControllerRevision", "7 missing of 7, each 1 Pod"},
		},
		"a job":                               {text: job(""), want: []string{"1 Job", "1 missing of 1, each 1 Pod"}},
		"a job runs no more pods than it has": {text: job(", parallelism: 5, completions: 3"), want: []string{"1 Job", "3 missing of 3, each 1 Pod"}},
		"a job runs one after another": {
			text: job(", parallelism: 2, completions: 9, completionMode: Indexed"),
			want: []string{"1 Job", "7 Pod as pods end", "2 missing of 2, each 1 Pod"},
		},
		"a job with a queue": {text: job(", parallelism: 4"), want: []string{"1 Job", "4 missing of 4, each 1 Pod"}},
		"a job that waits": {
			text: job(", suspend: true, parallelism: 4"), want: []string{"1 Job"},
			notes: []string{"Job shop/web is suspended: its pods aren't counted."},
		},
		"a job of no pods at once": {text: job(", parallelism: 0, completions: 3"), want: []string{"1 Job", "0 missing of 0, each 1 Pod"}},
		"a job of another owner": {
			text: job(", managedBy: example.com/queue"), want: []string{"1 Job"},
			notes: []string{"Job shop/web is managed by another controller than Kubernetes' own: its pods aren't counted."},
		},
		"a cron job": {
			text: cronJob(", concurrencyPolicy: Forbid", ", parallelism: 2, completions: 3"),
			want: []string{"1 CronJob", "1 Job at each run", "2 Pod at each run", "1 Pod at each run"},
			notes: []string{
				"CronJob shop/web: one run is counted, as if it began now.",
			},
		},
		"a cron job whose runs overlap": {
			text: cronJob("", ""), want: []string{"1 CronJob", "1 Job at each run", "1 Pod at each run"},
			notes: []string{"CronJob shop/web: one run is counted, as if it began now; its policy lets runs overlap, which takes more."},
		},
		"a cron job that waits": {
			text: cronJob(", suspend: true", ""), want: []string{"1 CronJob"},
			notes: []string{"CronJob shop/web is suspended: its pods aren't counted."},
		},
		"a pod with a claim of its own": {
			text: "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: main}], volumes: " +
				"[{name: a, ephemeral: {volumeClaimTemplate: {spec: {}}}}, {name: b, emptyDir: {}}]}",
			want: []string{"1 Pod", "1 PersistentVolumeClaim"},
		},
		"a deployment whose pods have claims of devices": {
			text: strings.Replace(deployment("replicas: 2"), "image: web}]", "image: web}], resourceClaims: ["+
				"{name: a, resourceClaimTemplateName: gpu}, {name: b, resourceClaimTemplateName: gone}, {name: c, resourceClaimName: there}]", 1),
			want:  []string{"1 Deployment", "1 ReplicaSet", "2 missing of 2, each 1 Pod, 1 ResourceClaim, 1 ResourceClaim"},
			notes: []string{"ResourceClaimTemplate shop/gone can't be read: its claims are counted, their devices aren't."},
		},
		"claims of many templates are noted once": {
			text: strings.Replace(deployment("replicas: 2"), "image: web}]", "image: web}], resourceClaims: ["+
				"{name: a, resourceClaimTemplateName: tpu}, {name: b, resourceClaimTemplateName: gone}, {name: c, resourceClaimTemplateName: tpu}]", 1),
			want:  []string{"1 Deployment", "1 ReplicaSet", "2 missing of 2, each 1 Pod, 1 ResourceClaim, 1 ResourceClaim, 1 ResourceClaim"},
			notes: []string{"ResourceClaimTemplate shop/gone and 1 more can't be read: their claims are counted, the devices of these aren't."},
		},
		"a cron job whose runs a foreign controller manages": {
			text: cronJob(", concurrencyPolicy: Forbid", ", managedBy: example.com/queue"), want: []string{"1 CronJob", "1 Job at each run"},
			notes: []string{
				"CronJob shop/web: one run is counted, as if it began now.",
				"CronJob shop/web is managed by another controller than Kubernetes' own: its pods aren't counted.",
			},
		},
		"an autoscaler": {
			text: "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec: {maxReplicas: 9}", want: []string{"1 HorizontalPodAutoscaler"},
			notes: []string{"HorizontalPodAutoscaler shop/web may ask for more pods than are counted here: up to 9."},
		},
		"anything else": {text: "apiVersion: example.com/v1\nkind: Widget", want: []string{"1 Widget"}},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := manifestOf(t, test.text)
			manifest.Present.Nodes = func(*appsv1.DaemonSet) (int64, bool) { return 7, true }
			manifest.Present.ClaimTemplates = map[string]*resourceapi.ResourceClaimTemplate{"gpu": {}}
			demand := mustExpand(t, manifest)
			if diff := cmp.Diff(test.want, texts(demand)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(test.notes, demand.Notes); diff != "" {
				t.Errorf("notes (-want,+got):\n%s", diff)
			}
		})
	}
}

func mustExpand(t *testing.T, manifest fitting.Manifest) fitting.Demand {
	t.Helper()
	before := manifest.Object.DeepCopyObject()
	demand, err := fitting.Expand(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, manifest.Object); diff != "" {
		t.Errorf("the manifest was changed (-before,+after):\n%s", diff)
	}
	return demand
}

// ownedBy names the controller of an object.
func ownedBy(uid string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{UID: types.UID(uid), Controller: ptr.To(true)}}
}

// podsOf makes pods of the owner, named after ordinals from first on.
func podsOf(owner string, first, count int, labels map[string]string) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := first; i < first+count; i++ {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprint("web-", i), OwnerReferences: ownedBy(owner), Labels: labels,
		}})
	}
	return pods
}

// there sets the live object as the text describes it, with UID "live".
func there(t *testing.T, manifest *fitting.Manifest, text string) {
	t.Helper()
	manifest.Live = objectOf(t, text)
	manifest.Live.SetUID("live")
}

func TestExpandADeploymentThatIsThere(t *testing.T) {
	changed := func(spec string) string { return strings.Replace(deployment(spec), "image: web", "image: web:2", 1) }
	for name, test := range map[string]struct {
		live, applied  string
		pods, oldPods  int
		withoutCurrent bool
		want           []string
	}{
		"nothing changes": {
			live: deployment("replicas: 3"), applied: deployment("replicas: 3"), pods: 3,
			want: []string{"1 Deployment changed", "0 missing of 3, each 1 Pod"},
		},
		"it is scaled up": {
			live: deployment("replicas: 3"), applied: deployment("replicas: 5"), pods: 3,
			want: []string{"1 Deployment changed", "2 missing of 5, each 1 Pod"},
		},
		"some of its pods were refused": {
			live: deployment("replicas: 5"), applied: deployment("replicas: 5"), pods: 3,
			want: []string{"1 Deployment changed", "2 missing of 5, each 1 Pod"},
		},
		"its template changes": {
			live: deployment("replicas: 4"), applied: changed("replicas: 4"), oldPods: 4, withoutCurrent: true,
			want: []string{"1 Deployment changed", "1 ReplicaSet", "4 missing of 4, 4 old, surge 1, unavailable 1, each 1 Pod"},
		},
		"so few that none may be missing": {
			live: deployment("replicas: 3"), applied: changed("replicas: 3"), oldPods: 3, withoutCurrent: true,
			want: []string{"1 Deployment changed", "1 ReplicaSet", "3 missing of 3, 3 old, surge 1, unavailable 0, each 1 Pod"},
		},
		"all go before new ones come": {
			live:    deployment("replicas: 3"),
			applied: changed("replicas: 3, strategy: {type: Recreate}"), oldPods: 3, withoutCurrent: true,
			want: []string{"1 Deployment changed", "1 ReplicaSet", "3 missing of 3, 3 old, surge 0, unavailable 3, each 1 Pod"},
		},
		"it is half way": {
			live: deployment("replicas: 4"), applied: deployment("replicas: 4"), pods: 2, oldPods: 3,
			want: []string{"1 Deployment changed", "2 missing of 4, 3 old, surge 1, unavailable 1, each 1 Pod"},
		},
		"it is paused": {
			live: deployment("replicas: 3"), applied: changed("replicas: 5, paused: true"), oldPods: 3, withoutCurrent: true,
			want: []string{"1 Deployment changed", "2 missing of 5, each 1 Pod"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := manifestOf(t, test.applied)
			there(t, &manifest, test.live)
			set := func(uid string, template corev1.PodTemplateSpec) *appsv1.ReplicaSet {
				made := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), OwnerReferences: ownedBy("live")}}
				made.Spec.Template = *template.DeepCopy()
				made.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = uid
				return made
			}
			older := manifest.Object.(*appsv1.Deployment).Spec.Template.DeepCopy()
			older.Spec.Containers[0].Image = "web:0"
			manifest.Present.ReplicaSets = []*appsv1.ReplicaSet{set("old", *older)}
			if !test.withoutCurrent {
				manifest.Present.ReplicaSets = append(manifest.Present.ReplicaSets,
					set("current", manifest.Object.(*appsv1.Deployment).Spec.Template))
			}
			manifest.Present.Pods = append(podsOf("current", 0, test.pods, nil), podsOf("old", 10, test.oldPods, nil)...)
			manifest.Present.Pods = append(manifest.Present.Pods, podsOf("other", 20, 3, nil)...)
			if diff := cmp.Diff(test.want, texts(mustExpand(t, manifest))); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestExpandAStatefulSetThatIsThere(t *testing.T) {
	const claims = ", volumeClaimTemplates: [{metadata: {name: data}}]"
	changed := func(spec string) string { return strings.Replace(statefulSet(spec), "image: web", "image: web:2", 1) }
	for name, test := range map[string]struct {
		live, applied string
		pods          int
		claims        []string
		want          []string
	}{
		"it is scaled up, and finds claims again": {
			live: statefulSet("replicas: 2" + claims), applied: statefulSet("replicas: 4" + claims), pods: 2,
			claims: []string{"data-web-0", "data-web-1", "data-web-2", "data-web-02", "data-web-7", "log-web-3", "data-web-x"},
			want:   []string{"1 StatefulSet changed", "1 PersistentVolumeClaim", "2 missing of 4, each 1 Pod"},
		},
		"its pods are numbered from five on": {
			live: statefulSet("replicas: 2"), applied: statefulSet("replicas: 2, ordinals: {start: 5}" + claims), pods: 2,
			claims: []string{"data-web-0", "data-web-5"},
			want:   []string{"1 StatefulSet changed", "1 PersistentVolumeClaim", "2 missing of 2, each 1 Pod"},
		},
		"its template changes": {
			live: statefulSet("replicas: 3"), applied: changed("replicas: 3"), pods: 3,
			want: []string{"1 StatefulSet changed", "1 ControllerRevision", "3 missing of 3, 3 old, surge 0, unavailable 1, each 1 Pod"},
		},
		"its template changes for the last ones": {
			live: statefulSet("replicas: 3"), applied: changed("replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}"), pods: 3,
			want: []string{"1 StatefulSet changed", "1 ControllerRevision", "1 missing of 3, 1 old, surge 0, unavailable 1, each 1 Pod"},
		},
		"its template changes, and fewer are wanted": {
			live: statefulSet("replicas: 3"), applied: changed("replicas: 1"), pods: 3,
			want: []string{"1 StatefulSet changed", "1 ControllerRevision", "1 missing of 1, 3 old, surge 0, unavailable 1, each 1 Pod"},
		},
		"its template changes, fewer are wanted, and one of these is missing": {
			live: statefulSet("replicas: 5"), applied: changed("replicas: 4"), pods: 3,
			want: []string{"1 StatefulSet changed", "1 ControllerRevision", "4 missing of 4, 3 old, surge 0, unavailable 1, each 1 Pod"},
		},
		"its template changes for users that delete pods": {
			live: statefulSet("replicas: 3"), applied: changed("replicas: 3, updateStrategy: {type: OnDelete}"), pods: 3,
			want: []string{"1 StatefulSet changed", "1 ControllerRevision", "0 missing of 3, each 1 Pod"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := manifestOf(t, test.applied)
			there(t, &manifest, test.live)
			manifest.Live.(*appsv1.StatefulSet).Status.UpdateRevision = "now"
			manifest.Present.Pods = podsOf("live", 0, test.pods, map[string]string{appsv1.ControllerRevisionHashLabelKey: "now"})
			manifest.Present.Claims = sets.New(test.claims...)
			if diff := cmp.Diff(test.want, texts(mustExpand(t, manifest))); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestExpandADaemonSetThatIsThere(t *testing.T) {
	changed := strings.Replace(daemonSet(", updateStrategy: {rollingUpdate: {maxSurge: 50%, maxUnavailable: 0}}"), "image: web", "image: web:2", 1)
	for name, test := range map[string]struct {
		applied string
		want    []string
		err     string
	}{
		"Kubernetes has counted its nodes": {applied: daemonSet(""), want: []string{"1 DaemonSet changed", "1 missing of 4, each 1 Pod"}},
		"its template changes": {
			applied: changed,
			want:    []string{"1 DaemonSet changed", "1 ControllerRevision", "4 missing of 4, 3 old, surge 2, unavailable 0, each 1 Pod"},
		},
		"it goes to other nodes": {
			applied: strings.Replace(daemonSet(""), "containers:", "nodeSelector: {disk: fast}, containers:", 1),
			err:     "expanding DaemonSet shop/web: can't tell on how many nodes DaemonSet shop/web would run: say so with --nodes N",
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := manifestOf(t, test.applied)
			there(t, &manifest, daemonSet(""))
			live := manifest.Live.(*appsv1.DaemonSet)
			live.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "1"}
			live.Status = appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 4}
			manifest.Present.Pods = podsOf("live", 0, 3, map[string]string{"pod-template-generation": "1"})
			demand, err := fitting.Expand(manifest)
			if unknown := (*fitting.UnknownNodesError)(nil); errors.As(err, &unknown) != (test.err != "") || err != nil && err.Error() != test.err {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, texts(demand)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestExpandAJobThatIsThere(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		pods   int
		want   []string
	}{
		"some of it is done": {
			status: "{succeeded: 4, active: 2}", pods: 2, want: []string{"1 Job changed", "1 Pod as pods end", "1 missing of 3, each 1 Pod"},
		},
		"it has ended":    {status: "{succeeded: 8, conditions: [{type: Complete, status: 'True'}]}", want: []string{"1 Job changed"}},
		"it has given up": {status: "{succeeded: 1, conditions: [{type: Failed, status: 'True'}]}", want: []string{"1 Job changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := job(", parallelism: 3, completions: 8")
			manifest := manifestOf(t, text)
			there(t, &manifest, text+"\nstatus: "+test.status)
			manifest.Present.Pods = podsOf("live", 0, test.pods, nil)
			if diff := cmp.Diff(test.want, texts(mustExpand(t, manifest))); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestExpandWhatIsBeingDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		unlisted bool
		want     []string
	}{
		"when it is updated":             {unlisted: true, want: []string{"1 Deployment changed"}},
		"before it is created once more": {want: []string{"1 Deployment changed", "1 ReplicaSet", "9 missing of 9, each 1 Pod"}},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := manifestOf(t, deployment("replicas: 9"))
			there(t, &manifest, deployment("replicas: 3"))
			manifest.Live.SetDeletionTimestamp(ptr.To(metav1.Now()))
			manifest.Present.Unlisted = test.unlisted
			if diff := cmp.Diff(test.want, texts(mustExpand(t, manifest))); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestExpandACronJobWhoseRunIsUnderWay(t *testing.T) {
	for policy, want := range map[string][]string{
		"Forbid": {"1 CronJob changed"},
		"Allow":  {"1 CronJob changed", "1 Job at each run", "1 Pod at each run"},
	} {
		text := cronJob(", concurrencyPolicy: "+policy, "")
		manifest := manifestOf(t, text)
		there(t, &manifest, text+"\nstatus: {active: [{name: run}]}")
		if diff := cmp.Diff(want, texts(mustExpand(t, manifest))); diff != "" {
			t.Errorf("%s (-want,+got):\n%s", policy, diff)
		}
	}
}

// For any number of pods, the missing ones are the wanted ones less the present
// ones, and nothing is made for each of them.
func TestCopiesAreWantedLessPresent(t *testing.T) {
	base := manifestOf(t, apps+"kind: ReplicaSet\nspec: {"+selector+", template: "+template+"}")
	live := objectOf(t, apps+"kind: ReplicaSet\nspec: {"+selector+", template: "+template+"}")
	live.SetUID("live")
	rapid.Check(t, func(r *rapid.T) {
		wanted, present := rapid.Int32Range(0, 1<<30).Draw(r, "wanted"), rapid.IntRange(0, 20).Draw(r, "present")
		manifest := base
		set := base.Object.DeepCopyObject().(*appsv1.ReplicaSet)
		set.Spec.Replicas = &wanted
		manifest.Object, manifest.Live = set, live
		manifest.Present.Pods = append(podsOf("live", 0, present, nil), podsOf("other", 30, 3, nil)...)
		demand, err := fitting.Expand(manifest)
		if err != nil {
			r.Fatal(err)
		}
		if got, want := demand.Pods.Missing(), max(0, int64(wanted)-int64(present)); got != want || len(demand.Items)+len(demand.Pods.New) != 2 {
			r.Fatalf("%d missing, want %d: %v", got, want, texts(demand))
		}
	})
}

func TestClaimsThatPodsStillLack(t *testing.T) {
	set := builders.ReplicaSet("shop", "web")
	set.UID, set.Spec.Replicas = "web", ptr.To[int32](3)
	set.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "w", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}},
	}}}
	set.Spec.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("gpu")}}
	pods := make([]*corev1.Pod, 0, 3)
	for _, name := range []string{"a", "b", "c"} {
		pod := builders.Pod("shop", name).Obj()
		pod.Spec = *set.Spec.Template.Spec.DeepCopy()
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "web", Controller: ptr.To(true)}}
		pods = append(pods, pod)
	}
	pods[0].Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To("a-gpu")}}
	present := fitting.Present{Pods: pods, Claims: sets.New("a-w")}
	for kind, object := range map[string]client.Object{"ReplicaSet": set, "Pod": pods[1]} {
		demand, err := fitting.Expand(fitting.Manifest{Kind: kind, Object: object, Live: object, Present: present})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		for _, item := range demand.Items[1:] {
			got[item.Kind] += item.Count
		}
		want := map[string]map[string]int64{
			"ReplicaSet": {"PersistentVolumeClaim": 2, "ResourceClaim": 2}, "Pod": {"PersistentVolumeClaim": 1, "ResourceClaim": 1},
		}[kind]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want,+got):\n%s", kind, diff)
		}
	}
}
