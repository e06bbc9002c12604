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
)

// site is a quota on pods, with the owners that wait for it.
type site struct {
	room    *Room
	list    *List
	hard    string
	charged string
	surge   string
	most    int
	leaves  string
	last    Plan
}

func newSite(hard, charged string) *site {
	return &site{room: NewRoom(), list: NewList(), hard: hard, charged: charged, surge: "0", most: 100}
}

func (s *site) refuse(seconds float64, names ...string) {
	for i, name := range names {
		s.list.Refused(at(seconds).Add(time.Duration(i)*time.Millisecond), refusal(name, "team"))
	}
}

// plan returns the names of the owners that are woken.
func (s *site) plan(seconds float64) []string {
	free := Free{Hard: amounts("pods", s.hard), Surge: amounts("pods", s.surge), Charged: amounts("pods", s.charged), Limits: func(namespace string) bool {
		return namespace != s.leaves
	}}
	s.last = s.room.Plan(at(seconds), s.list.Waiting("team"), free, s.most)
	var names []string
	for _, record := range s.last.Wake {
		names = append(names, record.Name)
	}
	return names
}

func (s *site) record(name string) Record { return Record{Refusal: refusal(name, "team")} }

func want(t *testing.T, got []string, names ...string) {
	t.Helper()
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("woken (-want,+got):\n%s", diff)
	}
}

func TestAsManyAreWokenAsFitTheOldestFirst(t *testing.T) {
	s := newSite("10", "10")
	s.refuse(0, "a", "b", "c")
	want(t, s.plan(1))
	if s.last.Next != 0 {
		t.Errorf("without room it is planned again after %s", s.last.Next)
	}
	s.charged = "8"
	want(t, s.plan(2), "a", "b")
	want(t, s.plan(2.1)) // all of it is promised
}

// The others wait until all that is charged is below the limit again.
func TestSurgeIsRoomForOwnersWhoseObjectsReplaceOthers(t *testing.T) {
	s := newSite("10", "12")
	s.surge = "2"
	s.refuse(0, "a")
	for _, name := range []string{"b", "c"} {
		rolls := refusal(name, "team")
		rolls.Replaces = true
		s.list.Refused(at(0.1), rolls)
	}
	want(t, s.plan(1)) // all of it is taken
	s.charged = "11"
	want(t, s.plan(2), "b")
	want(t, s.plan(2.1)) // it is promised
	if s.last.Next == 0 {
		t.Error("want it planned again when the promise ends")
	}
	s.list.Granted(at(2.2), owner("b").Key())
	want(t, s.plan(2.3)) // it isn't charged yet
	s.charged = "9"
	want(t, s.plan(4), "a", "c")
}

func TestNoMoreAreWokenThanTheBound(t *testing.T) {
	s := newSite("10", "0")
	s.most = 2
	s.refuse(0, "a", "b", "c")
	want(t, s.plan(1), "a", "b")
	if s.last.Next != againSoon {
		t.Errorf("it is planned again after %s", s.last.Next)
	}
	want(t, s.plan(1.1), "c")
}

func TestAPromiseIsKeptByWhatIsCharged(t *testing.T) {
	s := newSite("2", "1")
	s.refuse(0, "a", "b", "c")
	want(t, s.plan(1), "a")
	s.list.Granted(at(1.1), owner("a").Key())
	s.charged = "2"
	want(t, s.plan(1.2))
	s.charged = "1" // an object leaves: the promise is kept, so there is room
	want(t, s.plan(1.3), "b")
}

// An object leaves while a pod comes, so the charged amount doesn't grow.
func TestNewsOfAGrantKeepsAPromiseToo(t *testing.T) {
	s := newSite("2", "1")
	s.refuse(0, "a", "b", "c")
	want(t, s.plan(1), "a")
	s.list.Granted(at(1.1), owner("a").Key())
	want(t, s.plan(1.2)) // it may not be charged yet
	if wait := s.last.Next; wait != chargeDelay {
		t.Errorf("it is planned again after %s", wait)
	}
	want(t, s.plan(2.2), "b")
}

