// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// amount is how much of one resource is used.
type amount struct {
	name     corev1.ResourceName
	quantity resource.Quantity
}

// sharedList is a resource list in little space. It is shared by all
// footprints that use the same, and never changed.
type sharedList struct {
	amounts []amount // sorted by name, no zeros
}

// masked returns a copy of the list that has only the names in hard.
func (l *sharedList) masked(hard corev1.ResourceList) corev1.ResourceList {
	masked := corev1.ResourceList{}
	for _, amount := range l.amounts {
		if _, limited := hard[amount.name]; limited {
			masked[amount.name] = amount.quantity.DeepCopy()
		}
	}
	return masked
}

// sharedLists holds each list once, as long as it is used: the pods of a
// ReplicaSet all use the same.
type sharedLists struct {
	mu sync.Mutex // guards byKey
	// Invariant: while a list is in use, its key leads to it, so that equal
	// lists in use are the same pointer.
	byKey map[string]weak.Pointer[sharedList] // key of its amounts -> list
}

func newSharedLists() *sharedLists {
	return &sharedLists{byKey: map[string]weak.Pointer[sharedList]{}}
}

// share returns the list that holds these amounts.
func (s *sharedLists) share(usage corev1.ResourceList) *sharedList {
	list := newSharedList(usage)
	key := list.key()
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.byKey[key].Value(); known != nil {
		return known
	}
	s.byKey[key] = weak.Make(list)
	runtime.AddCleanup(list, s.forget, key)
	return list
}

// forget is called some time after a list was last used. By then its key may
// lead to a newer list with the same amounts, which stays.
func (s *sharedLists) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[key].Value() == nil {
		delete(s.byKey, key)
	}
}

func newSharedList(usage corev1.ResourceList) *sharedList {
	amounts := make([]amount, 0, len(usage))
	for _, name := range slices.Sorted(maps.Keys(usage)) {
		if quantity := usage[name]; !quantity.IsZero() {
			amounts = append(amounts, amount{name: name, quantity: quantity.DeepCopy()})
		}
	}
	return &sharedList{amounts: amounts}
}

// key is the same for two lists exactly when their amounts are the same and print
// the same. Lengths keep odd names from running into the next field.
func (l *sharedList) key() string {
	var key []byte
	for _, amount := range l.amounts {
		key = strconv.AppendInt(key, int64(len(amount.name)), 10)
		key = append(key, ':')
		key = append(key, amount.name...)
		key = append(key, '=')
		key = append(key, amount.quantity.String()...)
		key = append(key, ' ')
	}
	return string(key)
}
