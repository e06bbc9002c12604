// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func eventsTable(events []corev1.Event, style Style, now time.Time) *table {
	made := &table{}
	made.add(style.headings(plains("Type", "Reason", "Age", "From", "Message"))...)
	for i := range events {
		event := &events[i]
		in := none
		if event.Type == corev1.EventTypeWarning {
			in = yellow
		}
		made.add(style.cell(in, event.Type), plain(event.Reason), plain(eventAge(event, now)),
			plain(cmp.Or(event.ReportingController, event.Source.Component)), plain(strings.TrimSpace(event.Message)))
	}
	return made
}

// LastSeen is when the event came last: recorders of the older and the newer kind
// write that into different fields.
func LastSeen(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	default:
		return event.CreationTimestamp.Time
	}
}

// eventAge is as in kubectl describe: "5s (x3 over 2m)".
func eventAge(event *corev1.Event, now time.Time) string {
	last := age(metav1.NewTime(LastSeen(event)), now)
	times := event.Count
	if event.Series != nil {
		times = event.Series.Count
	}
	if times <= 1 {
		return last
	}
	first := event.FirstTimestamp
	if first.IsZero() {
		first = metav1.NewTime(event.EventTime.Time)
	}
	return fmt.Sprintf("%s (x%d over %s)", last, times, age(first, now))
}
