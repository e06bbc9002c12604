// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

const (
	why = "; see kubectl crq why deployment/search -n checkout"
	// fit ends the words about a workload that isn't made.
	fit  = "; see kubectl crq fit -f FILE -n checkout"
	less = fit + ", and apply fewer or smaller pods, or ask for a higher limit"
)

func autoscaler(most int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "auto", UID: "auto"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MaxReplicas: most, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "search"},
		},
	}
}

func surging(deployment *appsv1.Deployment, surge, unavailable int) *appsv1.Deployment {
	deployment.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
		MaxSurge: ptr.To(intstr.FromInt(surge)), MaxUnavailable: ptr.To(intstr.FromInt(unavailable)),
	}
	return deployment
}

func outdated(deployment *appsv1.Deployment) *appsv1.Deployment {
	deployment.Generation++
	return deployment
}

// answerTest is a request, and its answer.
type answerTest struct {
	limits  []limit
	world   func(*world)
	request *admissionv1.AdmissionRequest
	want    []string
	denied  string
}

func (test answerTest) run(t *testing.T) {
	w := newWorld(t, test.limits...)
	if test.world != nil {
		test.world(w)
	}
	got := w.handler().Handle(t.Context(), test.request)
	if diff := cmp.Diff(test.want, got.Warnings); diff != "" {
		t.Errorf("warnings (-want,+got):\n%s", diff)
	}
	if got.Allowed != (test.denied == "") || !got.Allowed && (got.Result.Message != test.denied || got.Result.Code != 403) {
		t.Errorf("allowed %t: %+v, want %q", got.Allowed, got.Result, test.denied)
	}
}

func payments(mode quotav1.PreflightMode, hard, used corev1.ResourceList) limit {
	return limit{name: "payments", hard: hard, used: used, mode: mode}
}

