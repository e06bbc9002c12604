// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// separators is the size of a stored reservation without its fields: quotes, blanks, slashes, a comma, when it ends,
// and whether it is doubtful.
const separators = 33

// Size is how many bytes a reservation takes at most as it is stored; zero for
// none. A byte other than a letter, a digit or one of -._~ is stored as three
// bytes, or as itself.
func (r Reservation) Size() int {
	if r.UID == "" {
		return 0
	}
	return r.objectSize() + escaped(r.Attempt) + escaped(r.From) + amountsSize(r.Amounts)
}

func (o Object) objectSize() int {
	size := separators
	for _, field := range [...]string{
		string(o.UID), o.Resource.Group, o.Resource.Version, o.Resource.Resource, o.Namespace, o.Name,
	} {
		size += escaped(field)
	}
	return size
}

// escrowSize is the size of a stored escrow without its amounts, its holder, and its process, which it has twice: the
// resource that it is stored as, the mark of a recall, three numbers, and slashes.
const escrowSize = separators + 30 + 8 + 3*19 + 9

// Size is how many bytes an escrow takes at most as it is stored; zero for none.
func (e Escrow) Size() int {
	if e.Process == "" {
		return 0
	}
	return escrowSize + escaped(e.Holder) + 2*escaped(string(e.Process)) + amountsSize(e.Amounts)
}

// Size is how many bytes a suspect takes at most as it is stored; zero for none.
func (s Suspect) Size() int {
	if s.UID == "" {
		return 0
	}
	return s.objectSize() + escaped(s.Attempt)
}

// surgerSize is the size of a stored surger without its UID, names and kind: the resource that it is stored as, and a slash.
const surgerSize = separators + 30 + 3

// Size is how many bytes a surger takes at most as it is stored; zero for none.
func (s Surger) Size() int {
	if s.UID == "" {
		return 0
	}
	return surgerSize + escaped(string(s.UID)) + escaped(s.Kind) + escaped(s.Namespace) + escaped(s.Name)
}

func amountsSize(amounts corev1.ResourceList) int {
	size := 0
	for name, amount := range amounts {
		size += escaped(string(name)) + digits(amount) + len("=,")
	}
	return size
}

// digits is how long an amount is at most as text. For the usual ones, the text isn't made for that.
func digits(amount resource.Quantity) int {
	if amount.Format == resource.DecimalExponent {
		return len(amount.String())
	}
	if value, whole := amount.AsInt64(); whole {
		return decimals(value)
	}
	if milli := amount.MilliValue(); amount.Cmp(*resource.NewMilliQuantity(milli, amount.Format)) == 0 {
		return decimals(milli) + len("m")
	}
	return len(amount.String())
}

// decimals is how long a number is as text.
func decimals(value int64) int {
	length := 1
	if value < 0 {
		length++
	}
	for ; value <= -10 || value >= 10; value /= 10 {
		length++
	}
	return length
}

// escaped is how long a field is as it is stored. Letters, digits and the bytes -._~ are stored as one byte.
func escaped(field string) int {
	size := len(field)
	for i := range len(field) {
		if !unreserved(field[i]) {
			size += len("%00") - 1
		}
	}
	return size
}

func unreserved(c byte) bool {
	switch c {
	case '-', '.', '_', '~':
		return true
	default:
		return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
}
