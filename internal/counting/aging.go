/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package counting

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Advance takes account of the time: pods past their deletion grace stop
// counting without any event, and deleted objects are forgotten once they have
// been gone for longer than remember.
func (c *Count) Advance(now time.Time, remember time.Duration) {
	c.mu.Lock()
	defer c.unlock()
	for _, source := range c.sources {
		source.lockedReevaluate(now)
		for uid, since := range source.gone {
			if now.Sub(since) > remember {
				delete(source.gone, uid)
			}
		}
	}
}

// lockedReevaluate brings aging records up to the time.
func (s *Source) lockedReevaluate(now time.Time) {
	for key := range s.aging {
		was := s.objects[key.Namespace][key.Name]
		is := was
		is.asOf = now
		if !aged(was, is) {
			continue
		}
		s.lockedPut(key, is, now)
		delete(s.aging, key)
	}
}

// lockedRefresh brings one record up to the time before it is added to a new
// slice, in all slices that it is part of.
func (s *Source) lockedRefresh(namespace, name string, was record, now time.Time) record {
	is := was
	is.asOf = now
	if aged(was, is) {
		s.lockedPut(types.NamespacedName{Namespace: namespace, Name: name}, is, now)
		return is
	}
	return was
}

// aged tells whether the record's usage changes between the two times.
func aged(was, is record) bool {
	at, ages := was.footprint.ChangesAt()
	return ages && was.asOf.Before(at) && !is.asOf.Before(at)
}
