// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func at(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func owner(name string) Owner {
	return Owner{Kind: ReplicaSet, Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}
}

func refusal(name, quota string) Refusal {
	return Refusal{Owner: owner(name), Quota: quota, Requested: amounts("pods", "1"), Short: amounts("pods", "1")}
}

// told returns the list's owners that wait for a quota, in order.
func told(list *List, quota string) []string {
	var all []string
	for _, record := range list.Waiting(quota) {
		all = append(all, fmt.Sprintf("%s since %g, last %g, %d refusals", record.Name,
			record.Since.Sub(at(0)).Seconds(), record.Last.Sub(at(0)).Seconds(), record.Refusals))
	}
	return all
}

func TestWhoIsAnOwner(t *testing.T) {
	controller := func(version, kind, name, uid string) *metav1.OwnerReference {
		return &metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: types.UID(uid)}
	}
	for name, test := range map[string]struct {
		controller *metav1.OwnerReference
		want       bool
	}{
		"a ReplicaSet":                        {controller: controller("apps/v1", "ReplicaSet", "web", "u"), want: true},
		"of another version, too":             {controller: controller("apps/v2beta1", "ReplicaSet", "web", "u"), want: true},
		"a ReplicationController":             {controller: controller("v1", "ReplicationController", "web", "u"), want: true},
		"a CronJob":                           {controller: controller("batch/v1", "CronJob", "web.1", "u"), want: true},
		"no owner":                            {},
		"a ReplicaSet of a foreign group":     {controller: controller("example.com/v1", "ReplicaSet", "web", "u")},
		"a core group that has none":          {controller: controller("v1", "ReplicaSet", "web", "u")},
		"a kind that creates nothing":         {controller: controller("v1", "ConfigMap", "web", "u")},
		"a name that is a path":               {controller: controller("apps/v1", "ReplicaSet", "../web", "u")},
		"a name that begins with a dot":       {controller: controller("apps/v1", "ReplicaSet", ".web", "u")},
		"a name that is too long":             {controller: controller("apps/v1", "ReplicaSet", strings.Repeat("w", 254), "u")},
		"no name":                             {controller: controller("apps/v1", "ReplicaSet", "", "u")},
		"no UID":                              {controller: controller("apps/v1", "ReplicaSet", "web", "")},
		"a UID that no API server would make": {controller: controller("apps/v1", "ReplicaSet", "web", strings.Repeat("u", 65))},
	} {
		t.Run(name, func(t *testing.T) {
			owner, got := ownerOf("shop", test.controller)
			if got != test.want || got && owner.Namespace != "shop" {
				t.Errorf("got %+v, %t", owner, got)
			}
		})
	}
}

