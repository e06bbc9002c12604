// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// calling counts calls, and leaves out field selectors, which the fake API server doesn't know.
type calling struct {
	client.Reader
	calls atomic.Int32
}

func (c *calling) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.calls.Add(1)
	return c.Reader.Get(ctx, key, object, options...)
}

func (c *calling) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.calls.Add(1)
	var known []client.ListOption
	for _, option := range options {
		if _, byField := option.(client.MatchingFieldsSelector); !byField {
			known = append(known, option)
		}
	}
	return c.Reader.List(ctx, list, known...)
}

func counted(t *testing.T, refused map[string]error, objects ...client.Object) (*Reader, *calling) {
	t.Helper()
	calls := &calling{Reader: cluster(t, refused, objects...).client}
	return NewReader(calls, fitting.NewTypes()), calls
}

func owned[T client.Object](object T, kind, name string) T {
	object.SetOwnerReferences([]metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(kind + "/" + name), Controller: ptr.To(true)}})
	return object
}

func identified[T client.Object](object T, kind string) T {
	object.SetUID(types.UID(kind + "/" + object.GetName()))
	return object
}

// story is a Deployment with an older and a current ReplicaSet and an autoscaler, and a CronJob with two Jobs.
func story() []client.Object {
	deployment := identified(builders.Deployment("shop", "web", 3), "Deployment")
	set := func(name, image string) *appsv1.ReplicaSet {
		made := owned(builders.ReplicaSet("shop", name), "Deployment", "web")
		made.Spec.Template = *deployment.Spec.Template.DeepCopy()
		made.Spec.Template.Spec.Containers[0].Image = image
		made.Labels = deployment.Spec.Selector.MatchLabels
		return made
	}
	job := func(name string, at int64) *batchv1.Job {
		made := owned(builders.Job("shop", name), "CronJob", "nightly")
		made.CreationTimestamp = metav1.Unix(at, 0)
		return made
	}
	scaler := func(name, version, kind, target string) *autoscalingv2.HorizontalPodAutoscaler {
		made := builders.HorizontalPodAutoscaler("shop", name)
		made.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: version, Kind: kind, Name: target}
		return made
	}
	return []client.Object{
		builders.Namespace("shop").Obj(), deployment, set("web-old", "old"), set("web-new", deployment.Spec.Template.Spec.Containers[0].Image),
		scaler("scaler", "apps/v1", "Deployment", "web"), scaler("of-set", "apps/v1", "ReplicaSet", "web-old"),
		scaler("of-none", "apps/v1", "Deployment", "none"), scaler("of-rollout", "argoproj.io/v1alpha1", "Rollout", "web"),
		identified(builders.CronJob("shop", "nightly"), "CronJob"), job("nightly-1", 1), job("nightly-2", 2),
		builders.Pod("shop", "bare").Obj(), identified(builders.StatefulSet("shop", "db"), "StatefulSet"),
	}
}

// subject parses a text such as "deployment/web".
func subject(text string) Subject {
	kind, name, _ := strings.Cut(text, "/")
	at := slices.IndexFunc(Kinds(), func(known schema.GroupVersionKind) bool { return strings.EqualFold(known.Kind, kind) })
	return Subject{GroupVersionKind: Kinds()[at], Name: name}
}

