// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// restarted is a Deployment as kubectl rollout restart leaves it.
func restarted(deployment *appsv1.Deployment) *appsv1.Deployment {
	made := deployment.DeepCopy()
	made.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	return made
}

// limitsOnly has pods whose requests equal their limits, which only admission writes down.
func limitsOnly(deployment *appsv1.Deployment) *appsv1.Deployment {
	deployment.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list("cpu", "1")}
	return deployment
}

// halfway is in the midst of a rollout: so many of its pods are there, and so many of these have the template.
func halfway(deployment *appsv1.Deployment, there, updated int32) *appsv1.Deployment {
	deployment.Status.Replicas, deployment.Status.UpdatedReplicas = there, updated
	return deployment
}

func scaledTo(deployment *appsv1.Deployment, replicas int32, requests ...string) *appsv1.Deployment {
	made := deployment.DeepCopy()
	made.Spec.Replicas = &replicas
	if len(requests) > 0 {
		made.Spec.Template.Spec.Containers[0].Resources.Requests = list(requests...)
	}
	return made
}

func recreated(deployment *appsv1.Deployment) *appsv1.Deployment {
	deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	return deployment
}

// A rollout frees the amounts that its old pods were charged.
func TestOldPodsFreeWhatTheyWereCharged(t *testing.T) {
	full := []limit{payments(quotav1.PreflightDeny, list("requests.cpu", "8"), list("requests.cpu", "8"))}
	waits := []string{"quota payments: the rollout will wait for room between its steps, because its whole surge is short of requests.cpu 2" + why}
	withDefaults := func(w *world) {
		w.surroundings.LimitRanges = []corev1.LimitRange{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "checkout"},
			Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: list("cpu", "1")}}},
		}}
	}
	stated, limited, defaulted := surging(running(8, "cpu", "1"), 2, 2), surging(limitsOnly(running(8)), 2, 2), surging(running(8), 2, 2)
	for name, test := range map[string]answerTest{
		"a restart of pods that state requests":            {limits: full, request: update("deployments", stated, restarted(stated)), want: waits},
		"a restart of pods that state limits alone":        {limits: full, request: update("deployments", limited, restarted(limited)), want: waits},
		"a restart of pods that a LimitRange gives theirs": {limits: full, world: withDefaults, request: update("deployments", defaulted, restarted(defaulted)), want: waits},
	} {
		t.Run(name, test.run)
	}
}

// A quota that is over its limit refuses each new pod, however much others have freed.
func TestARolloutUnderAQuotaOverItsLimit(t *testing.T) {
	over := []limit{payments("", list("pods", "5"), list("pods", "8"))}
	heavy := []limit{payments("", list("requests.cpu", "10"), list("requests.cpu", "16"))}
	const never = "quota payments: 8 pods can never fit, because that is more than the limit: pods 8 of 5" + why
	stays, surges, at8 := surging(running(8), 0, 1), surging(running(8), 2, 2), surging(running(8, "cpu", "2"), 0, 1)
	for name, test := range map[string]answerTest{
		"old pods that go first": {limits: over, request: update("deployments", stays, restarted(stays)), want: []string{never}},
		"a surge":                {limits: over, request: update("deployments", surges, restarted(surges)), want: []string{never}},
		"all pods go first":      {limits: over, request: update("deployments", recreated(running(8)), restarted(recreated(running(8)))), want: []string{never}},
		"smaller pods, one by one": {
			limits: heavy, request: update("deployments", at8, scaledTo(at8, 8, "cpu", "1")),
			want: []string{"quota payments: the rollout will be stuck, short of requests.cpu 5" + why},
		},
		"smaller pods, after all others": {
			limits: heavy, request: update("deployments", recreated(running(8, "cpu", "2")), scaledTo(recreated(running(8, "cpu", "2")), 8, "cpu", "1")),
		},
		"fewer pods": {limits: heavy, request: update("deployments", at8, scaledTo(at8, 7))},
	} {
		t.Run(name, test.run)
	}
}