func TestAnswers(t *testing.T) {
	cpu := payments("", list("requests.cpu", "4"), list("requests.cpu", "3160m"))
	few := payments("", list("pods", "8"), list("pods", "5"))
	deny := payments(quotav1.PreflightDeny, list("pods", "8"), list("pods", "5"))
	const short = "quota payments: 3 of 8 pods fit now, short of pods 5"
	for name, test := range map[string]answerTest{
		"as the requirement says it": {
			limits: []limit{cpu}, request: creation("deployments", deployment(8, "cpu", "280m")),
			want: []string{"quota payments: 3 of 8 pods fit now, short of requests.cpu 1400m" + why},
		},
		"what fits is let pass in silence": {limits: []limit{few}, request: creation("deployments", deployment(3))},
		"so is what no quota covers":       {request: creation("deployments", deployment(9))},
		"so is all while nobody knows":     {limits: []limit{few}, world: func(w *world) { w.unknown = true }, request: creation("deployments", deployment(9))},
		"so is all with Off": {
			limits: []limit{payments(quotav1.PreflightOff, list("pods", "1"), list("pods", "0"))}, request: creation("deployments", deployment(9)),
		},
		"what is there is counted by the status": {
			limits: []limit{few}, request: update("deployments", running(4), deployment(8)),
			want: []string{"quota payments: 7 of 8 pods fit now, short of pods 1" + why},
		},
		"what is there isn't counted by an outdated status": {
			limits: []limit{few}, request: update("deployments", outdated(running(4)), deployment(8)),
			want: []string{"quota payments: at least 3 of 8 pods fit now, short of pods 5" + why},
		},
		"Deny refuses in the same words":          {limits: []limit{deny}, request: creation("deployments", deployment(8)), denied: short + less},
		"Deny refuses a dry run":                  {limits: []limit{deny}, request: dry(creation("deployments", deployment(8))), denied: short + less},
		"a dry run of a creation makes nothing":   {limits: []limit{few}, request: dry(creation("deployments", deployment(8))), want: []string{short + less}},
		"what a dry run would update is there":    {limits: []limit{few}, request: dry(update("deployments", running(4), deployment(8))), want: []string{"quota payments: 7 of 8 pods fit now, short of pods 1" + why}},
		"Deny lets pass what asks for no more":    {limits: []limit{deny}, request: update("deployments", running2(8, 3), deployment(7)), want: []string{"quota payments: 6 of 7 pods fit now, short of pods 1" + why}},
		"Deny doesn't go by an outdated status":   {limits: []limit{deny}, request: update("deployments", outdated(running(1)), deployment(8)), want: []string{"quota payments: at least 3 of 8 pods fit now, short of pods 5" + why}},
		"an update that needs the same is silent": {limits: []limit{deny}, request: update("deployments", running2(8, 3), paceOf(running2(8, 3)))},
		"one of another template isn't": {
			limits: []limit{few}, request: update("deployments", running2(8, 0), func() *appsv1.Deployment {
				made := deployment(8)
				made.Spec.Template.Spec.Containers[0].Image = "web:2"
				return made
			}()),
			want: []string{short + why},
		},
		"the strictest of several refuses, and all are told, the worst first": {
			limits:  []limit{deny, {name: "all", hard: list("pods", "9"), used: list("pods", "7")}, {name: "wide", hard: list("pods", "90"), used: list("pods", "7")}},
			request: creation("deployments", deployment(8)), denied: short + less,
			want: []string{"quota all: 2 of 8 pods fit now, short of pods 6" + less},
		},
		"what can never fit": {
			limits: []limit{few}, request: creation("deployments", deployment(9)),
			want: []string{"quota payments: 9 pods can never fit (3 fit now), because that is more than the limit: pods 9 of 8" + why},
		},
		"what a pod must state": {
			limits:  []limit{payments("", list("limits.cpu", "8"), list("limits.cpu", "5"))},
			request: creation("deployments", deployment(8)),
			want:    []string{"its pods will be refused: failed quota: payments: must specify limits.cpu for: main" + why},
		},
		"less doesn't help with what a pod must state": {
			limits:  []limit{payments(quotav1.PreflightDeny, list("limits.cpu", "8"), list("limits.cpu", "5"))},
			request: creation("deployments", deployment(8)),
			denied:  "its pods will be refused: failed quota: payments: must specify limits.cpu for: main" + fit,
		},
		"what a LimitRange refuses is said once": {
			limits: []limit{few, {name: "wide", hard: list("pods", "90"), used: list("pods", "7")}},
			world: func(w *world) {
				w.surroundings.LimitRanges = []corev1.LimitRange{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "checkout"},
					Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: list("cpu", "1")}}},
				}}
			},
			request: creation("deployments", deployment(1, "cpu", "2")),
			want:    []string{"its pods will be refused: maximum cpu usage per Container is 1.  No limit is specified" + why},
		},
		"a rollout that will be stuck": {
			limits:  []limit{payments("", list("pods", "8"), list("pods", "8"))},
			request: update("deployments", running(2), surging(deployment(2, "cpu", "1"), 1, 0)),
			want:    []string{"quota payments: the rollout will be stuck, short of pods 1" + why},
		},
		"a rollout that will wait": {
			limits:  []limit{payments("", list("pods", "8"), list("pods", "7"))},
			request: update("deployments", running(2), surging(deployment(2, "cpu", "1"), 2, 1)),
			want:    []string{"quota payments: the rollout will wait for room between its steps, because its whole surge is short of pods 1" + why},
		},
		"a quota that isn't counted": {
			limits: []limit{payments(quotav1.PreflightDeny, list("pods", "8"), nil)}, request: creation("deployments", deployment(1)),
			want: []string{"quota payments: it is not known whether the workload's pods fit: usage is still being counted; not known: pods" + why},
		},
		"a quota whose ledger is sealed": {
			limits: []limit{few}, request: creation("deployments", deployment(1)),
			world: func(w *world) {
				state := w.ledgers["payments"]
				state.Sealed = time.Unix(1, 0)
				w.ledgers["payments"] = state
			},
			want: []string{"quota payments: it is not known whether the workload's pods fit: usage is still being counted; not known: pods" + why},
		},
	} {
		t.Run(name, test.run)
	}
}

// running2 is a Deployment of which fewer pods are there.
func running2(replicas, there int32) *appsv1.Deployment {
	made := running(replicas)
	made.Status.Replicas, made.Status.UpdatedReplicas = there, there
	return made
}

// paceOf is another pace of the same rollout.
func paceOf(deployment *appsv1.Deployment) *appsv1.Deployment {
	deployment.Spec.MinReadySeconds = 7
	return deployment
}

