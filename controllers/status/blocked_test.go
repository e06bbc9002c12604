// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

func refusalIn(namespace, name, short string) waiting.Refusal {
	return waiting.Refusal{
		Owner: waiting.Owner{Kind: waiting.ReplicaSet, Namespace: namespace, Name: name, UID: types.UID("uid-" + name)},
		Quota: "team", Requested: configMapList("1"), Short: configMapList(short),
	}
}

// blocked is the list of waiting workloads in the view of namespace a.
func (b *viewBench) blocked(t *testing.T) []string {
	t.Helper()
	var said []string
	for _, condition := range b.view(t).Conditions {
		said = append(said, fmt.Sprintf("%s %s %s since %d: %s", condition.Type, condition.Status, condition.Reason,
			condition.LastTransitionTime.Unix()-moment.Unix(), condition.Message))
	}
	return said
}

func TestAViewSaysWhichWorkloadsOfItsNamespaceWait(t *testing.T) {
	b := newViewBench(t, "1", interceptor.Funcs{})
	b.counts(t, "m")
	b.holds("1")
	step := func(change func(), want ...string) {
		t.Helper()
		b.clock.Step(2 * time.Second)
		change()
		b.reconcile(t)
		if diff := cmp.Diff(want, b.blocked(t)); diff != "" {
			t.Errorf("said (-want,+got):\n%s", diff)
		}
	}
	const advice = "; each is woken as soon as it fits: delete unneeded objects in any namespace that shares the quota, or ask for a higher limit"
	one := "Blocked True WaitingForRoom since 4: 1 workload waits for room, the first since " +
		moment.Add(4*time.Second).UTC().Format(time.RFC3339) + ": ReplicaSet web is short of configmaps: 1" + advice
	step(func() { b.Waiting.Refused(b.clock.Now(), refusalIn("b", "secret", "9")) })
	step(func() { b.Waiting.Refused(b.clock.Now(), refusalIn("a", "web", "1")) }, one)
	before := b.view(t)
	step(func() { b.Waiting.Refused(b.clock.Now(), refusalIn("a", "web", "2")) }, one)
	if diff := cmp.Diff(before, b.view(t)); diff != "" {
		t.Errorf("a refusal changes the view (-before,+after):\n%s", diff)
	}
	if len(before.Waiting) != 1 || before.Waiting[0].Name != "web" || before.Waiting[0].Kind != "ReplicaSet" {
		t.Errorf("it names %v", before.Waiting)
	}
	step(func() {
		for i := range 30 {
			b.Waiting.Refused(b.clock.Now(), refusalIn("a", fmt.Sprintf("w%02d", i), "1"))
		}
	}, "Blocked True WaitingForRoom since 4: 31 workloads wait for room, the first since "+
		moment.Add(4*time.Second).UTC().Format(time.RFC3339)+": ReplicaSet web is short of configmaps: 1"+advice)
	if names := b.view(t).Waiting; len(names) != namedWaiting || names[0].Name != "web" || names[1].Name != "w00" {
		t.Errorf("it names %d: %v", len(names), names)
	}
	b.WakeOwners = false
	step(func() {
		for _, record := range b.Waiting.All() {
			if record.Name != "web" {
				b.Waiting.Over(b.clock.Now(), record.Key())
			}
		}
	}, strings.Replace(one, "each is woken as soon as it fits", "their controllers try again now and then", 1))
	step(func() {
		for _, record := range b.Waiting.All() {
			b.Waiting.Over(b.clock.Now(), record.Key())
		}
	}, "Blocked False NoneWaiting since 12: no workload of this namespace waits for room")
	if b.view(t).Waiting != nil {
		t.Error("it still names some")
	}
}

func TestAQuotaSaysHowManyWorkloadsWait(t *testing.T) {
	since := moment.Add(1500 * time.Millisecond)
	list := waiting.NewList()
	if got := waitingOwners(list.Summary("team")); got != nil {
		t.Errorf("got %v while none waits", got)
	}
	list.Refused(since, refusalIn("a", "web", "1"))
	list.Refused(since.Add(time.Hour), refusalIn("b", "api", "1"))
	got := waitingOwners(list.Summary("team"))
	if got == nil || got.Owners != 2 || !got.Since.Time.Equal(moment.Add(time.Second)) {
		t.Errorf("got %v", got)
	}
	none, some := quotav1.ClusterResourceQuotaStatus{}, quotav1.ClusterResourceQuotaStatus{Waiting: got}
	more := some
	more.Waiting = &quotav1.WaitingOwners{Owners: 3, Since: got.Since}
	if !presses(none, some) || !presses(some, none) || presses(some, more) {
		t.Error("what presses is whether workloads wait, not how many")
	}
}

func TestThatWorkloadsWaitIsUrgent(t *testing.T) {
	object := &quotav1.ClusterResourceQuota{}
	object.Name, object.UID = "team", "u1"
	said := func(records ...waiting.Record) quotav1.LocalResourceQuotaStatus {
		var current quotav1.LocalResourceQuotaStatus
		current.Waiting, current.Conditions = waitingIn(records, true)
		current.Conditions = since(nil, current.Conditions, moment)
		return current
	}
	one := waiting.Record{Refusal: refusalIn("a", "web", "1"), Since: moment}
	two := waiting.Record{Refusal: refusalIn("a", "api", "1"), Since: moment}
	for name, test := range map[string]struct {
		before, wanted quotav1.LocalResourceQuotaStatus
		want           urgency
	}{
		"some wait":           {before: said(), wanted: said(one), want: turned},
		"none waits":          {before: said(one), wanted: said(), want: turned},
		"others wait":         {before: said(one), wanted: said(one, two), want: moved},
		"nothing has changed": {before: said(one), wanted: said(one), want: drifted},
	} {
		t.Run(name, func(t *testing.T) {
			if got := urgencyOf(object, newView(object, "a", test.before, nil), test.wanted); got != test.want {
				t.Errorf("urgency %d, want %d", got, test.want)
			}
		})
	}
}
