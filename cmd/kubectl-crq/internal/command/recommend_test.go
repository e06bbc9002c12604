// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// today is when recommendations are made.
var today = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func daysAgo(days int) metav1.Time { return metav1.NewTime(today.AddDate(0, 0, -days)) }

// seen is the history of a resource: its peak of the month, and the requests that didn't fit with their shortfall.
func seen(name corev1.ResourceName, peak string, refused int64, shortfall string) quotav1.ResourceHistory {
	history := quotav1.ResourceHistory{Resource: name, Peak: quotav1.PeakHistory{Month: resource.MustParse(peak), At: daysAgo(1)}}
	if refused > 0 {
		history.Refused = &quotav1.RefusalHistory{Month: refused, Shortfall: resource.MustParse(shortfall)}
	}
	return history
}

// withHistory is a quota of one resource whose history has so many days.
func withHistory(hard string, days int, history ...quotav1.ResourceHistory) *quotav1.ClusterResourceQuota {
	name := corev1.ResourceName("pods")
	if len(history) > 0 {
		name = history[0].Resource
	}
	quota := builders.Quota("payments").Label("team", "payments").Hard(name, hard).Obj()
	quota.Status.History, quota.Status.HistorySince = history, ptr.To(daysAgo(days))
	return quota
}

func using(quota *quotav1.ClusterResourceQuota, used, reserved string) *quotav1.ClusterResourceQuota {
	for name := range quota.Spec.Quota.Hard {
		quota.Status.Total.Used = corev1.ResourceList{name: resource.MustParse(used)}
		quota.Status.Reserved = corev1.ResourceList{name: resource.MustParse(reserved)}
	}
	return quota
}

// shown is a quota whose status was written for another limit.
func shown(quota *quotav1.ClusterResourceQuota, hard string) *quotav1.ClusterResourceQuota {
	quota.Status.Total.Hard = corev1.ResourceList{"pods": resource.MustParse(hard)}
	return quota
}

func TestRecommendedLimit(t *testing.T) {
	for name, c := range map[string]struct {
		quota *quotav1.ClusterResourceQuota
		want  string
		then  render.Change
	}{
		"the peak, if nothing was refused":                   {withHistory("20", 30, seen("pods", "12", 0, "")), "12", render.Lower},
		"what a refused request needed":                      {withHistory("20", 30, seen("pods", "20", 3, "4")), "24", render.Raise},
		"the peak, if what was refused fits by now":          {withHistory("20", 30, seen("pods", "18", 3, "-5")), "18", render.Lower},
		"what was refused needed, if it is above the peak":   {withHistory("20", 30, seen("pods", "14", 3, "-5")), "15", render.Lower},
		"a limit that is just enough":                        {withHistory("20", 30, seen("pods", "20", 0, "")), "20", render.Keep},
		"nothing, if nobody used any":                        {withHistory("20", 30, seen("pods", "0", 0, "")), "0", render.Unused},
		"nothing of nothing":                                 {withHistory("0", 30, seen("pods", "0", 0, "")), "0", render.Keep},
		"a large request against a limit of nothing":         {withHistory("0", 30, seen("pods", "0", 1, "7")), "7", render.Raise},
		"memory in the format of its limit":                  {withHistory("16Gi", 30, seen("requests.memory", "11534336Ki", 0, "")), "11Gi", render.Lower},
		"memory in the decimal format of its limit":          {withHistory("16G", 30, seen("requests.memory", "11000Mi", 0, "")), "11534336k", render.Lower},
		"memory in bytes":                                    {withHistory("16Gi", 30, seen("requests.memory", "1073741825", 0, "")), "1073741825", render.Lower},
		"cores":                                              {withHistory("8", 30, seen("requests.cpu", "7400m", 0, "")), "7400m", render.Lower},
		"cores in the format of exponents":                   {withHistory("8e3", 30, seen("requests.cpu", "2", 2, "-1e3")), "7e3", render.Lower},
		"what is used and reserved now, if it is the most":   {using(withHistory("20", 30, seen("pods", "12", 0, "")), "12", "2"), "14", render.Lower},
		"what was refused, if the limit was raised since":    {shown(withHistory("30", 30, seen("pods", "20", 3, "4")), "20"), "24", render.Lower},
		"nothing without a history of the resource":          {withHistory("20", 30), "", render.NotKnown},
		"nothing of a history of which the start isn't said": {&quotav1.ClusterResourceQuota{Spec: quotav1.ClusterResourceQuotaSpec{Quota: quotav1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("1")}}}, Status: quotav1.ClusterResourceQuotaStatus{History: []quotav1.ResourceHistory{seen("pods", "1", 0, "")}}}, "", render.NotKnown},
	} {
		t.Run(name, func(t *testing.T) {
			got := recommendation(c.quota, today).Resources[0]
			text := ""
			if got.Recommended != nil {
				text = got.Recommended.String()
			}
			if text != c.want || got.Change != c.then {
				t.Errorf("recommended %q (%s), want %q (%s)", text, got.Change, c.want, c.then)
			}
		})
	}
}