// Grants from escrow are charged once they are counted.
func TestAGrantIsOnlyOneBothByNewsAndByGrowth(t *testing.T) {
	s := newSite("3", "1")
	s.refuse(0, "a", "b", "c")
	want(t, s.plan(1), "a", "b")
	s.list.Granted(at(1.1), owner("a").Key())
	want(t, s.plan(1.2))
	s.charged = "2"
	want(t, s.plan(1.3))
	want(t, s.plan(3.4)) // b still has its promise
}

// The pod came by another replica, whose news come late.
func TestGrowthOfWhichThereIsNoNewsKeepsTheOldestPromise(t *testing.T) {
	s := newSite("3", "1")
	s.refuse(0, "a", "b", "c")
	want(t, s.plan(1), "a", "b")
	s.charged = "2"
	want(t, s.plan(1.2))
	s.charged = "1" // that one has gone again
	want(t, s.plan(1.3), "c")
}

func TestAPromiseThatIsNotKeptEnds(t *testing.T) {
	s := newSite("2", "1")
	s.refuse(0, "a", "b")
	want(t, s.plan(1), "a")
	want(t, s.plan(5.5))
	if wait := s.last.Next; wait != 500*time.Millisecond {
		t.Errorf("it is planned again after %s", wait)
	}
	want(t, s.plan(6), "b") // whose turn is before that of a
}

// A controller may be busy, or be allowed few requests in a second.
func TestWhileControllersWorkThroughManyOwnersNoPromiseEnds(t *testing.T) {
	s := newSite("30", "0")
	for i := range 60 {
		s.refuse(float64(i)/60, fmt.Sprintf("o%02d", i))
	}
	if woken := s.plan(1); len(woken) != 30 {
		t.Errorf("%d were woken", len(woken))
	}
	for came := range 20 {
		s.charged = strconv.Itoa(came + 1)
		s.list.Granted(at(float64(2+2*came)), owner(fmt.Sprintf("o%02d", came)).Key())
		want(t, s.plan(float64(2+2*came)))
	}
	if woken := s.plan(43); len(woken) != 10 { // nothing has come for three seconds
		t.Errorf("%d were woken", len(woken))
	}
}

func TestNoPromiseIsKeptForLongerThanAMinute(t *testing.T) {
	s := newSite("1000", "0")
	s.most = 1
	s.refuse(0, "a", "b")
	want(t, s.plan(1), "a")
	s.room.Answered(s.record("a"), 1000)
	for i := range 59 { // one by one, or another owner's
		s.charged = strconv.Itoa(1 + i)
		want(t, s.plan(float64(2+i)))
	}
	want(t, s.plan(61), "b")
}

func TestWhoIsRefusedAgainGoesToTheEndAndPauses(t *testing.T) {
	s := newSite("2", "1")
	s.refuse(0, "a", "b")
	want(t, s.plan(1), "a")
	s.refuse(1.2, "a") // another owner was faster, and has left
	want(t, s.plan(1.3), "b")
	if s.last.RefusedAgain != 1 {
		t.Errorf("%d were refused again", s.last.RefusedAgain)
	}
	s.list.Granted(at(1.4), owner("b").Key())
	s.charged = "2"
	want(t, s.plan(1.5))
	s.charged = "1"
	want(t, s.plan(2.2)) // a pauses for a second since it was refused
	if s.last.RefusedAgain != 0 {
		t.Error("that was counted twice")
	}
	want(t, s.plan(2.3), "a")
}

func TestPausesDoubleUpToAMinute(t *testing.T) {
	s := newSite("1", "0")
	s.refuse(0, "a")
	now := 1.0
	var pauses []time.Duration
	for range 9 {
		want(t, s.plan(now), "a")
		s.refuse(now, "a")
		if names := s.plan(now); names != nil {
			t.Fatal("it has no pause")
		}
		pauses = append(pauses, s.last.Next)
		now += s.last.Next.Seconds()
	}
	var wanted []time.Duration
	for _, seconds := range []float64{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		wanted = append(wanted, at(seconds).Sub(at(0)))
	}
	if diff := cmp.Diff(wanted, pauses); diff != "" {
		t.Errorf("pauses (-want,+got):\n%s", diff)
	}
}

