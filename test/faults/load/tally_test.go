// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var podResource = schema.GroupResource{Resource: "pods"}

func status(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

func TestOutcomes(t *testing.T) {
	const post = `failed calling webhook "objects.quota.sharedquota.dev": failed to call webhook: Post "https://webhook.system.svc:443/admit-objects?timeout=10s": `
	for name, test := range map[string]struct {
		err  error
		want Outcome
	}{
		"done":       {want: Succeeded},
		"over quota": {err: status(403, metav1.StatusReasonForbidden, webhook+"exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1"), want: Exceeded},
		"over quota, by another entry": {
			err: status(403, metav1.StatusReasonForbidden, strings.Replace(webhook, "objects.", "objects-2.", 1)+
				"exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1"), want: Exceeded,
		},
		"too much in doubt":               {err: status(403, metav1.StatusReasonForbidden, webhook+"too much in doubt for quota: team, requested: pods=1"), want: Withheld},
		"not counted":                     {err: status(403, metav1.StatusReasonForbidden, webhook+"status unknown for quota: team, resources: pods"), want: Unknown},
		"refused later":                   {err: status(403, metav1.StatusReasonForbidden, `admission webhook "refuses-all.example.com" denied the request: no pods here`), want: RefusedLater},
		"forbidden otherwise":             {err: status(403, metav1.StatusReasonForbidden, "you may not"), want: Failed},
		"the webhook's end is lost":       {err: status(500, metav1.StatusReasonInternalError, "Internal error occurred: "+post+"EOF"), want: CallLost},
		"nobody accepts":                  {err: status(500, metav1.StatusReasonInternalError, "Internal error occurred: "+post+"dial tcp 10.99.0.11:9443: connect: connection refused"), want: CallLost},
		"the webhook took too long":       {err: status(500, metav1.StatusReasonInternalError, "Internal error occurred: "+post+"context deadline exceeded"), want: Unanswered},
		"the webhook is paused":           {err: status(500, metav1.StatusReasonInternalError, "Internal error occurred: "+post+"net/http: TLS handshake timeout"), want: Unanswered},
		"the webhook is paused in a call": {err: status(500, metav1.StatusReasonInternalError, "Internal error occurred: "+post+"net/http: request canceled (Client.Timeout exceeded while awaiting headers)"), want: Unanswered},
		"the ledger can't be written":     {err: status(500, metav1.StatusReasonInternalError, webhook+"waiting for quota a: context deadline exceeded"), want: Undecided},
		"the replica ends":                {err: status(500, metav1.StatusReasonInternalError, webhook+"waiting for quota a: context canceled"), want: Interrupted},
		"the replica is about to end":     {err: status(500, metav1.StatusReasonInternalError, webhook+"waiting for quota a: the operator is stopping"), want: Interrupted},
		"the ledger can't be read":        {err: status(503, metav1.StatusReasonServiceUnavailable, webhook+"waiting for quota a: its ledger can't be read or written: EOF"), want: Undecided},
		"a read takes too long":           {err: status(500, metav1.StatusReasonInternalError, webhook+"waiting for namespace a: context deadline exceeded"), want: Undecided},
		"there is no webhook":             {err: status(500, metav1.StatusReasonInternalError, "Internal error occurred: "+post+`no endpoints available for service "webhook"`), want: CallLost},
		"the webhook failed":              {err: status(500, metav1.StatusReasonInternalError, webhook+"reading the ledger: EOF"), want: Failed},
		"a conflict":                      {err: apierrors.NewConflict(podResource, "p", errors.New("changed")), want: Failed},
		"not there":                       {err: apierrors.NewNotFound(podResource, "p"), want: Failed},
		"the API server is away":          {err: errors.New("dial tcp: connection refused"), want: Disconnected},
		"the client's deadline":           {err: context.DeadlineExceeded, want: Disconnected},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcomeOf(test.err); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestATallyHoldsWhatClientsMetAgainstWhatWasBroken(t *testing.T) {
	during := &Disruptions{}
	before := time.Now()
	end := during.Begin("the end of a replica", CallLost)
	<-time.After(time.Millisecond)
	middle := time.Now()
	<-time.After(time.Millisecond)
	end()
	after := time.Now().Add(time.Millisecond)

	tally := newTally()
	add := func(action string, from, to time.Time, outcome Outcome) {
		tally.add(attempt{action: action, from: from, to: to, outcome: outcome, err: errors.New("because")})
	}
	add("fine", before, after, Succeeded)
	add("within", middle, middle, CallLost)
	add("around", before.Add(-time.Second), after.Add(time.Second), CallLost)
	add("too early", before.Add(-time.Second), before.Add(-time.Millisecond), CallLost)
	add("too late", after, after, CallLost)
	add("of another kind", middle, middle, Failed)

	bad, excused := tally.Verdict(during)
	if len(excused) != 1 || excused["the end of a replica"] != 2 {
		t.Errorf("excused are %v, want two by the end of a replica", excused)
	}
	for i, want := range []string{"too early: call of the webhook lost: because", "too late", "of another kind: failed"} {
		if len(bad) != 3 || !strings.Contains(bad[i], want) {
			t.Fatalf("inexcusable are %q, want number %d to tell %q", bad, i+1, want)
		}
	}
	if got := tally.Count(CallLost); got != 4 {
		t.Errorf("counted %d lost calls, want 4", got)
	}
}

func TestADisruptionThatLastsExcuses(t *testing.T) {
	during := &Disruptions{}
	during.BeginBefore(time.Minute, "the API server is away", Disconnected)
	tally := newTally()
	long := time.Now().Add(-30 * time.Second)
	tally.add(attempt{action: "create", from: long, to: long, outcome: Disconnected, err: errors.New("refused")})
	if bad, _ := tally.Verdict(during); len(bad) > 0 {
		t.Errorf("inexcusable are %q, want none", bad)
	}
}

func TestASlotIsWhatIsKnown(t *testing.T) {
	for name, test := range map[string]struct {
		outcomes []Outcome
		want     slot
	}{
		"created":                   {outcomes: []Outcome{Succeeded}, want: slot{there: true}},
		"refused":                   {outcomes: []Outcome{Exceeded}, want: slot{}},
		"not known":                 {outcomes: []Outcome{Disconnected}, want: slot{unsure: true}},
		"not known, and then there": {outcomes: []Outcome{Disconnected, Expected}, want: slot{there: true}},
		"not known, then refused":   {outcomes: []Outcome{CallLost, Exceeded}, want: slot{unsure: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := slot{}
			for _, outcome := range test.outcomes {
				got.learn(outcome, true)
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
