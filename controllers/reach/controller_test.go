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
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/internal/selection"
)

func settings() reach.Settings {
	return reach.Settings{
		Endpoint: reach.Endpoint{URL: "https://localhost", CABundle: []byte("authority")},
		Paths:    reach.Paths{Objects: "/o", Quotas: "/q", Probe: "/p"}, FailurePolicy: admissionregistrationv1.Fail,
	}
}

func team(t *testing.T, version uint64) []reach.Quota {
	t.Helper()
	selector, err := selection.Compile(quotav1.ClusterResourceQuotaSelector{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return []reach.Quota{{
		Name: "team", UID: "uid", Generation: 1, Version: version, Selector: selector, Limited: []schema.GroupResource{{Resource: "pods"}},
	}}
}

// Each write is of another edition, and nothing is written that is there.
func TestWhatIsWrittenIsOfAnotherEdition(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, is *admissionregistrationv1.ValidatingWebhookConfiguration, quotas *[]reach.Quota)
		stays  bool
	}{
		"nothing has changed": {
			change: func(*testing.T, *admissionregistrationv1.ValidatingWebhookConfiguration, *[]reach.Quota) {}, stays: true,
		},
		"a quota is new": {
			change: func(t *testing.T, _ *admissionregistrationv1.ValidatingWebhookConfiguration, quotas *[]reach.Quota) {
				t.Helper()
				*quotas = append(*quotas, team(t, 9)...)
			},
		},
		"a spec has changed": {
			change: func(t *testing.T, _ *admissionregistrationv1.ValidatingWebhookConfiguration, quotas *[]reach.Quota) {
				t.Helper()
				*quotas = team(t, 9)
				(*quotas)[0].Generation++
			},
		},
		"somebody has edited it": {
			change: func(_ *testing.T, is *admissionregistrationv1.ValidatingWebhookConfiguration, _ *[]reach.Quota) {
				is.Webhooks, is.Generation = is.Webhooks[1:], is.Generation+1
			},
		},
		"somebody has edited it, and taken that back": {
			change: func(_ *testing.T, is *admissionregistrationv1.ValidatingWebhookConfiguration, _ *[]reach.Quota) {
				is.Generation += 2
			},
		},
		"somebody has edited the entry of probes": {
			change: func(_ *testing.T, is *admissionregistrationv1.ValidatingWebhookConfiguration, _ *[]reach.Quota) {
				is.Webhooks[len(is.Webhooks)-1].Rules = nil
			},
		},
		"it is written anew": {
			change: func(_ *testing.T, is *admissionregistrationv1.ValidatingWebhookConfiguration, _ *[]reach.Quota) {
				*is = admissionregistrationv1.ValidatingWebhookConfiguration{}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, quotas := &Controller{}, team(t, 7)
			is := c.wanted(settings(), &admissionregistrationv1.ValidatingWebhookConfiguration{}, quotas)
			is.Generation, is.ResourceVersion = 1, "5" // as it comes back
			first := is.Webhooks[len(is.Webhooks)-1]
			test.change(t, is, &quotas)
			wanted := c.wanted(settings(), is, quotas)
			if alike(is, wanted) != test.stays {
				t.Errorf("stays as it is: %t, want %t", alike(is, wanted), test.stays)
			}
			last := wanted.Webhooks[len(wanted.Webhooks)-1]
			if last.Name != reach.ProbeWebhook || (*last.ClientConfig.URL == *first.ClientConfig.URL) != test.stays {
				t.Errorf("got the edition %s after %s", *last.ClientConfig.URL, *first.ClientConfig.URL)
			}
			wanted.Generation = is.Generation + 1
			if _, current := settings().Edition(wanted); !test.stays && !current {
				t.Errorf("%s isn't the edition of generation %d", *last.ClientConfig.URL, wanted.Generation)
			}
			if wanted.ResourceVersion != is.ResourceVersion {
				t.Error("want nothing overwritten that was written meanwhile")
			}
			if !strings.Contains(*wanted.Webhooks[1].ClientConfig.URL, "/o/exact-") {
				t.Errorf("got the question %s", *wanted.Webhooks[1].ClientConfig.URL)
			}
		})
	}
}
