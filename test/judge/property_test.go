// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// Whatever happens, what lives is what one who only sees the end would count,
// and nothing ever lived above the peak.
func TestCommitsOneByOneComeToTheSameAsTheirOutcome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStory()
		outcome := map[string]client.Object{} // place -> what is there in the end
		for range rapid.IntRange(1, 40).Draw(t, "commits") {
			object := drawObject(t)
			place := fmt.Sprintf("%s/%s/%s", resourceOf(object), object.GetNamespace(), object.GetName())
			commit := put(object)
			if _, there := outcome[place]; there && rapid.Bool().Draw(t, "deleted") {
				commit = gone(object)
				delete(outcome, place)
			} else {
				outcome[place] = object
			}
			tellOrFail(t, s, commit)
			wantBelowPeak(t, s)
		}
		anew := newStory()
		for _, object := range outcome {
			tellOrFail(t, anew, put(object))
		}
		if diff := cmp.Diff(anew.lives(t), s.lives(t)); diff != "" {
			t.Errorf("(-recount,+followed):\n%s", diff)
		}
	})
}

func drawObject(t *rapid.T) client.Object {
	namespace := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace")
	name := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name")
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return ns(namespace, rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "team"))
	case 1:
		return drawQuota(t)
	case 2:
		return builders.ConfigMap(namespace, name)
	}
	pod := builders.Pod(namespace, name)
	if rapid.Bool().Draw(t, "requests") {
		pod.Request(corev1.ResourceCPU, rapid.SampledFrom([]string{"1", "500m"}).Draw(t, "cpu"))
	}
	if rapid.Bool().Draw(t, "ends") {
		pod.Obj().Status.Phase = corev1.PodSucceeded
	}
	return pod.Obj()
}

func drawQuota(t *rapid.T) *quotav1.ClusterResourceQuota {
	quota := builders.Quota(rapid.SampledFrom([]string{"one", "two"}).Draw(t, "quota")).
		LabelIn("team", rapid.SampledFrom([][]string{{"red"}, {"red", "blue"}}).Draw(t, "teams")...)
	for _, name := range rapid.SliceOf(rapid.SampledFrom([]corev1.ResourceName{
		"pods", "count/pods", "requests.cpu", "configmaps",
	})).Draw(t, "limited") {
		quota.Hard(name, rapid.SampledFrom([]string{"1", "3"}).Draw(t, "hard"))
	}
	if rapid.Bool().Draw(t, "scoped") {
		quota.Scopes(corev1.ResourceQuotaScopeNotBestEffort)
	}
	quota.Obj().UID = types.UID(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "uid"))
	return quota.Obj()
}

func tellOrFail(t *rapid.T, s *story, step step) {
	s.revision++
	if err := step(s); err != nil {
		t.Fatal(err)
	}
}

func wantBelowPeak(t *rapid.T, s *story) {
	for name, account := range s.books.accounts {
		for resource, lives := range account.lives {
			if peak := account.peak[resource]; lives.Cmp(peak) > 0 || lives.Sign() < 0 {
				t.Errorf("quota %s: %s of %s live, with a peak of %s", name, lives.String(), resource, peak.String())
			}
		}
	}
}

// lives returns all that lives, by quota.
func (s *story) lives(t *rapid.T) map[string]seen {
	reports, err := s.books.report()
	if err != nil {
		t.Fatal(err)
	}
	lives := map[string]seen{}
	for name, report := range reports {
		if report.Lives != nil {
			found := summary(report)
			lives[name] = seen{Lives: found.Lives, Slices: found.Slices}
		}
	}
	return lives
}