func TestWhoWaits(t *testing.T) {
	for name, test := range map[string]struct {
		news func(*List)
		want []string
	}{
		"an owner that was refused": {
			news: func(l *List) { l.Refused(at(1), refusal("web", "team")) },
			want: []string{"web since 1, last 1, 1 refusals"},
		},
		"refused again, it waits since the first time": {
			news: func(l *List) { l.Refused(at(1), refusal("web", "team")); l.Refused(at(3), refusal("web", "team")) },
			want: []string{"web since 1, last 3, 2 refusals"},
		},
		"in the order of first refusals": {
			news: func(l *List) {
				l.Refused(at(2), refusal("api", "team"))
				l.Refused(at(1), refusal("web", "team"))
				l.Refused(at(3), refusal("web", "team"))
			},
			want: []string{"web since 1, last 3, 2 refusals", "api since 2, last 2, 1 refusals"},
		},
		"not after a grant": {
			news: func(l *List) {
				l.Refused(at(1), refusal("web", "team"))
				l.Granted(at(2), Key{Namespace: "shop", UID: "uid-web"})
			},
		},
		"but after another refusal, since that": {
			news: func(l *List) {
				l.Refused(at(1), refusal("web", "team"))
				l.Granted(at(2), Key{Namespace: "shop", UID: "uid-web"})
				l.Refused(at(3), refusal("web", "team"))
			},
			want: []string{"web since 3, last 3, 1 refusals"},
		},
		"a grant in another namespace is another's": {
			news: func(l *List) {
				l.Refused(at(1), refusal("web", "team"))
				l.Granted(at(2), Key{Namespace: "mallory", UID: "uid-web"})
			},
			want: []string{"web since 1, last 1, 1 refusals"},
		},
		"for the quota that refused it last": {
			news: func(l *List) { l.Refused(at(1), refusal("web", "other")); l.Refused(at(2), refusal("web", "team")) },
			want: []string{"web since 1, last 2, 2 refusals"},
		},
		"and so not for the one before": {
			news: func(l *List) { l.Refused(at(1), refusal("web", "team")); l.Refused(at(2), refusal("web", "other")) },
		},
		"not if there was no news of it for longer than any pause": {
			news: func(l *List) { l.Refused(at(1), refusal("web", "team")); l.Sweep(at(1 + 1201)) },
		},
		"until then it does": {
			news: func(l *List) { l.Refused(at(1), refusal("web", "team")); l.Sweep(at(1 + 1199)) },
			want: []string{"web since 1, last 1, 1 refusals"},
		},
		"a Deployment for longer, because its controller gives up": {
			news: func(l *List) {
				given := refusal("web", "team")
				given.Kind = Deployment
				l.Refused(at(1), given)
				l.Sweep(at(23 * 3600))
			},
			want: []string{"web since 1, last 1, 1 refusals"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			list := NewList()
			test.news(list)
			if diff := cmp.Diff(test.want, told(list, "team")); diff != "" {
				t.Errorf("waiting (-want,+got):\n%s", diff)
			}
			if owners, since := list.Summary("team"); owners != len(test.want) || owners > 0 && !since.Equal(list.Waiting("team")[0].Since) {
				t.Errorf("summary %d since %s", owners, since)
			}
		})
	}
}

// publish lets one replica read the other's publication.
func publish(t *testing.T, from, to *List, name string) {
	t.Helper()
	records, _ := from.Own()
	encoded, err := Encode(records)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	to.Follow(name, read)
}

func TestReplicasKnowWhatTheOthersHeard(t *testing.T) {
	a, b := NewList(), NewList()
	exchange := func() { publish(t, a, b, "a"); publish(t, b, a, "b") }
	both := func(want ...string) {
		t.Helper()
		for name, list := range map[string]*List{"a": a, "b": b} {
			if diff := cmp.Diff(want, told(list, "team")); diff != "" {
				t.Errorf("%s (-want,+got):\n%s", name, diff)
			}
		}
	}
	a.Refused(at(1), refusal("web", "team"))
	b.Refused(at(2), refusal("api", "team"))
	exchange()
	both("web since 1, last 1, 1 refusals", "api since 2, last 2, 1 refusals")

	b.Refused(at(3), refusal("web", "team"))
	exchange()
	both("web since 1, last 3, 2 refusals", "api since 2, last 2, 1 refusals")

	b.Granted(at(4), Key{Namespace: "shop", UID: "uid-web"}) // a has heard of refusals alone
	exchange()
	both("api since 2, last 2, 1 refusals")
	a.Sweep(at(70))
	exchange()
	a.Sweep(at(130))
	b.Sweep(at(130))
	exchange()
	both("api since 2, last 2, 1 refusals")
	if records, _ := b.Own(); len(records) != 1 {
		t.Errorf("b still publishes that web waits no longer: %v", records)
	}
	if records, _ := a.Own(); len(records) != 0 {
		t.Errorf("a still publishes %v", records)
	}
}

func TestAGrantBeforeTheNewsOfARefusal(t *testing.T) {
	for name, test := range map[string]struct {
		granted, read float64
		others        int
		want          []string
	}{
		"ends the wait of which another replica tells later": {granted: 1.01, read: 3},
		"so does one that many others followed":              {granted: 1.01, read: 3, others: mostGrants / 2},
		"but not if the refusal came after it": {
			granted: 0.99, read: 3, want: []string{"cron since 1, last 1, 1 refusals"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := NewList(), NewList()
			a.Refused(at(1), refusal("cron", "team"))
			b.Granted(at(test.granted), owner("cron").Key())
			for i := range 1 + test.others {
				b.Granted(at(test.read), owner(fmt.Sprintf("o%d", i)).Key())
			}
			publish(t, a, b, "a")
			publish(t, b, a, "b")
			for name, list := range map[string]*List{"a": a, "b": b} {
				if diff := cmp.Diff(test.want, told(list, "team")); diff != "" {
					t.Errorf("%s (-want,+got):\n%s", name, diff)
				}
			}
		})
	}
}

