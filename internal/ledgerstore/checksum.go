// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledgerstore

import (
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// castagnoli is the polynomial that processors compute themselves.
var castagnoli = crc32.MakeTable(crc32.Castagnoli) //nolint:gochecknoglobals // a constant, which Go has no literal for

// Intact reports whether the ledger is as a Store wrote it. It is no defence
// against an attacker, who can compute the checksum too, but detects edits by
// people and tools: a change of any entry, and an older ledger that is put back,
// because the checksum holds for one generation of one object alone.
func Intact(object *quotav1.QuotaLedger) bool {
	at := edition{uid: object.UID, generation: object.Generation}
	return object.Entries.Checksum == checksum(ownerOf(object), at, &object.Entries)
}

// edition is a generation of an object. The API server counts the changes of all
// but metadata from 1; the UID of the first edition is unknown before it is
// stored.
type edition struct {
	uid        types.UID
	generation int64
}

func (e edition) next() edition { return edition{uid: e.uid, generation: e.generation + 1} }

func ownerOf(object *quotav1.QuotaLedger) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}

// checksum returns the checksum of a ledger's fields with its owner and edition,
// in the order of the fields, one a line. Of 100 reservations it takes 4 µs,
// where to encode and marshal them takes 160.
func checksum(owner types.UID, at edition, entries *quotav1.QuotaLedgerEntries) string {
	sum, text := uint32(0), make([]byte, 0, 512) // room for nearly any reservation
	line := func(part string) {
		text = append(append(text[:0], part...), '\n')
		sum = crc32.Update(sum, castagnoli, text)
	}
	line(string(owner))
	if at.generation > 1 {
		line(string(at.uid))
	}
	line(strconv.FormatInt(at.generation, 10))
	line(strconv.FormatInt(int64(entries.Encoding), 10))
	line(strconv.FormatInt(entries.Generation, 10))
	line(entries.Digest)
	if entries.Sealed != nil {
		line("sealed " + strconv.FormatInt(entries.Sealed.Unix(), 10))
	}
	if entries.Fence != "" {
		line("fence " + entries.Fence)
	}
	line(encodeAmounts(asRead(entries.Used)))
	for _, resource := range slices.Sorted(maps.Keys(entries.Counted)) {
		line(resource + "=" + entries.Counted[resource])
	}
	for _, reservation := range entries.Reservations {
		line(reservation)
	}
	return fmt.Sprintf("%08x", sum)
}

// asRead returns amounts as they are once they were stored and read again, which
// may change how they are written: 1000 in the binary format is 1k then.
func asRead(amounts corev1.ResourceList) corev1.ResourceList {
	read := make(corev1.ResourceList, len(amounts))
	for name, quantity := range amounts {
		read[name] = resource.MustParse(quantity.String())
	}
	return read
}
