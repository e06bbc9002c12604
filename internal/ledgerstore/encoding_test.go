// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledgerstore

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

func list(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func reservationOf(namespace, name string, amounts ...string) ledger.Reservation {
	return ledger.Reservation{
		Object: ledger.Object{
			Resource:  schema.GroupVersionResource{Version: "v1", Resource: "pods"},
			Namespace: namespace, Name: name, UID: "7e1c6a52-3d1b-4f0e-9a55-0a8f6b0c9b11",
		},
		Amounts: list(amounts...), Expiry: time.Unix(1900000000, 0),
	}
}

func TestEncode(t *testing.T) {
	update := reservationOf("team-a", "web-0", "requests.cpu", "250m", "limits.memory", "1Gi")
	update.From, update.Attempt = "4711", "0d9e7c1c-8a55-4e4b-9f51-2f0b6d7a1c33"
	role := reservationOf("team-a", "viewer", "count/roles.rbac.authorization.k8s.io", "1")
	role.Resource = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	for name, test := range map[string]struct {
		reservation ledger.Reservation
		want        string
	}{
		"a creation has no attempt and starts from nothing": {
			reservation: reservationOf("team-a", "web-0", "pods", "1"),
			want:        "7e1c6a52-3d1b-4f0e-9a55-0a8f6b0c9b11 - - /v1/pods team-a web-0 1900000000 pods=1",
		},
		"an update has both, and amounts are sorted": {
			reservation: update,
			want: "7e1c6a52-3d1b-4f0e-9a55-0a8f6b0c9b11 0d9e7c1c-8a55-4e4b-9f51-2f0b6d7a1c33 4711 /v1/pods team-a web-0 1900000000 " +
				"limits.memory=1Gi,requests.cpu=250m",
		},
		"a resource has its group": {
			reservation: role,
			want: "7e1c6a52-3d1b-4f0e-9a55-0a8f6b0c9b11 - - rbac.authorization.k8s.io/v1/roles team-a viewer 1900000000 " +
				"count/roles.rbac.authorization.k8s.io=1",
		},
		"nothing is charged": {
			reservation: reservationOf("team-a", "web-0"),
			want:        "7e1c6a52-3d1b-4f0e-9a55-0a8f6b0c9b11 - - /v1/pods team-a web-0 1900000000 -",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, encodeRecord(test.reservation)); diff != "" {
				t.Errorf("encoded (-want,+got):\n%s", diff)
			}
			requireRoundTrip(t, test.reservation)
		})
	}
}

// fataler has the methods that a test and a property have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func requireRoundTrip(t fataler, want ledger.Reservation) {
	t.Helper()
	text := encodeRecord(want)
	got, err := decodeRecord(text)
	if err != nil {
		t.Fatalf("%#v is stored as %q, which can't be read: %v", want.Object, text, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("stored as %q (-want,+got):\n%s", text, diff)
	}
}

// Most names in Kubernetes are those of DNS. Roles and role bindings, which
// live in namespaces and can be counted, have any name that is one segment of
// a path: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
func TestNamesThatAreNotOfDNS(t *testing.T) {
	for name, object := range map[string]string{
		"a role with a space":          "my role",
		"a role that is a dash":        "-",
		"a role of the system":         "system:node-reader",
		"a role with a comma":          "read,write",
		"a role with an equals sign":   "a=b",
		"a role with a line break":     "a\nb",
		"a role that ends in a space":  "viewer ",
		"a role in another alphabet":   "чтение",
		"a role with a plus sign":      "a+b",
		"a role that looks escaped":    `a\x20b`,
		"a role with quotation marks":  `"viewer"`,
		"a role that is an underscore": "_",
	} {
		t.Run(name, func(t *testing.T) { requireRoundTrip(t, reservationOf("team-a", object, "pods", "1")) })
	}
}

func TestAnyReservationIsReadAsItWasStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { requireRoundTrip(t, anyReservation().Draw(t, "reservation")) })
}

// anyPathSegment is any name that Kubernetes takes for a role.
func anyPathSegment() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?`),
		rapid.StringMatching(`[-a-z =,+_:\\.\n"]{1,6}`).Filter(func(name string) bool { return name != "." && name != ".." }),
	)
}

