// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func TestTakesNoMore(t *testing.T) {
	of := func(cpu string) *builders.PodBuilder { return builders.Pod("a", "web").Request("cpu", cpu) }
	scratch := of("1").EphemeralVolume("scratch", "1Gi").Obj()
	mounted := of("1").Obj()
	mounted.Spec.Volumes = []corev1.Volume{{Name: "config"}}
	for name, test := range map[string]struct {
		after, before *corev1.Pod
		want          bool
	}{
		"the same":                      {of("1").Obj(), of("1").Obj(), true},
		"less":                          {of("500m").Obj(), of("1").Obj(), true},
		"more":                          {of("2").Obj(), of("1").Obj(), false},
		"of a resource that is new":     {of("1").Request("memory", "1Gi").Obj(), of("1").Obj(), false},
		"the same claim":                {scratch, scratch, true},
		"another claim":                 {scratch, of("1").Obj(), false},
		"one claim less":                {of("1").Obj(), scratch, false},
		"a volume that makes no claims": {mounted, of("1").Obj(), true},
	} {
		if got := TakesNoMore(test.after, test.before); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
