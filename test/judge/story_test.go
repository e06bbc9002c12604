// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// start is when every story begins.
var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// story is what is told to the books: each step is at the next revision.
type story struct {
	books    *books
	clock    *clocktesting.FakeClock
	revision int64
}

type step func(*story) error

func newStory() *story {
	clock := clocktesting.NewFakeClock(start)
	return &story{clock: clock, books: newBooks(clock, layout{builtIns: builtIns()})}
}

func (s *story) tell(t *testing.T, steps ...step) {
	t.Helper()
	for number, step := range steps {
		s.revision++
		if err := step(s); err != nil {
			t.Fatalf("step %d: %v", number+1, err)
		}
	}
}

// put commits an object that is created or updated.
func put(object client.Object) step {
	return func(s *story) error {
		e := s.event(object)
		if e.at.resource.Group != "example.com" {
			e.object = object
		}
		return s.books.apply(e)
	}
}

// gone commits a deletion.
func gone(object client.Object) step {
	return func(s *story) error {
		e := s.event(object)
		e.deleted = true
		return s.books.apply(e)
	}
}

// pass lets time pass.
func pass(d time.Duration) step {
	return func(s *story) error {
		s.clock.Step(d)
		return nil
	}
}

func (s *story) event(object client.Object) event {
	at := place{resource: resourceOf(object), namespace: object.GetNamespace(), name: object.GetName()}
	key := strings.Join([]string{at.resource.String(), at.namespace, at.name}, "/")
	return event{revision: s.revision, key: key, at: at}
}

func resourceOf(object client.Object) schema.GroupResource {
	switch object.(type) {
	case *corev1.Pod:
		return pods
	case *corev1.Service:
		return services
	case *corev1.PersistentVolumeClaim:
		return volumeClaims
	case *corev1.ConfigMap:
		return schema.GroupResource{Resource: "configmaps"}
	case *corev1.Namespace:
		return namespaces
	case *quotav1.ClusterResourceQuota:
		return quotas
	case *resourceapi.DeviceClass:
		return deviceClasses
	case *unstructured.Unstructured:
		return schema.GroupResource{Group: "example.com", Resource: "widgets"}
	}
	panic(fmt.Sprintf("%T", object))
}

// ns returns a namespace with the label team.
func ns(name, team string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
}

// team starts the quota of the namespaces of team red.
func team() *builders.QuotaBuilder {
	return builders.Quota("team").Label("team", "red")
}

// as gives a quota another UID.
func as(uid string, quota *quotav1.ClusterResourceQuota) *quotav1.ClusterResourceQuota {
	quota.UID = types.UID(uid)
	return quota
}

func widget(namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// seen is a QuotaReport that reads easily.
type seen struct {
	Lives, Peak string
	Slices      map[string]string
	Admitted    int
	Violations  []string
	Surged      []string
}

func (s *story) seen(t *testing.T, quota string) seen {
	t.Helper()
	if err := s.books.age(); err != nil {
		t.Fatal(err)
	}
	reports, err := s.books.report()
	if err != nil {
		t.Fatal(err)
	}
	return summary(reports[quota])
}

func summary(report QuotaReport) seen {
	result := seen{Lives: text(report.Lives), Peak: text(report.Peak), Admitted: report.Admitted}
	for namespace, slice := range report.Namespaces {
		if result.Slices == nil {
			result.Slices = map[string]string{}
		}
		result.Slices[namespace] = text(slice)
	}
	for _, violation := range report.Violations {
		result.Violations = append(result.Violations, violation.String())
	}
	for _, surged := range report.Surged {
		result.Surged = append(result.Surged, surged.String())
	}
	return result
}

func text(list corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		parts = append(parts, string(name)+"="+quantity.String())
	}
	return strings.Join(parts, " ")
}