func TestAnswersOfOtherKinds(t *testing.T) {
	few := payments("", list("pods", "8"), list("pods", "5"))
	set := func(replicas int32) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "search"},
			Spec: appsv1.StatefulSetSpec{
				Replicas: &replicas, Template: template(), VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
			},
		}
	}
	daemon := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "search"}, Spec: appsv1.DaemonSetSpec{Template: template("cpu", "1")},
	}
	job := func(parallelism int32) batchv1.JobSpec {
		return batchv1.JobSpec{Parallelism: &parallelism, Template: template()}
	}
	meta := metav1.ObjectMeta{Namespace: "checkout", Name: "search"}
	for name, test := range map[string]answerTest{
		"a scale, by a live read": {
			limits: []limit{few}, world: func(w *world) { w.live = []client.Object{running(2)} }, request: scaling(8),
			want: []string{"quota payments: 5 of 8 pods fit now, short of pods 3" + why},
		},
		"a scale to fewer": {limits: []limit{few}, world: func(w *world) { w.live = []client.Object{running(7)} }, request: scaling(6)},
		"a scale of what is gone is let pass in silence": {limits: []limit{few}, request: scaling(8)},
		"a scale of what can't be read": {
			limits: []limit{few}, world: func(w *world) { w.liveError = errTimeout }, request: scaling(8),
			want: []string{"the operator did not check whether the workload's pods fit into the quotas: deployment/search can't be read at present; check it with kubectl crq fit -f FILE"},
		},
		"an autoscaler": {
			limits: []limit{payments("", list("pods", "30"), list("pods", "21"))}, world: func(w *world) { w.live = []client.Object{running(2)} },
			request: creation("horizontalpodautoscalers", autoscaler(20)),
			want:    []string{"quota payments: maxReplicas 20: 11 fit now, short of pods 9" + why},
		},
		"an autoscaler that gets less": {
			limits: []limit{payments(quotav1.PreflightDeny, list("pods", "30"), list("pods", "21"))},
			world:  func(w *world) { w.live = []client.Object{running(2)} }, request: update("horizontalpodautoscalers", autoscaler(25), autoscaler(20)),
			want: []string{"quota payments: maxReplicas 20: 11 fit now, short of pods 9" + why},
		},
		"an autoscaler that can never": {
			limits: []limit{few}, world: func(w *world) { w.live = []client.Object{running(2)} },
			request: creation("horizontalpodautoscalers", autoscaler(20)),
			want:    []string{"quota payments: maxReplicas 20 can never fit (5 fit now), because that is more than the limit: pods 20 of 8" + why},
		},
		"an autoscaler of a custom kind": {
			limits: []limit{few}, request: creation("horizontalpodautoscalers", &autoscalingv2.HorizontalPodAutoscaler{
				Spec: autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "example.com/v1", Kind: "Web"}},
			}),
		},
		"a new daemon set whose pod doesn't fit": {
			limits: []limit{payments("", list("requests.cpu", "2"), list("requests.cpu", "1500m"))}, request: creation("daemonsets", daemon),
			want: []string{"quota payments: not one pod fits now, short of requests.cpu 500m; see kubectl crq why daemonset/search -n checkout"},
		},
		"a new daemon set whose pod never fits": {
			limits: []limit{payments("", list("requests.cpu", "500m"), list("requests.cpu", "0"))}, request: creation("daemonsets", daemon),
			want: []string{"quota payments: not one pod can ever fit, because that is more than the limit: requests.cpu 1 of 500m; " +
				"see kubectl crq why daemonset/search -n checkout"},
		},
		"a daemon set that is short, and changes": {
			limits:  []limit{payments("", list("requests.cpu", "3"), list("requests.cpu", "3"))},
			request: update("daemonsets", onNodes(daemon, "web"), onNodes(daemon, "web:2")),
			want:    []string{"quota payments: 2 of 3 pods fit now, short of requests.cpu 1; see kubectl crq why daemonset/search -n checkout"},
		},
		"a daemon set on an unknown number of nodes": {limits: []limit{few}, request: creation("daemonsets", daemon)},
		"a cron job": {
			limits: []limit{few}, request: creation("cronjobs", &batchv1.CronJob{
				ObjectMeta: meta, Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: job(5)}},
			}),
			want: []string{"quota payments: a run doesn't fit now, short of pods 2; see kubectl crq why cronjob/search -n checkout"},
		},
		"a job": {
			limits: []limit{few}, request: creation("jobs", &batchv1.Job{ObjectMeta: meta, Spec: job(8)}),
			want: []string{"quota payments: 3 of 8 pods fit now, short of pods 5; see kubectl crq why job/search -n checkout"},
		},
		"a job whose later pods find no room because those that ended stay": {
			limits: []limit{payments("", list("count/pods", "5"), list("count/pods", "2"))},
			request: creation("jobs", &batchv1.Job{ObjectMeta: meta, Spec: func() batchv1.JobSpec {
				spec := job(2)
				spec.Completions = ptr.To[int32](4)
				return spec
			}()}),
			want: []string{"quota payments: its later pods don't fit, short of count/pods 1; see kubectl crq why job/search -n checkout"},
		},
		"claims that a stateful set may find again are no reason to refuse it": {
			limits:  []limit{payments(quotav1.PreflightDeny, list("persistentvolumeclaims", "8", "pods", "9"), list("persistentvolumeclaims", "5", "pods", "0"))},
			request: creation("statefulsets", set(8)),
			want: []string{"quota payments: at least 3 of 8 pods fit now, short of persistentvolumeclaims 5; " +
				"see kubectl crq why statefulset/search -n checkout"},
		},
		"claims that a stateful set may find again leave open how many of its pods fit": {
			limits: []limit{payments("", list("persistentvolumeclaims", "8", "pods", "4"), list("persistentvolumeclaims", "5", "pods", "0"))}, request: creation("statefulsets", set(8)),
			want: []string{"quota payments: 8 pods can never fit (at least 3 fit now), because that is more than the limit: pods 8 of 4; " +
				"see kubectl crq why statefulset/search -n checkout"},
		},
		"a stateful set that is scaled down, and still too large": {
			limits:  []limit{payments("", list("pods", "3"), list("pods", "3"))},
			request: update("statefulsets", has3(set(5)), has3(set(4))),
			want: []string{"quota payments: 4 pods can never fit (at least 3 fit now), because that is more than the limit: pods 4 of 3; " +
				"see kubectl crq why statefulset/search -n checkout"},
		},
		"pods of a stateful set are": {
			limits:  []limit{payments(quotav1.PreflightDeny, list("pods", "9"), list("pods", "6"))},
			request: creation("statefulsets", set(8)),
			denied:  "quota payments: 3 of 8 pods fit now, short of pods 5" + less,
		},
	} {
		t.Run(name, test.run)
	}
}

