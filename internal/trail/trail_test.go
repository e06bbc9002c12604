// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package trail

import (
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const whole = "intact"

// ledger is one version of an object: intact, unless how says otherwise.
func ledger(uid types.UID, version, generation int64, how ...func(*quotav1.QuotaLedger)) *quotav1.QuotaLedger {
	object := &quotav1.QuotaLedger{
		ObjectMeta: metav1.ObjectMeta{
			Name: "team", UID: uid, Generation: generation, ResourceVersion: strconv.FormatInt(version, 10),
			OwnerReferences: []metav1.OwnerReference{{UID: "q", Controller: ptr.To(true)}},
		},
		Entries: quotav1.QuotaLedgerEntries{Checksum: whole},
	}
	for _, change := range how {
		change(object)
	}
	return object
}

func edited(object *quotav1.QuotaLedger)  { object.Entries.Checksum = "" }
func sealed(object *quotav1.QuotaLedger)  { object.Entries.Sealed = ptr.To(metav1.Now()) }
func unowned(object *quotav1.QuotaLedger) { object.OwnerReferences = nil }

func newTrail(seen ...*quotav1.QuotaLedger) *Trail {
	trail := New(func(object *quotav1.QuotaLedger) bool { return object.Entries.Checksum == whole })
	for _, object := range seen {
		trail.Saw(object)
	}
	return trail
}

func TestBeforeEdit(t *testing.T) {
	for name, test := range map[string]struct {
		seen []*quotav1.QuotaLedger
		edit *quotav1.QuotaLedger
		// want is the version returned; empty for none.
		want   string
		unseen bool
	}{
		"what was written last": {
			seen: []*quotav1.QuotaLedger{ledger("u", 10, 1), ledger("u", 20, 2), ledger("u", 30, 3, edited)},
			edit: ledger("u", 30, 3, edited), want: "20",
		},
		"before several edits": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 2), ledger("u", 30, 3, edited), ledger("u", 40, 4, edited)},
			edit: ledger("u", 40, 4, edited), want: "20",
		},
		"with a label, which is no edit": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 2), ledger("u", 25, 2), ledger("u", 30, 3, edited)},
			edit: ledger("u", 30, 3, edited), want: "25",
		},
		"before its owner alone was taken away": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 2), ledger("u", 30, 2, edited, unowned)},
			edit: ledger("u", 30, 2, edited, unowned), want: "20",
		},
		"the edit is still to be seen": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 2)},
			edit: ledger("u", 30, 3, edited), unseen: true,
		},
		"a version of the operator's was missed": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 2), ledger("u", 40, 4, edited)},
			edit: ledger("u", 40, 4, edited),
		},
		"a version of the operator's may have been missed, for the owner is another": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 2), ledger("u", 40, 3, edited, unowned)},
			edit: ledger("u", 40, 3, edited, unowned),
		},
		"a version was missed before the last of several edits": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 2), ledger("u", 40, 4, edited), ledger("u", 50, 5, edited)},
			edit: ledger("u", 50, 5, edited),
		},
		"nothing else was ever seen": {
			seen: []*quotav1.QuotaLedger{ledger("u", 30, 3, edited)},
			edit: ledger("u", 30, 3, edited),
		},
		"another ledger was edited": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 2), ledger("v", 30, 1, edited)},
			edit: ledger("v", 30, 1, edited),
		},
		"a sealed one was edited": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 1, sealed), ledger("u", 30, 2, edited)},
			edit: ledger("u", 30, 2, edited),
		},
	} {
		t.Run(name, func(t *testing.T) {
			last, seen := newTrail(test.seen...).BeforeEdit(test.edit)
			if got := versionOf(last); got != test.want || seen == test.unseen {
				t.Errorf("got version %q, seen %t, want version %q, seen %t", got, seen, test.want, !test.unseen)
			}
		})
	}
}

func TestBeforeDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		seen []*quotav1.QuotaLedger
		// deleted is what the deletion's event carries.
		deleted *quotav1.QuotaLedger
		missed  bool
		after   []*quotav1.QuotaLedger
		want    string
	}{
		"the final state": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 2)}, deleted: ledger("u", 30, 2), want: "30",
		},
		"the final state, of which no version was seen before": {
			deleted: ledger("u", 30, 7), want: "30",
		},
		"the final state, though others were missed": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 2)}, deleted: ledger("u", 90, 9), want: "90",
		},
		"what was written before an edit": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 2), ledger("u", 30, 3, edited)}, deleted: ledger("u", 40, 3, edited), want: "20",
		},
		"what was written before, where sealed ones follow": {
			deleted: ledger("u", 30, 2), after: []*quotav1.QuotaLedger{ledger("v", 40, 1, sealed), ledger("v", 50, 2, sealed)}, want: "30",
		},
		"what was written before, where a forged one follows": {
			deleted: ledger("u", 30, 2), after: []*quotav1.QuotaLedger{ledger("v", 40, 1, edited)}, want: "30",
		},
		"the deletion is still to be seen": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 2)},
		},
		"the deletion was missed, and maybe versions before": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 2)}, deleted: ledger("u", 20, 2), missed: true,
		},
		"versions before an edit were missed": {
			seen: []*quotav1.QuotaLedger{ledger("u", 20, 2)}, deleted: ledger("u", 90, 9, edited),
		},
		"it was sealed": {
			deleted: ledger("u", 30, 2, sealed),
		},
		"another one was opened after it": {
			deleted: ledger("u", 30, 2), after: []*quotav1.QuotaLedger{ledger("v", 50, 2)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			trail := newTrail(test.seen...)
			if test.deleted != nil {
				trail.Deleted(test.deleted, !test.missed)
			}
			for _, object := range test.after {
				trail.Saw(object)
			}
			if got := versionOf(trail.BeforeDeletion("team", "u")); got != test.want {
				t.Errorf("got version %q, want %q", got, test.want)
			}
		})
	}
}

func versionOf(object *quotav1.QuotaLedger) string {
	if object == nil {
		return ""
	}
	return object.ResourceVersion
}

func TestADeletedLedgerIsForgotten(t *testing.T) {
	trail := newTrail()
	trail.Deleted(ledger("u", 30, 2), true)
	trail.Forget("team")
	if got := trail.BeforeDeletion("team", "u"); got != nil {
		t.Errorf("got version %q, want none", got.ResourceVersion)
	}
}

// A ledger of another quota of the name has come since it was found missing.
func TestARecreatedLedgerIsNotForgotten(t *testing.T) {
	trail := newTrail()
	trail.Deleted(ledger("u", 30, 2), true)
	edit := ledger("v", 50, 3, edited)
	trail.Saw(ledger("v", 40, 2))
	trail.Saw(edit)
	trail.Forget("team")
	if last, seen := trail.BeforeEdit(edit); !seen || versionOf(last) != "40" {
		t.Errorf("got version %q, seen %t, want version 40, seen", versionOf(last), seen)
	}
}