func TestWhoIsNeverHeardOfIsForgotten(t *testing.T) {
	s := newSite("1", "0")
	s.refuse(0, "a")
	now, wakes := 1.0, 0
	for len(s.last.Forget) == 0 && wakes < 100 {
		wakes += len(s.plan(now))
		now += s.last.Next.Seconds()
	}
	if wakes != mostUnheard || s.last.Forget[0] != owner("a").Key() {
		t.Errorf("%d wakes, then %v is forgotten", wakes, s.last.Forget)
	}
}

func TestWhoCouldNotBeWokenIsNotForgotten(t *testing.T) {
	s := newSite("1", "0")
	s.refuse(0, "a")
	now, wakes := 1.0, 0
	for range 100 {
		if names := s.plan(now); names != nil {
			wakes++
			s.room.Failed(at(now), owner("a").Key())
		}
		now += 60
	}
	if wakes < 20 || wakes > 30 || s.last.Forget != nil {
		t.Errorf("%d wakes, then %v is forgotten", wakes, s.last.Forget)
	}
}

func TestAllThatAnOwnerLacksIsPromised(t *testing.T) {
	s := newSite("4", "0")
	s.most = 1
	s.refuse(0, "a", "b", "c")
	want(t, s.plan(1), "a")
	s.room.Answered(s.record("a"), 3)
	want(t, s.plan(1.1), "b")
	s.room.Answered(s.record("b"), 1)
	want(t, s.plan(1.2))
	s.charged = "3" // a has all it lacks
	s.list.Granted(at(1.3), owner("a").Key())
	want(t, s.plan(1.4))
	want(t, s.plan(6.2), "c") // b never came
}

func TestWhoLacksNothingHasNoPromise(t *testing.T) {
	s := newSite("1", "0")
	s.most = 1
	s.refuse(0, "a", "b")
	want(t, s.plan(1), "a")
	s.room.Answered(s.record("a"), 0)
	s.list.Over(at(1.1), owner("a").Key())
	want(t, s.plan(1.2), "b")
}

func TestWhatDoesNotFitLetsOthersPass(t *testing.T) {
	s := newSite("2", "0")
	large := refusal("large", "team")
	large.Requested = amounts("pods", "3")
	s.list.Refused(at(0), large)
	s.refuse(1, "a")
	want(t, s.plan(2), "a")
}

func TestWhatAQuotaDoesNotLimitFits(t *testing.T) {
	s := newSite("1", "1")
	s.leaves = "shop"
	s.refuse(0, "a", "b")
	want(t, s.plan(1), "a", "b")
	s = newSite("1", "1")
	other := refusal("a", "team")
	other.Requested = amounts("services", "1")
	s.list.Refused(at(0), other)
	want(t, s.plan(1), "a")
}

// The other replica's news of the refusal come after a plan in which the owner didn't wait.
func TestThePromiseOfTheRestEndsWhenTheOwnerIsRefused(t *testing.T) {
	s := newSite("10", "9")
	s.most = 1
	s.refuse(0, "a", "b")
	want(t, s.plan(1), "a")
	s.room.Answered(s.record("a"), 10)
	s.list.Granted(at(1.05), owner("a").Key())
	s.charged = "10"
	want(t, s.plan(1.1))
	s.refuse(1.2, "a") // its second pod
	want(t, s.plan(2))
	if s.last.RefusedAgain != 1 {
		t.Errorf("%d were refused again", s.last.RefusedAgain)
	}
	s.charged = "9"
	want(t, s.plan(3), "b")
}

