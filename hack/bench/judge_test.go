// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sharedquota/shared-quota-operator/test/judge"
)

func list(pods string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}
}

func violation(quota string, revision int64) judge.Violation {
	return judge.Violation{
		Quota: quota, Revision: revision, Key: "/registry/pods/a/x", Resource: corev1.ResourcePods,
		Lives: resource.MustParse("3"), Hard: resource.MustParse("2"),
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	table(printer{&out}, judge.Report{Revision: 17, Quotas: map[string]judge.QuotaReport{
		"team":    {Hard: list("2"), Lives: list("1"), Peak: list("3"), Violations: []judge.Violation{violation("team", 7)}, MoreViolations: 4},
		"deleted": {Violations: []judge.Violation{violation("deleted", 5)}},
	}})
	want := `QUOTA    RESOURCE  HARD  LIVES  PEAK  VIOLATIONS
deleted  pods      -     -      -     1
team     pods      2     1      3     1
team: 4 more violations are not among those of its resources
Judged up to revision 17.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

func TestEachViolationIsToldOnceInOrder(t *testing.T) {
	var out strings.Builder
	teller := teller{}
	team := judge.QuotaReport{Violations: []judge.Violation{violation("team", 7)}}
	all := judge.QuotaReport{Violations: []judge.Violation{violation("all", 5)}}
	teller.tell(printer{&out}, judge.Report{Quotas: map[string]judge.QuotaReport{"team": team, "all": all}})
	team.Violations = append(team.Violations, violation("team", 9))
	teller.tell(printer{&out}, judge.Report{Quotas: map[string]judge.QuotaReport{"team": team, "all": all}})
	want := `revision 5: /registry/pods/a/x raised pods under quota all to 3, above 2
revision 7: /registry/pods/a/x raised pods under quota team to 3, above 2
revision 9: /registry/pods/a/x raised pods under quota team to 3, above 2
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

func TestExitCode(t *testing.T) {
	for _, test := range []struct {
		verdict verdict
		err     error
		want    int
	}{
		{kept, nil, 0}, {broken, nil, 1}, {broken, errors.New("no etcd"), 2}, {kept, errors.New("no etcd"), 2},
	} {
		if got := judgeCode(test.verdict, test.err); got != test.want {
			t.Errorf("verdict %v and error %v: got %d, want %d", test.verdict, test.err, got, test.want)
		}
	}
}
