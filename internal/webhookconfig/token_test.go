// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"maps"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

const token Token = "00112233445566778899aabbccddeeff"

func TestAPathBeginsWithItsToken(t *testing.T) {
	for path, test := range map[string]struct {
		token Token
		rest  string
	}{
		"/" + string(token) + "/objects/any/1-0123456789abcdef": {token: token, rest: "/objects/any/1-0123456789abcdef"},
		"/" + string(token) + "/":                               {token: token, rest: "/"},
		"/" + string(token):                                     {rest: "/" + string(token)},
		"/objects/" + string(token):                             {rest: "/objects/" + string(token)},
		"//" + string(token) + "/objects":                       {rest: "//" + string(token) + "/objects"},
		"/00112233445566778899AABBCCDDEEFF/objects":             {rest: "/00112233445566778899AABBCCDDEEFF/objects"},
		"/00112233445566778899aabbccddeef/objects":              {rest: "/00112233445566778899aabbccddeef/objects"},
		"": {},
	} {
		got, rest, found := CutToken(path)
		if got != test.token || rest != test.rest || found != (test.token != "") {
			t.Errorf("%q: got %q, %q, %t", path, got, rest, found)
		}
	}
	if made := NewToken(); !isToken(string(made)) || made == NewToken() {
		t.Errorf("got %q, want another one each time", made)
	}
}

func TestTheTokensOfAConfiguration(t *testing.T) {
	for name, endpoint := range map[string]Endpoint{
		"a Service": {Namespace: "operator", Name: "webhook"}, "a URL": {URL: "https://quota.example:443/base"},
	} {
		t.Run(name, func(t *testing.T) {
			settings := Settings{Endpoint: endpoint, Token: token, Paths: Paths{Objects: "/objects", Quotas: "/quotas", Probe: "/probe"}}
			webhooks, _ := settings.Webhooks(nil)
			is := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: append(webhooks, settings.Probe(Edition{1, "0123456789abcdef"}))}
			is.Generation = 1
			if got := Tokens(is); len(got) != 1 || got[0] != token {
				t.Errorf("got %q, want %q", got, token)
			}
			if edition, current := settings.Edition(is); !current || edition.Mark != "0123456789abcdef" {
				t.Errorf("got the edition %v, current %t", edition, current)
			}
		})
	}
	if got := Tokens(&admissionregistrationv1.ValidatingWebhookConfiguration{}); got != nil {
		t.Errorf("got %q of none", got)
	}
}

func TestWhenTheTokenIsReplaced(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	settings := Settings{Endpoint: Endpoint{URL: "https://quota.example", CABundle: []byte("authority")}, Paths: Paths{Quotas: "/quotas"}}
	for name, test := range map[string]struct {
		age     time.Duration
		exposed bool
		change  func(*admissionregistrationv1.ValidatingWebhookConfiguration)
		stays   bool
		due     time.Duration
	}{
		"it is young":                    {age: 20 * time.Minute, stays: true, due: 40 * time.Minute},
		"it is an hour old":              {age: time.Hour},
		"it was exposed":                 {age: time.Minute, exposed: true},
		"it was exposed, but is younger": {age: 20 * time.Second, exposed: true, stays: true, due: 40 * time.Second},
		"a clock was ahead":              {age: -time.Minute, stays: true, due: 61 * time.Minute},
		"a clock was wrong":              {age: -time.Hour},
		"the authorities are others": {age: time.Minute, change: func(current *admissionregistrationv1.ValidatingWebhookConfiguration) {
			current.Webhooks[0].ClientConfig.CABundle = []byte("another")
		}},
		"its age is unknown": {change: func(current *admissionregistrationv1.ValidatingWebhookConfiguration) { current.Annotations = nil }},
		"a client has removed it": {change: func(current *admissionregistrationv1.ValidatingWebhookConfiguration) {
			*current.Webhooks[0].ClientConfig.URL = "https://quota.example/quotas"
		}},
		"a client has removed all": {change: func(current *admissionregistrationv1.ValidatingWebhookConfiguration) { current.Webhooks = nil }},
		"a client has added another": {change: func(current *admissionregistrationv1.ValidatingWebhookConfiguration) {
			other := settings
			other.Token = NewToken()
			webhooks, _ := other.Webhooks(nil)
			current.Webhooks = append(current.Webhooks, webhooks...)
		}},
		"there is no configuration": {change: func(current *admissionregistrationv1.ValidatingWebhookConfiguration) {
			*current = admissionregistrationv1.ValidatingWebhookConfiguration{}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			old := settings
			old.Token, old.TokenSince = token, now.Add(-test.age)
			current := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			current.Webhooks, _ = old.Webhooks(nil)
			old.Annotate(current, true)
			if test.change != nil {
				test.change(current)
			}
			with, due := settings.WithToken(current, test.exposed, now)
			if stays := with.Token == token && with.TokenSince.Equal(old.TokenSince); stays != test.stays || !stays && !with.TokenSince.Equal(now) {
				t.Errorf("got %q since %s, stays %t", with.Token, with.TokenSince, stays)
			}
			if !test.stays {
				test.due = tokenLife
			}
			if got := due.Sub(now); got != test.due {
				t.Errorf("due after %s, want %s", got, test.due)
			}
		})
	}
}