// The pods of a ReplicaSet whose ServiceAccount is missing, for one, never reach the webhook.
func TestANamespaceWhoseOwnersDoNotTryKeepsNoRoomFromOthers(t *testing.T) {
	for name, test := range map[string]struct {
		charged []string
		within  float64
	}{
		"while nothing else happens":      {charged: []string{"5"}, within: 6},
		"while its objects come and go":   {charged: []string{"5", "5", "5", "6"}, within: longestPromise.Seconds() + 2},
		"while others' come and go often": {charged: []string{"5", "6"}, within: longestPromise.Seconds() + 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite("10", "10")
			s.most = 8
			for i := range 50 {
				hoarder := refusal(fmt.Sprint("h", i), "team")
				hoarder.Namespace = "evil"
				s.list.Refused(at(float64(i)/1000), hoarder)
			}
			s.refuse(1, "victim")
			const began = 2.0
			for step := 0; ; step++ {
				now := began + float64(step)/2
				s.charged = test.charged[step%len(test.charged)]
				s.plan(now)
				for _, record := range s.last.Wake {
					if record.Name == "victim" {
						return
					}
					s.room.Answered(record, 10)
				}
				if now-began > test.within {
					t.Fatalf("half of the quota is free, and others aren't woken for %g seconds", now-began)
				}
			}
		})
	}
}

// The other replica, which granted it, remembers so much that its news take three seconds.
func TestANamespaceWhoseOwnerGotItsObjectIsTrusted(t *testing.T) {
	s := newSite("10", "9")
	s.refuse(0, "a")
	want(t, s.plan(1), "a")
	s.room.Answered(s.record("a"), 1)
	s.charged = "10"
	s.plan(1.1)
	s.plan(3.2)
	s.list.Granted(at(4), owner("a").Key())
	s.plan(4.1)
	s.plan(9)
	if !s.room.trusts("shop") {
		t.Error("its namespace is distrusted, though it was granted what was promised")
	}
}

// It says that it lacks a thousand, and is granted one.
func TestAnOwnerThatTriesOnceKeepsTheRestFromOthersOnce(t *testing.T) {
	s := newSite("10", "0")
	evil := refusal("evil", "team")
	evil.Namespace = "mall"
	s.list.Refused(at(0), evil)
	now, blocked := 1.0, 0.0
	for round := range 10 {
		if got := s.plan(now); len(got) != 1 || got[0] != "evil" {
			t.Fatalf("at %g: %v", now, got)
		}
		s.room.Answered(Record{Refusal: evil}, 1000)
		s.list.Granted(at(now+0.1), evil.Key())
		victim := fmt.Sprint("v", round)
		s.refuse(now+0.2, victim)
		s.charged = "1"
		began := now
		now += 0.3
		for len(s.plan(now)) == 0 {
			now += 0.1
		}
		blocked += now - began
		s.list.Granted(at(now+0.01), owner(victim).Key())
		s.charged = "0"
		now += 6
		s.plan(now)
		s.list.Refused(at(now), evil)
		now += 0.1
	}
	if blocked > 12 {
		t.Errorf("others waited for %g s, with 9 of 10 free", blocked)
	}
}

// Of room for half of a thousand, half are woken at once, however often it is planned while they come.
func TestHalfIsWokenWhileTheirPodsCome(t *testing.T) {
	s := newSite("1000", "500")
	s.most = 8
	for i := range 1000 {
		s.refuse(float64(i)/1000, fmt.Sprintf("o%03d", i))
	}
	woken, came := 0, 0
	for step := range 400 {
		now := 10 + float64(step)/200
		for range min(woken-came, 3) {
			s.list.Granted(at(now), owner(fmt.Sprintf("o%03d", came)).Key())
			came++
		}
		s.charged = fmt.Sprint(500 + came)
		woken += len(s.plan(now))
	}
	if woken != 500 || came != 500 {
		t.Errorf("%d were woken, %d came", woken, came)
	}
}

func TestTheListsThatAreGivenStayAsTheyAre(t *testing.T) {
	free := Free{Hard: amounts("pods", "5"), Charged: amounts("pods", "1"), Limits: func(string) bool { return true }}
	room := NewRoom()
	record := Record{Refusal: refusal("a", "team"), Since: at(0), Last: at(0)}
	room.Plan(at(1), []Record{record}, free, 1)
	room.Answered(record, 4)
	for name, list := range map[string]corev1.ResourceList{"hard": free.Hard, "charged": free.Charged, "requested": record.Requested} {
		wanted := map[string]string{"hard": "5", "charged": "1", "requested": "1"}[name]
		if amount := list[corev1.ResourcePods]; amount.String() != wanted {
			t.Errorf("%s is %s", name, amount.String())
		}
	}
}
