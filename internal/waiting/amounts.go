// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	corev1 "k8s.io/api/core/v1"
)

// fits reports whether an amount is left of everything that is limited.
func fits(amount, left, hard corev1.ResourceList) bool {
	for name, wanted := range amount {
		if _, limited := hard[name]; !limited || wanted.Sign() <= 0 {
			continue
		}
		if has := left[name]; wanted.Cmp(has) > 0 {
			return false
		}
	}
	return true
}

// take reduces left by an amount.
func take(left, amount corev1.ResourceList) {
	for name, wanted := range amount {
		if has, limited := left[name]; limited {
			has = has.DeepCopy()
			has.Sub(wanted)
			left[name] = has
		}
	}
}

// subtract returns the amounts of a, less those of b.
func subtract(a, b corev1.ResourceList) corev1.ResourceList {
	left := a.DeepCopy()
	take(left, b)
	return left
}

// remainder returns the amounts by which a exceeds b.
func remainder(a, b corev1.ResourceList) corev1.ResourceList {
	rest := corev1.ResourceList{}
	for name, amount := range a {
		more := amount.DeepCopy()
		more.Sub(b[name])
		if more.Sign() > 0 {
			rest[name] = more
		}
	}
	return rest
}

// times returns an amount so many times.
func times(amount corev1.ResourceList, factor int64) corev1.ResourceList {
	product := amount.DeepCopy()
	if factor == 1 {
		return product
	}
	for name, one := range product {
		many := one.DeepCopy()
		many.Mul(factor)
		product[name] = many
	}
	return product
}