func TestTheLeaderTakesOverWhatAReplicaHeardThatHasGone(t *testing.T) {
	gone, leader := NewList(), NewList()
	gone.Refused(at(1), refusal("web", "team"))
	gone.Refused(at(1), refusal("api", "team"))
	publish(t, gone, leader, "gone")
	leader.Granted(at(2), Key{Namespace: "shop", UID: "uid-api"})
	leader.Adopt("gone")
	leader.Follow("gone", nil) // its ConfigMap is deleted
	if diff := cmp.Diff([]string{"web since 1, last 1, 1 refusals"}, told(leader, "team")); diff != "" {
		t.Errorf("waiting (-want,+got):\n%s", diff)
	}
	if records, _ := leader.Own(); len(records) != 2 { // one of them says that api waits no longer
		t.Errorf("it publishes %v", records)
	}
}

func TestANamespaceThatFillsTheListLosesItsOwn(t *testing.T) {
	list := NewList()
	list.Refused(at(0), refusal("web", "team"))
	for i := range MaxOwners + 10 {
		flood := refusal(fmt.Sprintf("o%d", i), "team")
		flood.Namespace = "mallory"
		list.Refused(at(float64(i+1)), flood)
	}
	waiting := list.Waiting("team")
	if len(waiting) != MaxOwners-evicted+11 || waiting[0].Name != "web" || waiting[1].Name != fmt.Sprintf("o%d", evicted) {
		t.Errorf("%d wait, first %s and %s", len(waiting), waiting[0].Name, waiting[1].Name)
	}
}

func TestOwnersForgottenForNewsOfAnotherReplicaWaitNoLonger(t *testing.T) {
	list, other := NewList(), NewList()
	for i := range MaxOwners {
		list.Refused(at(float64(i)/1000), refusal(fmt.Sprintf("o%04d", i), "team"))
	}
	other.Refused(at(5), refusal("theirs", "team"))
	publish(t, other, list, "other")
	list.Granted(at(6), owner("theirs").Key())
	records, _ := list.Own()
	known := 0
	for _, record := range records {
		if record.Waits() {
			known++
		}
	}
	if waits := len(list.Waiting("team")); waits != known || waits < MaxOwners-evicted {
		t.Errorf("%d wait, of which %d are known of", waits, known)
	}
}

func TestAQuotaThatFillsTheListLosesItsOwn(t *testing.T) {
	list := NewList()
	list.Refused(at(0), refusal("web", "small"))
	for quota := range 8 {
		for i := range MaxOwners {
			flood := refusal(fmt.Sprintf("%s-%d", strings.Repeat("n", 200), i), fmt.Sprintf("team-%d", quota))
			flood.Namespace = fmt.Sprintf("n%d", quota)
			list.Refused(at(float64(i+1)), flood)
		}
	}
	if size := list.own.bytes; size > MaxBytes || size < MaxBytes/2 {
		t.Errorf("it takes %d bytes", size)
	}
	if owners, _ := list.Summary("small"); owners != 1 {
		t.Error("a quota with one owner lost it")
	}
	records, _ := list.Own()
	encoded, err := Encode(records)
	if err != nil || len(encoded) > MaxEncoded {
		t.Errorf("published, it takes %d bytes: %v", len(encoded), err)
	}
}

func TestOnlyWhatPeopleAreShownIsShownAnew(t *testing.T) {
	list := NewList()
	var got []Change
	list.OnChange(func(change Change) { got = append(got, change) })
	list.Refused(at(0), refusal("web", "team"))
	again := refusal("web", "team")
	again.Short = amounts("pods", "2")
	list.Refused(at(1), again)
	list.Refused(at(11), again)
	list.Refused(at(12), refusal("web", "other"))
	list.Granted(at(13), Key{Namespace: "shop", UID: "uid-web"})
	list.Granted(at(14), Key{Namespace: "shop", UID: "uid-web"})
	want := []Change{
		{Quotas: []string{"team"}, Shown: true},
		{Quotas: []string{"team"}},
		{Quotas: []string{"team"}, Shown: true},
		{Quotas: []string{"other", "team"}, Shown: true},
		{Quotas: []string{"other"}, Shown: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want,+got):\n%s", diff)
	}
}