func TestRecommendNotes(t *testing.T) {
	mode := func(quota *quotav1.ClusterResourceQuota, mode quotav1.EnforcementMode) *quotav1.ClusterResourceQuota {
		quota.Spec.Enforcement.Mode = mode
		return quota
	}
	tried := withHistory("20", 40, seen("pods", "12", 0, ""), seen("secrets", "3", 0, ""))
	tried.Spec.Trial.Hard = corev1.ResourceList{"pods": resource.MustParse("10"), "secrets": resource.MustParse("5")}
	tried.Status.Trial = &quotav1.TrialStatus{Since: daysAgo(9), WouldRefuse: []quotav1.TrialRefusals{
		{Resource: "pods", Requests: 3, LargestShortfall: resource.MustParse("2"), Last: daysAgo(2)}}}
	moved := withHistory("20", 30, seen("pods", "12", 0, ""))
	moved.Status.Changes = []quotav1.SpecChange{{At: daysAgo(3), Field: "selector"}, {At: daysAgo(5), Field: "selector"}}
	unknown := withHistory("20", 0)
	unknown.Status.HistorySince = nil
	for name, c := range map[string]struct {
		quota *quotav1.ClusterResourceQuota
		want  []string
	}{
		"a month": {withHistory("20", 30, seen("pods", "12", 0, "")), []string{"The history has the last 30 days."}},
		"less than a month": {withHistory("20", 29, seen("pods", "12", 0, "")),
			[]string{"The history has 29 days, less than a month: what runs once a month may be missing."}},
		"less than a week": {withHistory("20", 6, seen("pods", "12", 0, "")),
			[]string{"The history has 6 days, too little to follow. Wait for a week at least: what runs once a week may be missing."}},
		"hours": {withHistory("20", 0, seen("pods", "12", 0, "")),
			[]string{"The history has less than a day, too little to follow. Wait for a week at least: what runs once a week may be missing."}},
		"the clock of the operator is ahead": {withHistory("20", -2, seen("pods", "12", 0, "")),
			[]string{"The history has less than a day, too little to follow. Wait for a week at least: what runs once a week may be missing."}},
		"no history":                 {unknown, []string{"There is no history yet, so nothing is recommended."}},
		"no history of the resource": {withHistory("20", 30), []string{"The history has the last 30 days.", "There is no history of pods yet."}},
		"unused": {withHistory("20", 12, seen("pods", "0", 0, "")), []string{
			"The history has 12 days, less than a month: what runs once a month may be missing.",
			"Nobody used pods in 12 days. The patch leaves that as it is, because a limit of 0 would forbid it."}},
		"refused": {withHistory("20", 30, seen("pods", "12", 2, "1")), []string{"The history has the last 30 days.",
			"Requests for pods were refused. Each was compared with what was used then, so together they may need more."}},
		"a mode that refuses nothing": {mode(withHistory("20", 30, seen("pods", "22", 2, "2")), quotav1.EnforcementAudit), []string{
			"The history has the last 30 days.", "The mode of pods is Audit: nothing was refused, so the peak is what was needed."}},
		"a trial": {tried, []string{"The history has the last 30 days.", "Only spec.trial limits secrets. The patch doesn't add it.",
			"The trial of pods: 10 would have refused 3 requests since 2026-11-15, at most, the last on 2026-11-22; 12 would have refused none of them.",
			"The trial of secrets: 5 has refused nothing since 2026-11-15."}},
		"another selector": {moved, []string{"The history has the last 30 days.",
			"The selector was changed on 2026-11-21: figures from before are of other namespaces."}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, recommendation(c.quota, today).Notes); diff != "" {
				t.Errorf("notes (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestThePatchHasOnlyWhatChanges(t *testing.T) {
	quota := builders.Quota("payments").Label("team", "payments").Hard("pods", "20").Hard("requests.memory", "16Gi").
		Hard("services", "2").Hard("secrets", "5").Hard("configmaps", "5").Obj()
	quota.Spec.Trial.Hard = corev1.ResourceList{"requests.cpu": resource.MustParse("5")}
	quota.Status.HistorySince = ptr.To(daysAgo(30))
	quota.Status.History = []quotav1.ResourceHistory{seen("pods", "20", 1, "4"), seen("requests.memory", "11534336Ki", 0, ""),
		seen("services", "0", 0, ""), seen("secrets", "5", 0, ""), seen("requests.cpu", "3", 0, "")}
	got, err := patchText(recommendation(quota, today))
	if err != nil {
		t.Fatal(err)
	}
	const want = `# kubectl patch crq payments --type merge --patch-file FILE
spec:
  quota:
    hard:
      pods: "24"
      requests.memory: 11Gi
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patch (-want,+got):\n%s", diff)
	}
	none, err := patchText(recommendation(withHistory("20", 30, seen("pods", "20", 0, "")), today))
	if err != nil || none != "# No limit of payments would change.\n{}\n" {
		t.Errorf("patch of nothing: %q, %v", none, err)
	}
}

func TestTheLocaleDecidesAboutBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		variables map[string]string
		want      bool
	}{
		"nothing is set":       {nil, false},
		"UTF-8":                {map[string]string{"LANG": "de_DE.UTF-8"}, true},
		"as macOS writes it":   {map[string]string{"LC_CTYPE": "UTF-8"}, true},
		"in another spelling":  {map[string]string{"LANG": "C.utf8"}, true},
		"the first one counts": {map[string]string{"LC_ALL": "C", "LANG": "en_US.UTF-8"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isUTF8(func(name string) string { return c.variables[name] }); got != c.want {
				t.Errorf("isUTF8 is %t", got)
			}
		})
	}
}
