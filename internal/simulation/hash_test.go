// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"hash/maphash"
	"reflect"
)

// hashing tells values apart by all that is in them, exported or not. Functions are told
// apart by their code alone.
type hashing struct {
	maphash.Hash
	seed maphash.Seed
}

func newHashing(seed maphash.Seed) *hashing {
	h := &hashing{seed: seed}
	h.SetSeed(seed)
	return h
}

func (h *hashing) number(n uint64) { maphash.WriteComparable(&h.Hash, n) }

// value adds a value. A field that is derived from others, or is only a cache, is left out.
func (h *hashing) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Invalid:
		h.number(0)
	case reflect.Bool:
		h.number(flag(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		h.number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		h.number(v.Uint())
	case reflect.String:
		_, _ = h.WriteString(v.String())
		_ = h.WriteByte(0)
	case reflect.Pointer, reflect.Interface:
		h.number(flag(v.IsNil()))
		if !v.IsNil() {
			if v.Kind() == reflect.Interface {
				_, _ = h.WriteString(v.Elem().Type().String())
			}
			h.value(v.Elem())
		}
	case reflect.Func:
		h.number(uint64(v.Pointer()))
	case reflect.Slice, reflect.Array:
		h.number(uint64(v.Len()))
		for i := range v.Len() {
			h.value(v.Index(i))
		}
	case reflect.Map:
		h.entries(v)
	case reflect.Struct:
		h.fields(v)
	default:
		panic("cannot tell apart values of kind " + v.Kind().String())
	}
}

func (h *hashing) entries(v reflect.Value) {
	sum := uint64(0)
	for entries := v.MapRange(); entries.Next(); {
		entry := newHashing(h.seed)
		entry.value(entries.Key())
		entry.value(entries.Value())
		sum += entry.Sum64()
	}
	h.number(sum)
}

func (h *hashing) fields(v reflect.Value) {
	for i := range v.NumField() {
		switch v.Type().String() + "." + v.Type().Field(i).Name {
		case "time.Time.loc", "resource.Quantity.s", "ledger.State.index", "ledger.Observation.Seen",
			"namespaces.quotas.define", "namespaces.quotas.edition", "namespaces.quotas.growth", "namespaces.quota.definition",
			"namespaces.namespace.covered", "namespaces.namespace.labels", "namespaces.Search.memory",
			"machine.Machine.effects", "machine.Machine.now", "machine.Machine.options":
		default:
			h.value(v.Field(i))
		}
	}
}