// has3 is a stateful set of which three pods are there.
func has3(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: 3, UpdatedReplicas: 3}
	return set
}

// onNodes is a daemon set of which two pods are there, on three nodes.
func onNodes(daemon *appsv1.DaemonSet, image string) *appsv1.DaemonSet {
	made := daemon.DeepCopy()
	made.Generation = 1
	made.Spec.Template.Spec.Containers[0].Image = image
	made.Status = appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 3, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 2}
	return made
}

// It lets every request pass that it can't judge, and says so.
func TestWhatCantBeJudgedIsLetPass(t *testing.T) {
	few := payments(quotav1.PreflightDeny, list("pods", "8", "requests.cpu", "9"), list("pods", "5", "requests.cpu", "0"))
	with := func(request *admissionv1.AdmissionRequest, object string) *admissionv1.AdmissionRequest {
		request.Object.Raw = []byte(object)
		return request
	}
	const not = "the operator did not check whether the workload's pods fit into the quotas: "
	for name, test := range map[string]answerTest{
		"a panic": {limits: []limit{few}, world: func(w *world) { w.panics = true }, request: creation("deployments", deployment(1)), want: []string{not + "the operator failed to judge it; check it with kubectl crq fit -f FILE"}},
		"no object": {
			limits: []limit{few}, request: with(creation("deployments", nil), ""), want: []string{not + "there is no object; check it with kubectl crq fit -f FILE"},
		},
		"negative replicas": {
			limits: []limit{few}, request: creation("deployments", deployment(-1)), want: []string{not + "it asks for a negative number of pods; check it with kubectl crq fit -f FILE"},
		},
		"replicas that are no number": {
			limits: []limit{few}, request: with(creation("deployments", nil), `{"spec":{"replicas":"9"}}`),
			want: []string{not + "it can't be read: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32; check it with kubectl crq fit -f FILE"},
		},
		"replicas that overflow": {
			limits: []limit{few}, request: with(creation("deployments", nil), `{"spec":{"replicas":99999999999}}`),
			want: []string{not + "it can't be read: json: cannot unmarshal number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32; check it with kubectl crq fit -f FILE"},
		},
		"a kind that is unknown": {
			limits: []limit{few}, request: func() *admissionv1.AdmissionRequest {
				request := creation("deployments", deployment(1))
				request.Kind.Kind = "Widget"
				return request
			}(),
			want: []string{not + "kind Widget is unknown; check it with kubectl crq fit -f FILE"},
		},
		"a strategy that can't be": {
			limits: []limit{few}, request: creation("deployments", func() *appsv1.Deployment {
				made := deployment(1)
				made.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromString("many\nlines"))
				return made
			}()),
			want: []string{not + `expanding Deployment checkout/search: reading its strategy: invalid value for IntOrString: invalid type: string is not a percentage; check it with kubectl crq fit -f FILE`},
		},
		"unknown fields": {
			limits: []limit{few}, request: with(creation("deployments", nil), `{"spec":{"replicas":1,"unknown":[{}]},"status":{"replicas":-9}}`),
		},
	} {
		t.Run(name, test.run)
	}
}

