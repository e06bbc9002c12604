// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// ordinals are the numbers of a StatefulSet's pods.
type ordinals struct{ first, count int64 }

// ordinalsOf returns the ordinals that a StatefulSet wants.
func ordinalsOf(set *appsv1.StatefulSet) ordinals {
	numbers := ordinals{count: max(0, int64(ptr.Deref(set.Spec.Replicas, 1)))}
	if set.Spec.Ordinals != nil {
		numbers.first = int64(set.Spec.Ordinals.Start)
	}
	return numbers
}

func (o ordinals) has(ordinal int64) bool { return ordinal >= o.first && ordinal < o.first+o.count }

// common returns the ordinals that are in both.
func (o ordinals) common(other ordinals) ordinals {
	first := max(o.first, other.first)
	return ordinals{first: first, count: max(0, min(o.first+o.count, other.first+other.count)-first)}
}

// last returns the highest of them, so many.
func (o ordinals) last(count int64) ordinals {
	count = max(0, min(count, o.count))
	return ordinals{first: o.first + o.count - count, count: count}
}

// kept returns those below the partition: a changed template doesn't come to their pods, and if one of these is
// missing, it is made of the template before.
func (o ordinals) kept(set *appsv1.StatefulSet) ordinals {
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		return ordinals{first: o.first, count: min(o.count, max(0, int64(ptr.Deref(rolling.Partition, 0))))}
	}
	return ordinals{first: o.first}
}

func ordinalOf(pod *corev1.Pod) int64 {
	return ordinal(pod.Name[strings.LastIndex(pod.Name, "-")+1:])
}

// ordinal returns the number of a suffix, or -1 if it is no ordinal: "7" is one,
// "07" isn't.
func ordinal(suffix string) int64 {
	number, err := strconv.ParseInt(suffix, 10, 32)
	if err != nil || fmt.Sprint(number) != suffix {
		return -1
	}
	return number
}
