// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

const testMark = "0123456789abcdef"

func TestAnEditionIsReadAsItWasWritten(t *testing.T) {
	want := NextEdition(&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Generation: 11}})
	if want.Generation != 12 || want == NextEdition(&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Generation: 11}}) {
		t.Errorf("got %+v, want the next generation, and another edition each time", want)
	}
	if got, err := ParseEdition(want.Path()); err != nil || got != want {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
	if got, found := EditionOf(want.Warning()); !found || got != want {
		t.Errorf("of its warning: got %+v, want %+v", got, want)
	}
	if problems := validation.IsDNS1123Subdomain(want.Path()); len(problems) > 0 {
		t.Errorf("the API server refuses the segment %q of a Service's path: %v", want.Path(), problems)
	}
}

func TestPathsThatAreNoEdition(t *testing.T) {
	for _, path := range []string{"", "12", "12-", "-" + testMark, "0-" + testMark, "+1-" + testMark, "-1-" + testMark, "12-0123", "012-" + testMark, "12-" + testMark + "-"} {
		if edition, err := ParseEdition(path); err == nil {
			t.Errorf("%q is read as %+v", path, edition)
		}
		if edition, found := EditionOf(warningPrefix + path); found {
			t.Errorf("a warning with %q is read as %+v", path, edition)
		}
	}
	if _, found := EditionOf("12-" + testMark); found {
		t.Error("another's warning tells of an edition")
	}
}

func TestWhichEditionAConfigurationIs(t *testing.T) {
	edition := Edition{Generation: 12, Mark: testMark}
	for name, test := range map[string]struct {
		change func(*admissionregistrationv1.ValidatingWebhookConfiguration)
		want   bool
	}{
		"as it was written": {change: func(*admissionregistrationv1.ValidatingWebhookConfiguration) {}, want: true},
		"written by another client since": {
			change: func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Generation++ },
		},
		"of an older release": {
			change: func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Webhooks = c.Webhooks[:2] },
		},
		"with another path": {
			change: func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
				*c.Webhooks[2].ClientConfig.URL += "0"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			settings := testSettings()
			configuration := configured(append(slices.Clip(webhooksFor(pods)), settings.Probe(edition)), true)
			configuration.Generation = 12
			test.change(configuration)
			if got, current := settings.Edition(configuration); current != test.want || (current && got != edition) {
				t.Errorf("got %+v, %t", got, current)
			}
		})
	}
}

func TestTheProbesEntry(t *testing.T) {
	settings := testSettings()
	settings.FailurePolicy = admissionregistrationv1.Ignore
	webhook := settings.Probe(Edition{Generation: 12, Mark: testMark})
	if *webhook.FailurePolicy != admissionregistrationv1.Fail || *webhook.TimeoutSeconds != 5 ||
		*webhook.SideEffects != admissionregistrationv1.SideEffectClassNone {
		t.Errorf("got %+v, want that a call that fails is told of", webhook)
	}
	if got, want := *webhook.ClientConfig.URL, "https://127.0.0.1:9443/probe/12-"+testMark; got != want {
		t.Errorf("path: got %s, want %s", got, want)
	}
	selector, err := metav1.LabelSelectorAsSelector(webhook.ObjectSelector)
	if err != nil {
		t.Fatal(err)
	}
	if selector.Matches(labels.Set{"app": "x"}) || !selector.Matches(labels.Set{ProbeLabel: "true"}) {
		t.Error("want the entry called for probes, and not for ledgers")
	}
	if lines := ruleLines(webhook); len(lines) != 1 || lines[0] != "quota.sharedquota.dev v1 quotaledgers Cluster CREATE" {
		t.Errorf("rules: got %q", lines)
	}
}
