// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// For any news, and in any order in which replicas read each other, once all have read all they say that those owners
// wait whose newest news is a refusal, and go on to say so when unneeded news is forgotten.
func TestReplicasAgreeInTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := []*List{NewList(), NewList(), NewList()}
		exchange := func(from, to int) {
			if from != to {
				records, _ := replicas[from].Own()
				replicas[to].Follow(strconv.Itoa(from), records)
			}
		}
		refused := map[string]bool{}
		now := 0.0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += 0.1
			replica := rapid.IntRange(0, 2).Draw(t, "replica")
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "owner")
			switch rapid.SampledFrom([]string{"refused", "granted", "read", "sweep"}).Draw(t, "what") {
			case "refused":
				replicas[replica].Refused(at(now), refusal(name, rapid.SampledFrom([]string{"team", "other"}).Draw(t, "quota")))
				refused[name] = true
			case "granted":
				replicas[replica].Granted(at(now), owner(name).Key()) // perhaps before it reads of the refusal
				refused[name] = false
			case "read":
				exchange(rapid.IntRange(0, 2).Draw(t, "from"), replica)
			case "sweep":
				replicas[replica].Sweep(at(now))
			}
		}
		for round := range 5 {
			if round > 0 {
				now += 2 * tombstoneLife.Seconds()
			}
			for range 2 { // after reading, a replica may have news to publish
				for from := range replicas {
					for to := range replicas {
						exchange(from, to)
					}
				}
			}
			for _, replica := range replicas {
				replica.Sweep(at(now))
				got := map[string]bool{}
				for _, record := range replica.All() {
					got[record.Name] = true
				}
				for _, name := range []string{"a", "b", "c"} {
					if got[name] != refused[name] {
						t.Fatalf("%s waits: %t, want %t", name, got[name], refused[name])
					}
				}
			}
		}
		for name, waits := range refused {
			for i, replica := range replicas {
				if records, _ := replica.Own(); !waits {
					for _, record := range records {
						if record.Name == name {
							t.Fatalf("replica %d still publishes %s", i, name)
						}
					}
				}
			}
		}
	})
}

// For any owners that come and go, the amounts promised within the life of a promise are never more than was free, and
// an object that fits isn't left waiting for longer than the longest pause.
func TestNeverIsMorePromisedThanIsFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSite("20", "20")
		s.most = rapid.IntRange(1, 10).Draw(t, "most")
		charged, now := 20, 0.0
		woken := map[string]bool{}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += float64(rapid.IntRange(1, 300).Draw(t, "milliseconds")) / 1000
			switch rapid.SampledFrom([]string{"refused", "leaves", "comes", "refused again", "other comes"}).Draw(t, "what") {
			case "refused":
				s.refuse(now, fmt.Sprintf("o%d", i))
			case "leaves":
				charged = max(0, charged-rapid.IntRange(1, 5).Draw(t, "leaving"))
			case "comes":
				for name := range woken {
					if charged < 20 {
						charged++
						delete(woken, name)
						s.list.Granted(at(now), owner(name).Key())
					}
					break
				}
			case "refused again":
				for name := range woken {
					s.refuse(now, name)
					delete(woken, name)
					break
				}
			case "other comes":
				charged = min(20, charged+1)
			}
			s.charged = strconv.Itoa(charged)
			for _, name := range s.plan(now) {
				woken[name] = true
			}
			outstanding := s.room.outstanding()["pods"]
			promised := outstanding.Value()
			if len(s.last.Wake) > s.most || len(s.last.Wake) > 0 && promised > int64(20-charged) {
				t.Fatalf("%d promised, %d free, %d woken", promised, 20-charged, len(s.last.Wake))
			}
			if s.last.Next > longestPause || s.last.Next < 0 {
				t.Fatalf("planned again after %s", s.last.Next)
			}
		}
	})
}

// Every published record is read as it was.
func TestPublishedIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?`)
		amount := rapid.SliceOfN(rapid.SampledFrom([]string{"1n", "1m", "999999999", "9223372036854775806.999999999e0", "1e29"}), 0, 9)
		moment := rapid.Custom(func(t *rapid.T) time.Time { return time.Unix(0, rapid.Int64Range(1, 1<<62).Draw(t, "time")) })
		record := rapid.Custom(func(t *rapid.T) Record {
			return Record{
				Refusal: Refusal{
					Owner: Owner{
						Kind:      rapid.SampledFrom([]Kind{ReplicaSet, StatefulSet, DaemonSet, Job, Deployment, CronJob, ReplicationController}).Draw(t, "kind"),
						Namespace: name.Draw(t, "namespace"), Name: name.Draw(t, "name"), UID: types.UID(name.Draw(t, "uid")),
					},
					Quota: name.Draw(t, "quota"), Requested: corev1.ResourceList{"cpu": sum(amount.Draw(t, "cpu"))},
				},
				Since: moment.Draw(t, "since"), Last: moment.Draw(t, "last"), Refusals: rapid.IntRange(0, 1000).Draw(t, "refusals"),
			}
		})
		records := rapid.SliceOfNDistinct(record, 0, 10, func(record Record) Key { return record.Key() }).Draw(t, "records")
		encoded, err := Encode(records)
		if err != nil {
			t.Fatal(err)
		}
		read, err := Decode(encoded)
		if err != nil || len(read) != len(records) {
			t.Fatalf("%d of %d are read: %v", len(read), len(records), err)
		}
		a, b := NewList(), NewList()
		a.Follow("a", records)
		b.Follow("a", read)
		for _, record := range records {
			if diff := cmp.Diff(a.Waiting(record.Quota), b.Waiting(record.Quota)); diff != "" {
				t.Fatalf("read (-want,+got):\n%s", diff)
			}
		}
	})
}

// sum is the request of containers with these amounts together.
func sum(texts []string) resource.Quantity {
	total := resource.Quantity{}
	for _, text := range texts {
		total.Add(resource.MustParse(text))
	}
	return total
}