// The amounts that old pods free, and the present pods, aren't always known. Then it may fit, so it isn't refused.
func TestDenyLetsPassWhatMayFit(t *testing.T) {
	deny := func(hard, used corev1.ResourceList) []limit {
		return []limit{payments(quotav1.PreflightDeny, hard, used)}
	}
	midway := surging(halfway(running(8), 8, 2), 0, 1)
	four := surging(running(4), 1, 1)
	large := surging(running(4, "cpu", "1"), 1, 1)
	broken := surging(halfway(running(4, "cpu", "100m"), 4, 1), 1, 1)
	set := running3()
	for name, test := range map[string]answerTest{
		"a scale in the midst of a rollout": {
			limits: deny(list("pods", "13"), list("pods", "8")), request: update("deployments", midway, scaledTo(midway, 9)),
			want: []string{"quota payments: perhaps 8 of 9 pods fit now, short of pods 2" + why},
		},
		"older pods that are made first, unless they are refused": {
			limits:  deny(list("requests.cpu", "6"), list("requests.cpu", "8")),
			request: update("deployments", surging(running(4, "cpu", "2"), 1, 3), scaledTo(surging(running(4, "cpu", "2"), 1, 3), 5, "cpu", "1")),
			want:    []string{"quota payments: the rollout may be stuck, short of requests.cpu 4" + why},
		},
		"a StatefulSet that may have all that are still wanted": {
			limits:  deny(list("limits.cpu", "2"), list("limits.cpu", "0")),
			request: update("statefulsets", lacking(running3()), fewer(lacking(running3()))),
			want:    []string{"its pods may be refused: failed quota: payments: must specify limits.cpu for: main" + strings.Replace(why, "deployment", "statefulset", 1)},
		},
		"a StatefulSet that may have all, though the limit is lower by now": {
			limits:  deny(list("persistentvolumeclaims", "0"), list("persistentvolumeclaims", "1")),
			request: update("statefulsets", lacking(setFrom(3, 0)), fewer(fewer(lacking(setFrom(3, 0))))),
			want: []string{"quota payments: 1 pod may never fit, because that is more than the limit: persistentvolumeclaims 1 of 0" +
				strings.Replace(why, "deployment", "statefulset", 1)},
		},
		"a rollback to a ReplicaSet that is there": {
			limits:  deny(list("count/replicasets.apps", "2"), list("count/replicasets.apps", "2")),
			request: update("deployments", restarted(four), four),
			want:    []string{"quota payments: the rollout may be stuck, short of count/replicasets.apps 1" + why},
		},
		"a rollback to pods that still run": {
			limits: deny(list("requests.cpu", "4"), list("requests.cpu", "3100m")), request: update("deployments", broken, large),
			want: []string{"quota payments: the rollout may be stuck, short of requests.cpu 3" + why},
		},
		"a rollback of a StatefulSet to a ControllerRevision that is there": {
			limits:  deny(list("count/controllerrevisions.apps", "2"), list("count/controllerrevisions.apps", "2")),
			request: update("statefulsets", set, restartedSet(set)),
			want: []string{"quota payments: the rollout may be stuck, short of count/controllerrevisions.apps 1; " +
				"see kubectl crq why statefulset/search -n checkout"},
		},
	} {
		t.Run(name, test.run)
	}
}

// running3 is a StatefulSet of three pods that are there.
func running3() *appsv1.StatefulSet {
	set := setFrom(3, 0)
	set.Spec.VolumeClaimTemplates = nil
	return set
}

// lacking has only one of its pods.
func lacking(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	set.Status.Replicas, set.Status.UpdatedReplicas = 1, 1
	return set
}

func fewer(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	*set.Spec.Replicas--
	return set
}

func restartedSet(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	made := set.DeepCopy()
	made.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	return made
}

// setFrom is a StatefulSet of pods that are there, numbered from start on.
func setFrom(replicas, start int32, requests ...string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "search", UID: "workload", Generation: 1},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Ordinals: &appsv1.StatefulSetOrdinals{Start: start}, Template: template(requests...),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
		},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas, CurrentReplicas: replicas},
	}
}

// partitioned has a template that comes to none of its pods.
func partitioned(set *appsv1.StatefulSet, currentRevision string) *appsv1.StatefulSet {
	most := int32(10)
	set.Spec.VolumeClaimTemplates = nil
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
		Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &most},
	}
	set.Status.CurrentRevision, set.Status.UpdateRevision = currentRevision, "new"
	return set
}