// A replica that starts learns from the configuration by which tokens it may still be called.
func TestTheTokensBeforeStayForAMinute(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	settings := Settings{Endpoint: Endpoint{URL: "https://quota.example"}, Paths: Paths{Quotas: "/quotas"}}
	current := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	reconcile := func(exposed bool) Token {
		with, _ := settings.WithToken(current, exposed, now)
		current.Webhooks, _ = with.Webhooks(nil)
		with.Annotate(current, true)
		return with.Token
	}
	want := func(why string, retired map[Token]time.Time) {
		t.Helper()
		if got := Retired(current); !maps.EqualFunc(got, retired, time.Time.Equal) {
			t.Errorf("%s: got %v, want %v", why, got, retired)
		}
	}
	first := reconcile(false)
	want("the first", nil)
	now = now.Add(time.Minute)
	second, until := reconcile(true), now.Add(TokenOutlives)
	want("replaced", map[Token]time.Time{first: until})
	if again := reconcile(false); again != second {
		t.Errorf("got %q, want %q to stay", again, second)
	}
	want("nothing has happened", map[Token]time.Time{first: until})
	now = now.Add(20 * time.Second)
	settings.Endpoint.CABundle = []byte("another")
	third := reconcile(false)
	want("replaced soon", map[Token]time.Time{first: until, second: now.Add(TokenOutlives)})
	now = now.Add(time.Hour)
	fourth := reconcile(false)
	want("replaced late", map[Token]time.Time{third: now.Add(TokenOutlives)})

	current.Annotations[retiredAnnotation] += " nonsense =2026-03-01T12:00:00Z " + string(first) + "=soon"
	want("somebody has written there", map[Token]time.Time{third: now.Add(TokenOutlives)})
	var last Token
	for range 3 * maxRetired {
		last, fourth = fourth, NewToken()
		settings.Endpoint.CABundle = []byte(fourth)
		now = now.Add(time.Second)
		fourth = reconcile(false)
	}
	if got := Retired(current); len(got) != maxRetired || got[last].IsZero() {
		t.Errorf("got %d tokens before, want %d, and the last among them", len(got), maxRetired)
	}
}

// The admissions enforcer of AKS edits all configurations without this.
func TestTheOperatorsAnnotations(t *testing.T) {
	current := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	current.Annotations = map[string]string{"example.com/seen": "yes", WideAnnotation: "no longer"}
	before := current.DeepCopy()
	testSettings().Annotate(current, true)
	want := map[string]string{"example.com/seen": "yes", "admissions.enforcer/disabled": "true"}
	if !maps.Equal(current.Annotations, want) || Annotated(before, current) {
		t.Errorf("got %v, want %v", current.Annotations, want)
	}
	before.Annotations = map[string]string{"admissions.enforcer/disabled": "true"}
	if !Annotated(before, current) {
		t.Error("others' annotations are no difference")
	}
}