// text returns so many random characters of a name, which can hardly be compressed.
func text(random *rand.Rand, length int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789--"
	name := make([]byte, length)
	for i := range name {
		name[i] = letters[random.IntN(len(letters))]
	}
	return string(name)
}

func TestAllThatAReplicaRemembersIsPublished(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	list := NewList()
	for i := range 50 {
		list.Refused(at(float64(i)), refusal(fmt.Sprint("victim", i), "other"))
	}
	for i := range MaxOwners {
		flood := refusal(text(random, longestName), "team")
		flood.Namespace, flood.UID = "evil"+text(random, longestNamespace-4), types.UID(text(random, longestUID))
		list.Refused(at(100+float64(i)/1000), flood)
	}
	records, _ := list.Own()
	encoded, err := Encode(records)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Decode(encoded)
	if err != nil || len(read) != len(records) || len(encoded) > MaxEncoded {
		t.Errorf("%d of %d are published in %d bytes: %v", len(read), len(records), len(encoded), err)
	}
	if owners, _ := list.Summary("other"); owners != 50 {
		t.Errorf("%d of another quota are remembered", owners)
	}
}

func TestARefusalAfterALookStands(t *testing.T) {
	list := NewList()
	list.Refused(at(1), refusal("web", "team"))
	list.Refused(at(3), refusal("web", "team"))
	list.Over(at(2), owner("web").Key())
	if diff := cmp.Diff([]string{"web since 1, last 3, 2 refusals"}, told(list, "team")); diff != "" {
		t.Errorf("waiting (-want,+got):\n%s", diff)
	}
	list.Over(at(3), owner("web").Key())
	if got := told(list, "team"); got != nil {
		t.Errorf("waiting %v", got)
	}
}

func TestWhatTakesTooMuchIsPublishedInPart(t *testing.T) {
	var records []Record
	random := uint64(1)
	for i := range 8000 {
		name := make([]byte, 250)
		for j := range name {
			random = random*6364136223846793005 + 1442695040888963407
			name[j] = 'a' + byte(random>>59)%26
		}
		record := Record{Refusal: refusal(string(name), "team"), Since: at(0), Last: at(float64(i))}
		record.UID = types.UID(fmt.Sprintf("u%d", i))
		records = append(records, record)
	}
	encoded, err := Encode(records)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if len(encoded) > MaxEncoded || len(read) == 0 || read[0].UID != "u7999" {
		t.Errorf("%d bytes, %d owners", len(encoded), len(read))
	}
	if slices.ContainsFunc(read, func(record Record) bool { return record.UID == "u0" }) {
		t.Error("the oldest is in it")
	}
}

func BenchmarkGranted(b *testing.B) {
	for name, number := range map[string]int{"nobody waits": 0, "others wait": MaxOwners} {
		b.Run(name, func(b *testing.B) {
			list := NewList()
			for i := range number {
				list.Refused(at(0), refusal(fmt.Sprintf("o%d", i), "team"))
			}
			keys := make([]Key, 2*mostGrants)
			for i := range keys {
				keys[i] = Key{Namespace: "shop", UID: types.UID(fmt.Sprintf("uid-%d", i))}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				list.Granted(at(float64(i)/1000), keys[i%len(keys)])
			}
		})
	}
}

// BenchmarkFollow is how long all admissions wait for another replica's publication, of which one owner is new.
func BenchmarkFollow(b *testing.B) {
	other := NewList()
	for i := range MaxOwners {
		other.Refused(at(float64(i)/1000), refusal(fmt.Sprintf("o%d", i), "team"))
	}
	records, _ := other.Own()
	list := NewList()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		records[0].Last = at(100 + float64(i))
		list.Follow("other", records)
	}
}

func BenchmarkRefusedWhileTheListIsFull(b *testing.B) {
	list := NewList()
	refusals := make([]Refusal, 2*MaxOwners)
	for i := range refusals {
		refusals[i] = refusal(fmt.Sprintf("o%d", i), "team")
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		list.Refused(at(float64(i)), refusals[i%len(refusals)])
	}
}
