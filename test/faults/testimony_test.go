// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/faults/load"
	"github.com/sharedquota/shared-quota-operator/test/judge"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// learnsWithin is how long a leader that hears may take until its count is in the ledger,
// on a machine that is busy.
const learnsWithin = 3 * time.Second

// edit is a change of a quota or of a namespace that was made on purpose.
type edit struct {
	name string
	// It was stored after the one revision, and at the other at the latest: a call whose
	// answer was lost may have been stored before the one that was answered.
	after, upTo int64
	inForce     time.Time
}

// witness knows when requests were sent, edits answered, and the leader deaf, and what
// ledgers have held.
type witness struct {
	// mu guards what follows.
	mu      sync.Mutex
	tallies []*load.Tally
	edits   []*edit
	// deaf are the times in which no leader heard what happened; the end of one that
	// lasts is zero.
	deaf []*[2]time.Time
	// reserved are the reservations that ledgers have held, as they are stored.
	reserved map[string]bool
	// asked says by which revisions something was first reserved for an object: the API
	// server has asked about it.
	asked map[types.UID][]int64
	// ledgers has what each quota's ledger has held.
	ledgers map[string]*ledgerHistory
	// lenient are the times in which a quota lets requests pass that nobody can decide; the end of one that lasts is zero.
	lenient map[string][]*[2]time.Time
}

func newWitness() *witness {
	return &witness{
		reserved: map[string]bool{}, asked: map[types.UID][]int64{},
		ledgers: map[string]*ledgerHistory{}, lenient: map[string][]*[2]time.Time{},
	}
}

var uids = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// readLedger takes a ledger into account, as it is stored by a revision.
func (w *witness) readLedger(revision int64, stored []byte) {
	ledger := quotav1.QuotaLedger{}
	if err := json.Unmarshal(stored, &ledger); err != nil {
		panic(err) // The API server stores no other.
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ledgers[ledger.Name] == nil {
		w.ledgers[ledger.Name] = newLedgerHistory()
	}
	w.ledgers[ledger.Name].read(revision, ledger.Entries.Reservations)
	for _, reservation := range ledger.Entries.Reservations {
		if w.reserved[reservation] {
			continue
		}
		w.reserved[reservation] = true
		for _, uid := range uids.FindAllString(reservation, -1) {
			w.asked[types.UID(uid)] = append(w.asked[types.UID(uid)], revision)
		}
	}
}

// wasAsked tells whether the API server asked about a write, which followed another of the
// same object. Of one that isn't known, it did.
func (w *witness) wasAsked(write load.Write, after int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return write.UID == "" || slices.ContainsFunc(w.asked[write.UID], func(at int64) bool {
		return after < at && at < write.Revision
	})
}

// hear takes the clients' writes into account.
func (w *witness) hear(tally *load.Tally) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tallies = append(w.tallies, tally)
}

// edited notes an edit by what the API server answered, and the resourceVersion before;
// empty if there was nothing before. It is in force from now on; the caller changes that
// if it is later.
func (w *witness) edited(before string, object client.Object) (inForce func()) {
	after, _ := strconv.ParseInt(before, 10, 64) // The API server's are numbers.
	revision, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	w.mu.Lock()
	defer w.mu.Unlock()
	made := &edit{name: object.GetName(), after: after, upTo: revision, inForce: time.Now()}
	for _, earlier := range w.edits {
		if earlier.name == made.name {
			made.after = max(made.after, earlier.upTo)
		}
	}
	w.edits = append(w.edits, made)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		made.inForce = time.Now()
	}
}

// deafen notes that the leader hears nothing, until the returned function is called.
func (w *witness) deafen() (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	deaf := &[2]time.Time{time.Now()}
	w.deaf = append(w.deaf, deaf)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		deaf[1] = time.Now()
	}
}

// testimony is what is known by now.
func (w *witness) testimony() judge.Testimony {
	w.mu.Lock()
	defer w.mu.Unlock()
	stored := map[int64]load.Write{}
	revisions := map[types.UID][]int64{}
	var lost []load.Write
	var writes []load.Write
	for _, tally := range w.tallies {
		writes = append(writes, tally.Writes()...)
	}
	for _, write := range writes {
		if _, known := stored[write.Revision]; write.Revision == 0 {
			lost = append(lost, write)
		} else if !known { // A later write of the same revision changed nothing.
			stored[write.Revision] = write
			revisions[write.UID] = append(revisions[write.UID], write.Revision)
		}
	}
	behind := func(change judge.Change) load.Write {
		if write, known := stored[change.Revision]; known {
			return write
		}
		return lastOf(lost, change)
	}
	return judge.Testimony{
		Sent: func(change judge.Change) (time.Time, time.Time) {
			write := behind(change)
			return write.Sent, write.Answered
		},
		Asked: func(change judge.Change) bool {
			write := behind(change)
			return w.wasAsked(write, lastBefore(revisions, write))
		},
		Unchecked: func(quota string, change judge.Change) bool {
			write := behind(change)
			return w.wasUnchecked(quota, write, lastBefore(revisions, write))
		},
		InForce: w.inForce,
		Learned: w.learned,
	}
}

