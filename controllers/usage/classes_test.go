// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"testing"

	"github.com/go-logr/logr"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func classOf(resource string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu", Labels: map[string]string{"offers": resource}},
		Spec:       resourceapi.DeviceClassSpec{ExtendedResourceName: &resource},
	}
}

// The caller that measures claims does so again, and must find the change then.
func TestClaimsAreRemeasuredOnceAClassOffersSomethingElse(t *testing.T) {
	classes := newClasses(logr.Discard())
	classes.OnAdd(classOf("example.com/a"), true) // no function listens
	told := []string{}
	classes.OnChange(func() { told = append(told, classes.Offers().GetExtendedResource("gpu")) })
	before := classes.Offers()
	relabelled := classOf("example.com/a")
	relabelled.Labels = nil
	classes.OnUpdate(classOf("example.com/a"), relabelled)
	if len(told) > 0 {
		t.Errorf("nothing has changed, and got %v", told)
	}
	classes.OnUpdate(relabelled, classOf("example.com/b"))
	if offered := before.GetExtendedResource("gpu"); offered != "example.com/a" {
		t.Errorf("what was offered is %q now", offered)
	}
	classes.OnDelete(classOf("example.com/b"))
	classes.OnAdd(classOf("example.com/c"), false)
	if len(told) != 3 || told[0] != "example.com/b" || told[1] != "" || told[2] != "example.com/c" {
		t.Errorf("got %q", told)
	}
}

func TestClassesAreKnownOnceTheirListIs(t *testing.T) {
	classes := newClasses(logr.Discard())
	if !classes.Synced() {
		t.Error("where none are served, there are none to know")
	}
	known := false
	classes.synced = func() bool { return known }
	if classes.Synced() {
		t.Error("got synced before the list")
	}
	if known = true; !classes.Synced() {
		t.Error("got not synced after the list")
	}
}
