/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package reach

import (
	"context"
	"errors"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// recounts notes whether the quota of the test is counted anew.
type recounts struct {
	concerned bool
	err       error
}

func (r *recounts) recount(_ context.Context, concerned func(types.UID) bool) error {
	r.concerned = concerned("uid")
	return r.err
}

// Objects that nobody was asked about may have been stored before anybody counted.
func TestAQuotaIsCountedAnewBeforeItIsEnforcedAgain(t *testing.T) {
	generated := func(t *testing.T) *admissionregistrationv1.ValidatingWebhookConfiguration {
		t.Helper()
		controller := &Controller{}
		is := controller.wanted(settings(), &admissionregistrationv1.ValidatingWebhookConfiguration{}, team(t, 7))
		is.Generation = 1
		return is
	}
	edited := func(t *testing.T) *admissionregistrationv1.ValidatingWebhookConfiguration {
		t.Helper()
		is := generated(t)
		is.Webhooks, is.Generation = nil, 2
		return is
	}
	for name, test := range map[string]struct {
		is      *admissionregistrationv1.ValidatingWebhookConfiguration
		missing bool
		begun   bool
		want    bool
	}{
		"if there is no configuration":                            {is: &admissionregistrationv1.ValidatingWebhookConfiguration{}, missing: true, want: true},
		"even if there was one a moment ago":                      {is: &admissionregistrationv1.ValidatingWebhookConfiguration{}, missing: true, begun: true, want: true},
		"if somebody edited it before anybody counted":            {is: edited(t), want: true},
		"but not for an edit that the count has followed":         {is: edited(t), begun: true},
		"nor for the configuration of the leader before this one": {is: generated(t)},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &recounts{}
			controller := &Controller{
				clock: clocktesting.NewFakeClock(time.Unix(0, 0)), options: Options{Recount: seen.recount}, begun: test.begun,
			}
			if err := controller.begin(t.Context(), settings(), test.is, test.missing, team(t, 7)); err != nil {
				t.Fatal(err)
			}
			if seen.concerned != test.want {
				t.Errorf("counted anew: got %t, want %t", seen.concerned, test.want)
			}
		})
	}
}

func TestAConfigurationWaitsForARecountForAWhile(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	failing := &recounts{err: errors.New("no answer")}
	controller := &Controller{clock: clock, options: Options{Recount: failing.recount}}
	begin := func() error {
		return controller.begin(t.Context(), settings(), &admissionregistrationv1.ValidatingWebhookConfiguration{}, true, nil)
	}
	for range 2 {
		if err := begin(); err == nil {
			t.Error("want it tried again")
		}
		clock.Step(recountPatience / 2)
	}
	if err := begin(); err != nil {
		t.Errorf("want the configuration written for the other quotas, got %v", err)
	}
	if !controller.begun {
		t.Error("want it begun")
	}
}