// lastBefore returns by which revision an object was written last before a write; 0 for none.
func lastBefore(revisions map[types.UID][]int64, write load.Write) int64 {
	last := int64(0)
	for _, revision := range revisions[write.UID] {
		if revision < write.Revision {
			last = max(last, revision)
		}
	}
	return last
}

// lastOf returns the last call that may have made a change and of which nobody knows
// how it ended.
func lastOf(lost []load.Write, change judge.Change) load.Write {
	var last load.Write
	name := path.Base(change.Key)
	for _, write := range lost {
		generated := strings.HasSuffix(write.Name, "-") && strings.HasPrefix(name, write.Name)
		if write.Namespace == change.Namespace && (write.Name == name || generated) && write.Sent.After(last.Sent) {
			last = write
		}
	}
	return last
}

func (w *witness) inForce(change judge.Change) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := change.Namespace
	if change.Cause == judge.Terms {
		name = path.Base(change.Key)
	}
	for _, made := range w.edits {
		if made.name == name && made.after < change.Revision && change.Revision <= made.upTo {
			return made.inForce
		}
	}
	return time.Time{}
}

// learned is when the leader must know what was committed at a time: a while after it
// was last deaf, if it was deaf then.
func (w *witness) learned(committed time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for { // Each turn is past one more of the times in which it was deaf.
		until := committed.Add(learnsWithin)
		for _, deaf := range w.deaf {
			end := deaf[1]
			if end.IsZero() {
				end = now
			}
			if deaf[0].Before(until) && end.After(committed) {
				committed = end
			}
		}
		if committed.Add(learnsWithin).Equal(until) {
			return until
		}
	}
}

// canary shows whether what happens reaches the leader, and from there the ledger and
// people: a namespace with a pod and a config map joins a quota of its own.
type canary struct {
	// label is the value by which its quota selects its namespaces.
	label      string
	namespaces int
}

const canaryName = "canary"

// start creates the quota.
func (c *canary) start(ctx context.Context) {
	GinkgoHelper()
	quota := builders.Quota(canaryName).Label(canaryName, c.label).Hard("pods", "1k").Hard("count/configmaps", "1k")
	Expect(api.Create(ctx, quota.Obj())).To(Succeed())
	suite.WaitUntilEnforced(ctx, api, canaryName)
}

// stop deletes the quota, and leaves its namespaces to nobody.
func (c *canary) stop(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		return client.IgnoreNotFound(api.Delete(ctx, builders.Quota(canaryName).Obj()))
	}).Should(Succeed())
}

// sing returns once the leader has heard of one more namespace.
func (c *canary) sing(ctx context.Context) {
	GinkgoHelper()
	c.namespaces++
	name := fmt.Sprintf("%s-%s-%d", c.label, canaryName, c.namespaces)
	for _, object := range []client.Object{
		builders.Namespace(name).Obj(), builders.ConfigMap(name, "c"), builders.Pod(name, "p").Obj(),
	} {
		Eventually(ctx, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(api.Create(ctx, object))
		}).Should(Succeed())
	}
	join := client.RawPatch(mergePatch, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, canaryName, c.label))
	Eventually(ctx, func(ctx context.Context) error {
		return api.Patch(ctx, builders.Namespace(name).Obj(), join)
	}).Should(Succeed())
	want := resource.NewQuantity(int64(c.namespaces), resource.DecimalSI)
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		quota := &quotav1.ClusterResourceQuota{}
		g.Expect(api.Get(ctx, client.ObjectKey{Name: canaryName}, quota)).To(Succeed())
		for _, limited := range []string{"pods", "count/configmaps"} {
			used := quota.Status.Total.Used[resourceName(limited)]
			g.Expect(used.Cmp(*want)).To(BeZero(), "%s: %s of %s", limited, used.String(), want)
		}
	}).WithTimeout(2*suite.Deadline).Should(Succeed(), "the leader hears of nothing")
}
