// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// Trend has ten periods of three days.
const trendPeriods = 10

// What a sparkline has for a period of which nothing is known, and for one with a peak above the limit.
const (
	sparkUnknown = "·"
	sparkAbove   = "▲"
	plainUnknown = "."
	unknownTrend = '-'
	// sparks are the peaks from none to all of the limit, in eighths.
	sparks = "_▁▂▃▄▅▆▇█"
)

// past is one line: what a resource of a quota has seen.
type past struct {
	Figure
	quota   *quotav1.ClusterResourceQuota
	limited bool
	history *quotav1.ResourceHistory // nil if nothing is known
}

// History returns a line for each resource of each quota, with its peaks of the last thirty days.
func History(quotas []quotav1.ClusterResourceQuota, options TopOptions, now time.Time) string {
	made := &table{}
	made.add(options.headings(plains("QUOTA", "RESOURCE", "LAST 30 DAYS", "DAY", "WEEK", "MONTH", "HARD", "PEAK%", "REFUSED", "SINCE"))...)
	lines := pastOf(quotas)
	if options.ByUsage {
		slices.SortStableFunc(lines, func(a, b past) int { return cmp.Compare(b.peakPercent(), a.peakPercent()) })
	}
	for _, line := range lines {
		cells := append(plains(line.quota.Name, string(line.Resource)), options.spark(line))
		cells = append(cells, plains(line.peaks()...)...)
		made.add(append(cells, options.cell(line.colour(), line.percentText()), plain(line.refused()), plain(since(line.quota, now)))...)
	}
	return made.text("")
}

// pastOf has the resources that are limited, and those that were tried.
func pastOf(quotas []quotav1.ClusterResourceQuota) []past {
	var lines []past
	for i := range quotas {
		quota := &quotas[i]
		for _, figure := range Figures(quota.Spec.Quota.Hard, nil, nil) {
			lines = append(lines, pastLine(quota, figure, true))
		}
		for _, figure := range Figures(quota.Spec.Trial.Hard, nil, nil) {
			if _, limited := quota.Spec.Quota.Hard[figure.Resource]; !limited {
				lines = append(lines, pastLine(quota, figure, false))
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b past) int {
		return cmp.Or(cmp.Compare(a.quota.Name, b.quota.Name), cmp.Compare(a.Resource, b.Resource))
	})
	return lines
}

// pastLine has the month's peak in place of what is used, so that it is coloured as a bar would be.
func pastLine(quota *quotav1.ClusterResourceQuota, figure Figure, limited bool) past {
	line := past{Figure: figure, quota: quota, limited: limited}
	for i := range quota.Status.History {
		if quota.Status.History[i].Resource == figure.Resource {
			line.history = &quota.Status.History[i]
			line.Used, line.Counted = line.history.Peak.Month, true
		}
	}
	return line
}

func (p past) peakPercent() int {
	if !p.Counted {
		return 0
	}
	return p.percent()
}

// peaks are those of the day, the week and the month, and the limit.
func (p past) peaks() []string {
	hard := p.Hard.String()
	if !p.limited {
		hard = "trial " + hard
	}
	if p.history == nil {
		return []string{unknown, unknown, unknown, hard}
	}
	texts := make([]string, 0, 4)
	for _, peak := range []resource.Quantity{p.history.Peak.Day, p.history.Peak.Week, p.history.Peak.Month} {
		texts = append(texts, peak.String())
	}
	return append(texts, hard)
}

// refused is how many requests didn't fit in the day, the week and the month.
func (p past) refused() string {
	switch {
	case p.history == nil:
		return unknown
	case p.history.Refused == nil:
		return "0"
	default:
		return fmt.Sprintf("%d/%d/%d", p.history.Refused.Day, p.history.Refused.Week, p.history.Refused.Month)
	}
}

func since(quota *quotav1.ClusterResourceQuota, now time.Time) string {
	if quota.Status.HistorySince == nil {
		return unknown
	}
	return age(metav1.NewTime(quota.Status.HistorySince.Time), now)
}

// spark draws the trend. Without Blocks it is written in eighths of the limit, as in "..1258+".
func (s Style) spark(of past) cell {
	trend := strings.Repeat(string(unknownTrend), trendPeriods)
	if of.history != nil && of.history.Trend != "" {
		trend = of.history.Trend
	}
	var text strings.Builder
	for _, period := range trend {
		text.WriteString(s.sparkOf(period))
	}
	return s.cell(of.colour(), text.String())
}

func (s Style) sparkOf(period rune) string {
	eighths, drawn := int(period-'0'), []rune(sparks)
	switch {
	case period == unknownTrend && !s.Blocks:
		return plainUnknown
	case !s.Blocks:
		return string(period)
	case period == '+':
		return sparkAbove
	case eighths >= 0 && eighths < len(drawn):
		return string(drawn[eighths])
	default:
		return sparkUnknown
	}
}