func TestAStatefulSetWhosePodsAreNumbered(t *testing.T) {
	const see = "; see kubectl crq why statefulset/search -n checkout"
	three := list("pods", "3", "persistentvolumeclaims", "3")
	cpu := payments(quotav1.PreflightDeny, list("requests.cpu", "2500m"), list("requests.cpu", "2"))
	for name, test := range map[string]answerTest{
		"other numbers make all pods anew": {
			limits: []limit{payments(quotav1.PreflightDeny, three, three)}, request: update("statefulsets", setFrom(3, 0), setFrom(3, 3)),
			denied: "quota payments: 0 of 3 pods fit now, short of persistentvolumeclaims 3, pods 3" + see,
		},
		"some other numbers make some": {
			limits: []limit{payments("", three, three)}, request: update("statefulsets", setFrom(3, 0), setFrom(3, 1)),
			want: []string{"quota payments: 2 of 3 pods fit now, short of persistentvolumeclaims 1, pods 1" + see},
		},
		"a pod below the partition is made of the template before": {
			limits: []limit{cpu}, request: update("statefulsets", partitioned(setFrom(2, 0, "cpu", "1"), "new"), partitioned(setFrom(4, 0, "cpu", "100m"), "new")),
			want: []string{"quota payments: at least 2 of 4 pods fit now, short of requests.cpu 1500m" + see},
		},
		"a pod below the partition is made of an unknown template": {
			limits: []limit{cpu}, request: update("statefulsets", partitioned(setFrom(2, 0, "cpu", "100m"), "old"), partitioned(setFrom(4, 0, "cpu", "100m"), "old")),
			want: []string{"quota payments: it is not known whether the workload's pods fit: pods below its partition are made of an older template, which isn't known" + see},
		},
	} {
		t.Run(name, test.run)
	}
}

func paused(deployment *appsv1.Deployment) *appsv1.Deployment {
	made := deployment.DeepCopy()
	made.Spec.Paused = true
	return made
}

func TestAPausedDeploymentMakesPodsLikeThoseThatAreThere(t *testing.T) {
	replicaSets := list("count/replicasets.apps", "2")
	small := []limit{payments(quotav1.PreflightDeny, list("requests.cpu", "9"), list("requests.cpu", "8500m"))}
	fresh, two := surging(halfway(running(3), 0, 0), 1, 1), surging(running(2, "cpu", "1"), 1, 1)
	rolling := surging(halfway(running(2, "cpu", "100m"), 2, 0), 1, 1)
	scaledDown := halfway(running(0), 0, 0)
	scaledDown.Annotations = map[string]string{"deployment.kubernetes.io/revision": "3"}
	const unknown = "quota payments: it is not known whether the workload's pods fit: more pods of an older template may be made, which isn't known" + why
	for name, test := range map[string]answerTest{
		"none was ever made": {
			limits:  []limit{payments(quotav1.PreflightDeny, list("pods", "5"), list("pods", "0"))},
			request: update("deployments", paused(fresh), paused(scaledTo(fresh, 9))),
		},
		"its ReplicaSet is made when it is resumed": {
			limits: []limit{payments("", replicaSets, replicaSets)}, request: update("deployments", paused(fresh), fresh),
			want: []string{"quota payments: at least 0 of 3 pods fit now, short of count/replicasets.apps 1" + why},
		},
		"a smaller template waits": {
			limits: small, request: update("deployments", paused(two), paused(scaledTo(two, 4, "cpu", "100m"))),
			denied: "quota payments: 2 of 4 pods fit now, short of requests.cpu 1500m" + why,
		},
		"an older template isn't known": {
			limits: small, request: update("deployments", paused(rolling), paused(scaledTo(rolling, 4))), want: []string{unknown},
		},
		"all were scaled away": {
			limits:  []limit{payments("", list("pods", "5"), list("pods", "0"))},
			request: update("deployments", paused(scaledDown), paused(scaledTo(scaledDown, 4))), want: []string{unknown},
		},
	} {
		t.Run(name, test.run)
	}
}