func anyUID() *rapid.Generator[string] {
	return rapid.StringMatching(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
}

func anyReservation() *rapid.Generator[ledger.Reservation] {
	dns := rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?`)
	number := rapid.StringMatching(`[1-9][0-9]{0,18}`)
	return rapid.Custom(func(t *rapid.T) ledger.Reservation {
		return ledger.Reservation{
			Object: ledger.Object{
				Resource: schema.GroupVersionResource{
					Group: rapid.OneOf(rapid.Just(""), dns).Draw(t, "group"), Version: "v1", Resource: dns.Draw(t, "resource"),
				},
				Namespace: dns.Draw(t, "namespace"), Name: anyPathSegment().Draw(t, "name"),
				UID: types.UID(anyUID().Draw(t, "uid")),
			},
			Attempt:  rapid.OneOf(rapid.Just(""), dns).Draw(t, "attempt"),
			From:     rapid.OneOf(rapid.Just(""), number).Draw(t, "from"),
			Amounts:  anyAmounts().Draw(t, "amounts"),
			Expiry:   time.Unix(rapid.Int64Range(0, 1<<34).Draw(t, "expiry"), 0),
			Doubtful: rapid.Bool().Draw(t, "doubtful"),
		}
	})
}

func anyAmounts() *rapid.Generator[corev1.ResourceList] {
	name := rapid.SampledFrom([]corev1.ResourceName{
		"pods", "requests.cpu", "limits.memory", "count/deployments.apps", "requests.nvidia.com/gpu", "hugepages-2Mi",
		"gold.storageclass.storage.k8s.io/requests.storage",
	})
	text := rapid.StringMatching(`[1-9][0-9]{0,14}(\.[0-9]{1,3})?(n|u|m|k|M|G|T|Ki|Mi|Gi|Ti|e3|)`)
	quantity := rapid.Map(text, resource.MustParse)
	return rapid.Map(rapid.MapOfN(name, quantity, 0, 4), func(m map[corev1.ResourceName]resource.Quantity) corev1.ResourceList {
		return m
	})
}

func TestNonsenseIsAnError(t *testing.T) {
	for name, text := range map[string]string{
		"nothing at all":                 "",
		"one field too few":              "uid - - /v1/pods ns name 1900000000",
		"one field too many":             "uid - - /v1/pods ns name 1900000000 pods=1 more",
		"a resource without its version": "uid - - pods ns name 1900000000 pods=1",
		"a resource of four parts":       "uid - - a/b/c/d ns name 1900000000 pods=1",
		"an expiry in words":             "uid - - /v1/pods ns name tomorrow pods=1",
		"an expiry beyond all numbers":   "uid - - /v1/pods ns name 99999999999999999999 pods=1",
		"an amount without a quantity":   "uid - - /v1/pods ns name 1900000000 pods",
		"an amount that is no quantity":  "uid - - /v1/pods ns name 1900000000 pods=many",
		"an empty amount":                "uid - - /v1/pods ns name 1900000000 pods=1,",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := decodeRecord(text); err == nil {
				t.Errorf("decoding %q: want an error, got %+v", text, got)
			}
		})
	}
}

// Every text from a caller can be stored, and read again as it was sent.
func FuzzEncode(f *testing.F) {
	f.Add("7e1c6a52-3d1b-4f0e-9a55-0a8f6b0c9b11", "attempt", "", "", "v1", "pods", "team-a", "web-0", "pods")
	f.Add("u id", "-", "4 7", "a/b", "v 1", "-", "n s", "\n", "a=b,c d")
	f.Add("%", "%2D", "%zz", "/", "//", "-", " ", "\xff\x00", "%=,")
	f.Fuzz(func(t *testing.T, uid, attempt, from, group, version, kind, namespace, name, amount string) {
		sent := ledger.Reservation{
			Object: ledger.Object{
				Resource:  schema.GroupVersionResource{Group: group, Version: version, Resource: kind},
				Namespace: namespace, Name: name, UID: types.UID(uid),
			},
			Attempt: attempt, From: from, Expiry: time.Unix(1_900_000_000, 0),
			Amounts: corev1.ResourceList{corev1.ResourceName(amount): resource.MustParse("1")},
		}
		read, err := decodeRecord(encodeRecord(sent))
		if err != nil {
			t.Fatalf("%+v was stored as %q, which can't be read: %v", sent, encodeRecord(sent), err)
		}
		if diff := cmp.Diff(sent, read); diff != "" {
			t.Fatalf("stored as %q (-sent,+read):\n%s", encodeRecord(sent), diff)
		}
	})
}

// Every text that can be read can be stored and read again, and is the same.
func FuzzDecode(f *testing.F) {
	f.Add("7e1c6a52-3d1b-4f0e-9a55-0a8f6b0c9b11 - - /v1/pods team-a web-0 1900000000 pods=1")
	f.Add("uid attempt 4711 apps/v1/deployments ns name -1 count/deployments.apps=1,requests.cpu=250m")
	f.Add("uid - - // - - 0 -")
	f.Add("")
	f.Add("        ")
	f.Fuzz(func(t *testing.T, text string) {
		reservation, err := decodeRecord(text)
		if err != nil {
			return
		}
		again, err := decodeRecord(encodeRecord(reservation))
		if err != nil {
			t.Fatalf("%q was read, and stored as %q, which can't be: %v", text, encodeRecord(reservation), err)
		}
		if diff := cmp.Diff(reservation, again); diff != "" {
			t.Fatalf("%q was read, and stored as %q (-read,+read again):\n%s", text, encodeRecord(reservation), diff)
		}
	})
}