func TestAsMuchAsCanBeIsJudged(t *testing.T) {
	const most = 1<<31 - 1
	w := newWorld(t, payments("", list("pods", "8", "requests.cpu", "9"), list("pods", "5", "requests.cpu", "0")))
	huge := surging(deployment(most, "cpu", "9223372036854775807"), most, most)
	old := surging(running(most, "cpu", "9223372036854775807"), most, most)
	old.Status.Replicas, old.Status.UpdatedReplicas = most, 7
	for _, request := range []*admissionv1.AdmissionRequest{creation("deployments", huge), update("deployments", old, huge)} {
		if got := w.handler().Handle(t.Context(), request); !got.Allowed {
			t.Errorf("got %+v", got)
		}
	}
}

func TestOneEventInAWhile(t *testing.T) {
	few := payments("", list("pods", "8"), list("pods", "5"))
	w := newWorld(t, few)
	handler := w.handler()
	other := deployment(8)
	other.UID, other.Name = "other", "other"
	for _, request := range []*admissionv1.AdmissionRequest{
		dry(creation("deployments", deployment(8))), creation("deployments", deployment(3)), creation("deployments", deployment(8)),
		creation("deployments", deployment(7)), creation("deployments", other),
	} {
		handler.Handle(t.Context(), request)
	}
	w.clock.Step(tellEvery)
	handler.Handle(t.Context(), creation("deployments", deployment(6)))
	want := []string{
		"Deployment search: QuotaShort: quota payments: 3 of 8 pods fit now, short of pods 5" + why,
		"Deployment other: QuotaShort: quota payments: 3 of 8 pods fit now, short of pods 5; see kubectl crq why deployment/other -n checkout",
		"Deployment search: QuotaShort: quota payments: 3 of 6 pods fit now, short of pods 3" + why,
	}
	if diff := cmp.Diff(want, w.recorder.told); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

func TestTheEndpoint(t *testing.T) {
	w := newWorld(t, payments("", list("pods", "8"), list("pods", "5")))
	endpoint := NewEndpoint(w.handler())
	for name, test := range map[string]struct {
		body string
		code int
		want string
	}{
		// The API server lets the request pass without an answer.
		"nonsense":   {body: "{", code: http.StatusBadRequest, want: "want an AdmissionReview with a request"},
		"no request": {body: "{}", code: http.StatusBadRequest, want: "want an AdmissionReview with a request"},
		"a review": {
			body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":` + string(raw(creation("deployments", deployment(8))).Raw) + "}",
			code: http.StatusOK, want: `"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"request","allowed":true`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			endpoint.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, strings.NewReader(test.body)))
			if answer.Code != test.code || !strings.Contains(answer.Body.String(), test.want) {
				t.Errorf("got %d: %s", answer.Code, answer.Body)
			}
		})
	}
}

func TestWarningsKeepToTheLimits(t *testing.T) {
	asked := &subject{workload: corev1.ObjectReference{Kind: "Deployment", Name: strings.Repeat("n", 63), Namespace: strings.Repeat("s", 63)}}
	row := func(name string) fitting.Row {
		return fitting.Row{Limit: &fitting.Limit{}, Resource: corev1.ResourceName(name), Counted: true, Shortfall: list("x", "1")["x"]}
	}
	rows := []fitting.Row{row("limits.cpu"), row("limits.memory"), row("pods"), row("requests.cpu"), row("requests.memory")}
	for name, test := range map[string]struct {
		quota string
		rows  []fitting.Row
		want  string
	}{
		"cut at a resource": {
			quota: "payments-of-them", rows: rows,
			want: "quota payments-of-them: 1 of 3 pods fit now, short of limits.cpu 1 and 4 more; see kubectl crq why deployment/" +
				asked.workload.Name + " -n " + asked.workload.Namespace,
		},
		"the quota's name is long": {
			quota: strings.Repeat("q", 150), rows: rows,
			want: "quota " + strings.Repeat("q", 150) + ": 1 of 3 pods fit now, short of limits.cpu 1 and 4 more",
		},
		"too long for anything": {
			quota: strings.Repeat("q", 253), rows: rows, want: "quota " + strings.Repeat("q", 246) + " ...",
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := finding{quota: test.quota, verdict: fitting.Verdict{Rows: test.rows}, room: fitting.Room{Wanted: 3, Fit: 1}}
			got := found.words(asked)
			if diff := cmp.Diff([]string{test.want}, got); diff != "" || len(got[0]) > webhookconfig.MaxWarning {
				t.Errorf("%d bytes (-want,+got):\n%s", len(got[0]), diff)
			}
		})
	}
}