func TestTheChainOfASubject(t *testing.T) {
	for name, test := range map[string]struct {
		subject  string
		chain    []string
		workload string
		target   ScaleTarget
	}{
		"a Deployment":  {"deployment/web", []string{"Deployment/web", "ReplicaSet/web-new"}, "Deployment/web", TargetRead},
		"an autoscaler": {"horizontalpodautoscaler/scaler", []string{"HorizontalPodAutoscaler/scaler", "Deployment/web", "ReplicaSet/web-new"}, "Deployment/web", TargetRead},
		"an autoscaler of a ReplicaSet": {
			"horizontalpodautoscaler/of-set", []string{"HorizontalPodAutoscaler/of-set", "ReplicaSet/web-old"}, "ReplicaSet/web-old", TargetRead,
		},
		"an autoscaler of nothing":           {"horizontalpodautoscaler/of-none", []string{"HorizontalPodAutoscaler/of-none"}, "", TargetMissing},
		"an autoscaler of a custom resource": {"horizontalpodautoscaler/of-rollout", []string{"HorizontalPodAutoscaler/of-rollout"}, "", TargetForeign},
		"a CronJob":                          {"cronjob/nightly", []string{"CronJob/nightly", "Job/nightly-2"}, "Job/nightly-2", TargetRead},
		"a StatefulSet":                      {"statefulset/db", []string{"StatefulSet/db"}, "StatefulSet/db", TargetRead},
		"a ReplicaSet":                       {"replicaset/web-old", []string{"ReplicaSet/web-old"}, "ReplicaSet/web-old", TargetRead},
		"a pod":                              {"pod/bare", []string{"Pod/bare"}, "Pod/bare", TargetRead},
		"nothing":                            {"pod/none", nil, "", TargetRead},
	} {
		t.Run(name, func(t *testing.T) {
			reader, calls := counted(t, nil, story()...)
			got, err := reader.Situation(t.Context(), "shop", subject(test.subject))
			if err != nil {
				t.Fatal(err)
			}
			var chain []string
			for _, link := range got.Chain {
				chain = append(chain, KindOf(link).Kind+"/"+link.GetName())
			}
			if diff := cmp.Diff(test.chain, chain); diff != "" {
				t.Errorf("chain (-want,+got):\n%s", diff)
			}
			if got.Target != test.target {
				t.Errorf("target %q, want %q", got.Target, test.target)
			}
			workload := ""
			if link, makes := got.Workload(); makes {
				workload = KindOf(link).Kind + "/" + link.GetName()
			}
			if workload != test.workload {
				t.Errorf("workload %q, want %q", workload, test.workload)
			}
			// One more names the namespaces that hold the short resources.
			if most := int32(16); calls.calls.Load() > most {
				t.Errorf("%d calls, want at most %d", calls.calls.Load(), most)
			}
		})
	}
}

func TestASituationWithoutRights(t *testing.T) {
	refused := map[string]error{}
	for _, kind := range []string{"EventList", "PodList", "ReplicaSetList", "LimitRangeList", "LocalResourceQuotaList"} {
		refused[kind] = forbidden
	}
	reader, _ := counted(t, refused, story()...)
	got, err := reader.Situation(t.Context(), "shop", subject("deployment/web"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"events", "limitranges", "localresourcequotas", "pods", "replicasets"}, got.Forbidden); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	if !got.Unread.LimitRanges || !got.Present.Unlisted || len(got.Chain) != 1 {
		t.Errorf("got %+v", got)
	}
	reader, _ = counted(t, map[string]error{"Deployment": forbidden}, story()...)
	if _, err := reader.Situation(t.Context(), "shop", subject("deployment/web")); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	broken := errors.New("broken")
	reader, _ = counted(t, map[string]error{"PodList": broken}, story()...)
	if _, err := reader.Situation(t.Context(), "shop", subject("deployment/web")); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestHolders(t *testing.T) {
	reader, _ := counted(t, nil, builders.Quota("team").Hard("pods", "1").Obj())
	got, err := reader.Holders(t.Context(), []string{"gone", "team"})
	if err != nil || got[0] != nil || got[1] == nil {
		t.Errorf("got %v, %v", got, err)
	}
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "clusterresourcequotas"}, "team", nil)
	reader, _ = counted(t, map[string]error{"ClusterResourceQuota": denied})
	if got, err := reader.Holders(t.Context(), []string{"team"}); err != nil || got[0] != nil {
		t.Errorf("got %v, %v", got, err)
	}
}
