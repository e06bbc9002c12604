// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

// happening is something that a recorder is told.
type happening func(*Recorder)

// trial are the limits that are tried in traces.
func trialLimits(limit int) corev1.ResourceList { return cpus(fmt.Sprint(limit)) }

// traces are things that happen in up to 45 days, one after the other, and the time after them.
func trace(t *rapid.T) (happenings []happening, now time.Time) {
	now = morning()
	for range rapid.IntRange(1, 60).Draw(t, "happenings") {
		now = now.Add(time.Duration(rapid.IntRange(1, 18*60*60*1000).Draw(t, "pause")) * time.Millisecond)
		at := now
		amount := rapid.SampledFrom([]string{"0", "1", "1500m", "7", "1e30", "12345678901234567890n"}).Draw(t, "amount")
		name := rapid.SampledFrom([]string{"web", "api"}).Draw(t, "name")
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			tried := refusal("shop", name, amount)
			tried.Tried, tried.Trial = true, trialLimits(rapid.IntRange(5, 6).Draw(t, "limit"))
			happenings = append(happenings, func(r *Recorder) { r.Refused(at, tried) })
		case 1:
			missing := Refusal{Quota: team, UID: uid, Namespace: name, Missing: []corev1.ResourceName{cpu}}
			happenings = append(happenings, func(r *Recorder) { r.Refused(at, missing) })
		case 2:
			happenings = append(happenings, func(r *Recorder) { r.Refused(at, refusal("shop", name, amount)) })
		default:
			amounts := corev1.ResourceList{cpu: resource.MustParse(amount), "pods": resource.MustParse("3")}
			happenings = append(happenings, func(r *Recorder) { r.Holds(at, team, uid, amounts) })
		}
	}
	return happenings, now.Add(time.Duration(rapid.IntRange(0, 40*24).Draw(t, "hours")) * time.Hour)
}

func quantities() cmp.Option {
	return cmp.Options{
		cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }),
		cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }), cmpopts.EquateEmpty(),
	}
}

func published(t *rapid.T, r *Recorder) []byte {
	t.Helper()
	encoded, _, err := r.Publish()
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func receive(t *rapid.T, r *Recorder, replica string, encoded []byte) {
	t.Helper()
	if err := r.Receive(replica, encoded); err != nil {
		t.Fatal(err)
	}
}

// same requires that a recorder says what another one says.
func same(t *rapid.T, what string, want, got *Recorder, now time.Time) {
	t.Helper()
	for limit := 5; limit <= 6; limit++ {
		if diff := cmp.Diff(want.Summary(now, team, uid, trialLimits(limit)), got.Summary(now, team, uid, trialLimits(limit)), quantities()); diff != "" {
			t.Fatalf("%s (-want,+got):\n%s", what, diff)
		}
	}
	if diff := cmp.Diff(want.RefusedToday(now, team, uid), got.RefusedToday(now, team, uid), quantities()); diff != "" {
		t.Fatalf("%s: today (-want,+got):\n%s", what, diff)
	}
}

// A trace that several processes saw parts of is what one process would have seen, in whatever order the parts come, how
// often they come, and by whom they are adopted.
func TestPartsTogetherAreWhatOneWouldHaveSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		happenings, now := trace(t)
		one := New("one")
		parts := map[string]*Recorder{}
		for i := range rapid.IntRange(1, 4).Draw(t, "replicas") {
			name := fmt.Sprint("replica-", i)
			parts[name] = New(name)
		}
		names := make([]string, 0, len(parts))
		for i := range len(parts) {
			names = append(names, fmt.Sprint("replica-", i))
		}
		for _, happens := range happenings {
			happens(one)
			happens(parts[rapid.SampledFrom(names).Draw(t, "replica")])
		}
		if rapid.Bool().Draw(t, "swept") {
			summaryOf(parts[names[0]], now) // there still is such a quota
			parts[names[0]].Sweep(now)
		}

		first, told := New("first"), map[string][]byte{}
		for _, name := range rapid.Permutation(names).Draw(t, "order") {
			told[name] = published(t, parts[name])
			for range rapid.IntRange(1, 2).Draw(t, "times") {
				if len(told[name]) > 0 {
					receive(t, first, name, told[name])
				}
			}
		}
		same(t, "merged", one, first, now)

		// The first leader adopts some, publishes, and is killed before it deletes all of them.
		var left []string
		for _, name := range names {
			if !rapid.Bool().Draw(t, "adopted") {
				left = append(left, name)
				continue
			}
			first.Adopt(name)
			if rapid.Bool().Draw(t, "not deleted") {
				left = append(left, name)
			}
		}
		same(t, "adopted", one, first, now)
		second := New("second")
		for _, name := range rapid.Permutation(append(left, "first")).Draw(t, "second order") {
			encoded := told[name]
			if name == "first" {
				encoded = published(t, first)
			}
			if len(encoded) > 0 {
				receive(t, second, name, encoded)
			}
		}
		same(t, "after a crash", one, second, now)
		for _, name := range rapid.Permutation(append(left, "first")).Draw(t, "third order") {
			second.Adopt(name)
		}
		same(t, "all adopted", one, second, now)
		third := New("third")
		receive(t, third, "second", published(t, second))
		same(t, "after another crash", one, third, now)
	})
}

func FuzzDecode(f *testing.F) {
	r := New("a")
	r.Holds(morning(), team, uid, cpus("7"))
	r.Refused(morning(), refusal("shop", "web", "12"))
	r.Edited(Edit{Quota: team, UID: uid, At: morning(), By: "olga", Generation: 2, Before: "x", After: "y"})
	encoded, _, err := r.Publish()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encoded)
	f.Add([]byte("nonsense"))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		read := New("b")
		_ = read.Receive("a", encoded)
		read.Adopt("a")
		for of := range read.own {
			read.Summary(morning(), of.name, of.uid, cpus("5"))
		}
		read.Sweep(morning())
		again, _, err := read.Publish()
		if err != nil {
			t.Fatal(err)
		}
		if len(again) > 0 {
			if err := New("c").Receive("b", again); err != nil {
				t.Fatalf("what was read can't be read again: %v", err)
			}
		}
	})
}

// FuzzDecodeText fuzzes what is packed, too.
func FuzzDecodeText(f *testing.F) {
	f.Add(`{"n":"team","u":"uid","s":1,"r":{"pods":{"d":[{"d":1,"p":"3","a":5,"l":"2","t":6,"c":1,"m":"9"}]}},"w":[{"p":1,"c":2}],"c":{"shop":1}}`)
	f.Add(`{"n":"team","y":{"x":{"s":1,"r":{"pods":{"c":1,"m":"1e99"}}}},"e":[{"a":1,"b":"olga","g":2,"c":[{"f":"hard"}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		encoded, err := pack(wirePart{ID: "a", Quotas: nil})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(encoded, nil); err != nil {
			t.Fatal(err)
		}
		read := &part{records: map[key]*record{}, hashes: map[key]uint64{}}
		if read.take([]byte(text), nil) != nil {
			return
		}
		for of, known := range read.records {
			own := &entry{record: known}
			known.clone().summary(morning().UnixMilli(), cpus("5"))
			again, err := own.encode(of, 20000, Days)
			if err != nil {
				t.Fatal(err)
			}
			if err := (&part{records: map[key]*record{}, hashes: map[key]uint64{}}).take(again, nil); err != nil {
				t.Fatalf("%s can't be read again: %v", again, err)
			}
		}
	})
}
