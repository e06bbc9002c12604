// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Write is a call that was to store an object.
type Write struct {
	// Namespace and Name of the object. A name that is not known ends in "-": the API
	// server made up the rest.
	Namespace, Name string
	// UID of the object; empty if nobody was told.
	UID types.UID
	// Revision is the resourceVersion that it got; 0 if nobody was told, and the call may
	// have stored it or not.
	Revision int64
	// Unchecked are the quotas against which nobody could check it, so that it was admitted; an empty name is for all.
	Unchecked []string
	// Sent is when the call began, and Answered when it ended.
	Sent, Answered time.Time
}

func writeOf(object client.Object, a attempt) Write {
	write := Write{
		Namespace: object.GetNamespace(), Name: cmp.Or(object.GetName(), object.GetGenerateName()), Sent: a.from, Answered: a.to,
		Unchecked: uncheckedOf(a.warnings),
	}
	if a.outcome == Succeeded {
		write.UID = object.GetUID()
		write.Revision, _ = strconv.ParseInt(object.GetResourceVersion(), 10, 64) // It is a number, or nothing was stored.
	}
	return write
}

// addWrite keeps what was stored, and what may have been.
func (t *Tally) addWrite(write Write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes = append(t.writes, write)
}

// Writes returns the calls that stored an object, and those that may have.
func (t *Tally) Writes() []Write {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.writes)
}
