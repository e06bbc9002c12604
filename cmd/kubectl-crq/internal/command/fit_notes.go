// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

const (
	noLimitRanges = "You may not read LimitRanges: what they add to pods isn't counted."
	noPriorities  = "You may not read PriorityClasses: pods that name none are taken to have none, and a quota here goes by that."
	noStorage     = "You may not read StorageClasses: claims that name none are taken to have none, and a quota here goes by that."
	noRuntimes    = "You may not read RuntimeClasses: the overhead of pods that name one isn't counted."
)

// unreadNotes tell of what may not be read, where it matters.
func unreadNotes(unread reading.Unread, asked question) []string {
	var notes []string
	add := func(note string, matters bool) {
		if matters {
			notes = append(notes, note)
		}
	}
	pod := func(matters func(*corev1.Pod) bool) bool {
		return made(asked.demands, func(object client.Object) bool {
			pod, ok := object.(*corev1.Pod)
			return ok && matters(pod)
		})
	}
	add(noLimitRanges, unread.LimitRanges)
	add(noPriorities, unread.PriorityClasses && slices.ContainsFunc(asked.limits, reading.ByPriority) &&
		pod(func(pod *corev1.Pod) bool { return pod.Spec.PriorityClassName == "" }))
	add(noRuntimes, unread.RuntimeClasses &&
		pod(func(pod *corev1.Pod) bool { return pod.Spec.RuntimeClassName != nil && pod.Spec.Overhead == nil }))
	add(noStorage, unread.StorageClasses && slices.ContainsFunc(asked.limits, reading.ByStorageClass) &&
		made(asked.demands, func(object client.Object) bool {
			claim, ok := object.(*corev1.PersistentVolumeClaim)
			return ok && claim.Spec.StorageClassName == nil
		}))
	return notes
}

func made(demands []fitting.Demand, matters func(client.Object) bool) bool {
	return slices.ContainsFunc(demands, func(demand fitting.Demand) bool {
		items := demand.Items
		if demand.Pods != nil {
			items = slices.Concat(items, demand.Pods.New)
		}
		return slices.ContainsFunc(items, func(item fitting.Item) bool { return matters(item.Object) })
	})
}

// rolloutNotes tell where a limit stands in the way of replacing pods, and not of
// what there is in the end.
func rolloutNotes(verdict fitting.Verdict, demands []fitting.Demand) []string {
	rollouts := rolloutNames(demands)
	if len(rollouts) == 0 {
		return nil
	}
	var stuck, tight []string
	for _, row := range verdict.Rows {
		switch {
		case !row.Counted:
		case row.InTheEnd.Cmp(row.Available) > 0:
			return nil
		case !row.Shortfall.IsZero():
			stuck = append(stuck, fmt.Sprintf("%s of %s", row.Resource, quotaName(row.Limit)))
		case row.WholeSurge.Cmp(row.Available) > 0 && row.WholeSurge.Cmp(row.Requested) > 0:
			tight = append(tight, fmt.Sprintf("%s of %s", row.Resource, quotaName(row.Limit)))
		}
	}
	var notes []string
	if len(stuck) > 0 {
		notes = append(notes, stuckRollout(rollouts, stuck))
	}
	if len(tight) > 0 {
		notes = append(notes, tightRollout(rollouts, tight))
	}
	return notes
}

func stuckRollout(rollouts, of []string) string {
	return fmt.Sprintf("In the end it would fit: what is short is room for %s to replace pods, which starts new ones before old ones go. "+
		"Without maxSurge, or with maxUnavailable of 1 or more, it gets by without. Short of: %s.",
		strings.Join(rollouts, ", "), strings.Join(of, ", "))
}

func tightRollout(rollouts, of []string) string {
	return fmt.Sprintf("There isn't room for the whole surge of %s: pods are replaced in smaller steps, and until then "+
		"some are refused and tried again. Short of: %s.", strings.Join(rollouts, ", "), strings.Join(of, ", "))
}

func rolloutNames(demands []fitting.Demand) []string {
	var names []string
	for _, demand := range demands {
		if demand.Pods != nil && demand.Pods.Replaced() > 0 && demand.Pods.Surge > 0 {
			names = append(names, manifestName(demand.Kind, demand.Namespace, demand.Name))
		}
	}
	return names
}
