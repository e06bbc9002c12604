// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// RecommendKind is the kind of a Recommend, where it is printed as an object.
const RecommendKind = "Recommend"

// Change is what becomes of a limit if a recommendation is followed.
type Change string

// Changes, as programs read them.
const (
	// Keep: the limit is the recommended one.
	Keep Change = "keep"
	// Lower: the limit is higher than needed.
	Lower Change = "lower"
	// Raise: the limit refused requests, or more is used than it allows.
	Raise Change = "raise"
	// Unused: nobody used any of the resource.
	Unused Change = "unused"
	// Add: only spec.trial has a limit.
	Add Change = "add"
	// NotKnown: there is no history of the resource.
	NotKnown Change = "unknown"
)

// Confidence says how much a recommendation rests on.
type Confidence string

// Confidences, as programs read them.
const (
	NoHistory  Confidence = "none"
	UnderWeek  Confidence = "less than a week"
	UnderMonth Confidence = "less than a month"
	FullMonth  Confidence = "a month"
)

// Recommend has the limits that the last thirty days needed.
type Recommend struct {
	metav1.TypeMeta `json:",inline"`
	Quotas          []Recommendation `json:"quotas"`
}

// Recommendation has the limits that one quota needed.
type Recommendation struct {
	Quota string `json:"quota"`
	// HistorySince is since when anything is known, and Days how many days that is, at most thirty.
	HistorySince *metav1.Time       `json:"historySince,omitempty"`
	Days         int                `json:"days"`
	Confidence   Confidence         `json:"confidence"`
	Resources    []RecommendedLimit `json:"resources"`
	Trials       []TriedLimit       `json:"trials,omitempty"`
	// Notes say what the limits rest on.
	Notes []string `json:"notes"`
}

// RecommendedLimit is the least limit that would have refused nothing. Amounts that aren't known are left out.
type RecommendedLimit struct {
	Resource    corev1.ResourceName     `json:"resource"`
	Mode        quotav1.EnforcementMode `json:"mode,omitempty"`
	Recommended *resource.Quantity      `json:"recommended,omitempty"`
	Hard        *resource.Quantity      `json:"hard,omitempty"`
	Used        *resource.Quantity      `json:"used,omitempty"`
	Peak        *resource.Quantity      `json:"peak,omitempty"`
	PeakAt      *metav1.Time            `json:"peakAt,omitempty"`
	// Refused are the requests of the month that didn't fit.
	Refused int64  `json:"refused"`
	Change  Change `json:"change"`
}

// TriedLimit is what a limit of spec.trial would have refused.
type TriedLimit struct {
	Resource corev1.ResourceName `json:"resource"`
	Hard     resource.Quantity   `json:"hard"`
	Since    metav1.Time         `json:"since"`
	// Requests are how many would have been refused, at most, and Enough is the limit that would have refused
	// none of them.
	Requests int64              `json:"requests"`
	Enough   *resource.Quantity `json:"enough,omitempty"`
	Last     *metav1.Time       `json:"last,omitempty"`
}

// RecommendText returns a line for each limit, and what the limits rest on.
func RecommendText(of *Recommend, style Style) string {
	MakeVisible(of)
	made := &table{}
	made.add(style.headings(plains("QUOTA", "RESOURCE", "RECOMMENDED", "HARD", "USED", "PEAK", "PEAK AT", "REFUSED", "CHANGE"))...)
	for i := range of.Quotas {
		for _, limit := range of.Quotas[i].Resources {
			cells := plains(of.Quotas[i].Quota, string(limit.Resource), optional(limit.Recommended, unknown), optional(limit.Hard, "-"),
				optional(limit.Used, unknown), optional(limit.Peak, unknown), moment(limit.PeakAt), strconv.FormatInt(limit.Refused, 10))
			made.add(append(cells, style.cell(limit.Change.colour(), string(limit.Change)))...)
		}
	}
	var text strings.Builder
	text.WriteString(made.text(""))
	between := "\n"
	for i := range of.Quotas {
		for _, note := range of.Quotas[i].Notes {
			text.WriteString(between + style.wrap(of.Quotas[i].Quota+": "+note, ""))
			between = ""
		}
	}
	return text.String()
}

func (c Change) colour() colour {
	switch c {
	case Raise:
		return red
	case Lower, Unused:
		return yellow
	case Keep:
		return green
	default:
		return dim
	}
}

// optional returns the amount in its canonical form, or what stands for none.
func optional(amount *resource.Quantity, without string) string {
	if amount == nil {
		return without
	}
	return amount.String()
}

// Moment is how a point in time is written: to the minute, in UTC.
const Moment = "2006-01-02T15:04Z"

func moment(at *metav1.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Truncate(time.Minute).Format(Moment)
}