// A rollout takes surge for the pods that replace others, and for nothing else.
func TestARolloutInAQuotaWithSurge(t *testing.T) {
	with := func(surge, hard, used corev1.ResourceList) []limit {
		quota := payments(quotav1.PreflightDeny, hard, used)
		quota.surge = surge
		return []limit{quota}
	}
	warns := func(limits []limit) []limit {
		limits[0].mode = quotav1.PreflightWarn
		return limits
	}
	five := list("pods", "5")
	starts, both := surging(running(8, "cpu", "1"), 1, 0), surging(running(8, "cpu", "1"), 2, 1)
	for name, test := range map[string]answerTest{
		"it fits, and takes some": {
			limits: with(five, list("pods", "8"), list("pods", "8")), request: update("deployments", starts, restarted(starts)),
			want: []string{"quota payments: the rollout fits, and will use this part of the surge that is left: pods 1 of 5" + why},
		},
		"others hold the rest": {
			limits: with(five, list("pods", "8"), list("pods", "12")), request: update("deployments", starts, restarted(starts)),
			want: []string{"quota payments: the rollout fits, and will use this part of the surge that is left: pods 1 of 1" + why},
		},
		"others hold all of it": {
			limits: with(five, list("pods", "8"), list("pods", "13")), request: update("deployments", starts, restarted(starts)),
			denied: "quota payments: the rollout will be stuck until others give the quota's surge back, short of pods 1" + why,
		},
		"it is less than one pod": {
			limits: with(list("requests.cpu", "500m"), list("requests.cpu", "8"), list("requests.cpu", "8")), request: update("deployments", starts, restarted(starts)),
			denied: "quota payments: the rollout will be stuck, because the quota's surge is too small, short of requests.cpu 500m" + why,
		},
		"it has none of another resource": {
			limits:  with(five, list("pods", "8", "requests.cpu", "8"), list("pods", "8", "requests.cpu", "8")),
			request: update("deployments", starts, restarted(starts)),
			denied:  "quota payments: the rollout will be stuck, short of requests.cpu 1" + why,
		},
		"larger pods get none": {
			limits:  with(list("pods", "1"), list("pods", "8"), list("pods", "8")),
			request: update("deployments", starts, scaledTo(starts, 8, "cpu", "2")),
			denied:  "quota payments: the rollout will be stuck, because pods that ask for more than before get no surge, short of pods 1" + why,
		},
		"larger pods could never have as much": {
			limits:  with(list("requests.cpu", "90"), list("requests.cpu", "8"), list("requests.cpu", "8")),
			request: update("deployments", starts, scaledTo(starts, 8, "cpu", "2")),
			denied:  "quota payments: 8 pods can never fit, because that is more than the limit: requests.cpu 16 of 8" + why,
		},
		"more pods take none": {
			limits: with(five, list("pods", "11"), list("pods", "10")), request: update("deployments", starts, scaledTo(starts, 10)),
			denied: "quota payments: 9 of 10 pods fit now, short of pods 1" + why,
		},
		"not all that it would take is left": {
			limits: warns(with(list("pods", "1"), list("pods", "8"), list("pods", "8"))), request: update("deployments", both, restarted(both)),
			want: []string{"quota payments: the rollout will wait for room between its steps, because its whole surge is short of pods 1" + why},
		},
		"a pod that is made after another has gone may replace one, or not": {
			limits: with(five, list("pods", "8"), list("pods", "9")), request: update("deployments", both, restarted(both)),
			want: []string{"quota payments: the rollout may be stuck, short of pods 1" + why},
		},
		"it only warns": {
			limits:  []limit{moded(with(five, list("pods", "8"), list("pods", "8"))[0], quotav1.EnforcementWarn)},
			request: update("deployments", starts, restarted(starts)),
			want:    []string{"quota payments only warns: the rollout fits, and would use this part of the surge that is left: pods 1 of 5" + why},
		},
		"it takes none, and nothing is said": {
			limits: with(five, list("pods", "9"), list("pods", "8")), request: update("deployments", starts, restarted(starts)),
		},
	} {
		t.Run(name, test.run)
	}
}
