// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func pack(text string) []byte {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write([]byte(text))
	_ = writer.Close()
	return packed.Bytes()
}

func TestWhatWasPublishedIsReadAsItWas(t *testing.T) {
	records := []Record{
		{Refusal: refusal("web", "team"), Since: at(1.123456789), Last: at(2), Refusals: 2, Ended: at(0.5)},
		{Refusal: Refusal{Owner: owner("api"), Quota: "team"}, Ended: at(1)},
		{Refusal: Refusal{Owner: owner("rolls"), Quota: "team", Replaces: true}, Last: at(1)},
	}
	encoded, err := Encode(records)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Decode(encoded)
	if diff := cmp.Diff(records, read); err != nil || diff != "" {
		t.Errorf("read (-want,+got), %v:\n%s", err, diff)
	}
}

func TestWhatNoReplicaWouldPublishIsNotTaken(t *testing.T) {
	const head = `{"owners":[{"k":"ReplicaSet","n":"shop","m":"web","u":"u","q":"team","l":1`
	for name, test := range map[string]struct{ encoded, want string }{
		"nothing":                       {want: "EOF"},
		"what isn't packed":             {encoded: head + "}]}", want: "invalid header"},
		"what is too large":             {encoded: string(pack(strings.Repeat(" ", maxDecoded+1))), want: "too large"},
		"what isn't JSON":               {encoded: string(pack("owners")), want: "invalid character"},
		"a path as a name":              {encoded: string(pack(strings.ReplaceAll(head, "web", "../web") + "}]}")), want: "can wait"},
		"another kind":                  {encoded: string(pack(strings.ReplaceAll(head, "ReplicaSet", "Secret") + "}]}")), want: "can wait"},
		"no quota":                      {encoded: string(pack(strings.ReplaceAll(head, "team", "") + "}]}")), want: "can wait"},
		"what isn't a quantity":         {encoded: string(pack(head + `,"r":{"pods":"many"}}]}`)), want: "pods: it isn't a quantity"},
		"what takes too long to read":   {encoded: string(pack(head + `,"s":{"pods":"1e-999999999"}}]}`)), want: "pods: it isn't a quantity"},
		"what takes too many digits":    {encoded: string(pack(head + `,"s":{"pods":"` + strings.Repeat("1", 65) + `"}}]}`)), want: "isn't a quantity"},
		"though what is right is taken": {encoded: string(pack(head + `,"s":{"cpu":"1e3"}}]}`))},
	} {
		t.Run(name, func(t *testing.T) {
			records, err := Decode([]byte(test.encoded))
			if test.want == "" && (err != nil || len(records) != 1) || test.want != "" && len(records) != 0 || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, %v", records, err)
			}
		})
	}
}

func TestOneOwnerThatCanNotBeReadHidesNoOther(t *testing.T) {
	const text = `{"owners":[{"k":"ReplicaSet","n":"shop","m":"web","u":"u","q":"team","l":1},` +
		`{"k":"ReplicaSet","n":"shop","m":"api","u":"v","q":"team","l":1,"r":{"pods":"many"}},{"k":"Job","n":"shop","m":"run","u":"w","q":"team","l":1}]}`
	records, err := Decode(pack(text))
	if len(records) != 2 || err == nil || !strings.Contains(err.Error(), `"shop"/"api": pods: it isn't a quantity`) {
		t.Errorf("got %v, %v", records, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"owners":[{"k":"ReplicaSet","n":"shop","m":"web","u":"u","q":"team","r":{"pods":"1"},"s":{"cpu":"1400m"},"f":1,"l":2,"c":3,"e":4}]}`)
	f.Add(`{"owners":[{"k":"Job","n":"shop","m":"web","u":"u","q":"team","l":-9223372036854775808}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		records, err := Decode(pack(text))
		if err != nil {
			return
		}
		encoded, err := Encode(records)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(encoded)
		if err != nil || len(again) != len(records) {
			t.Fatalf("%d of %d are read again: %v", len(again), len(records), err)
		}
		list := NewList()
		list.Follow("other", records)
		list.Sweep(at(0))
		NewRoom().Plan(at(0), list.All(), Free{Limits: func(string) bool { return true }}, 10)
	})
}
