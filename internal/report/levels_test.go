// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	nothing = quotav1.Level("")
	close80 = quotav1.LevelNearLimit
	full    = quotav1.LevelLimitReached
	above   = quotav1.LevelUsedAboveHard
)

func TestALevelIsReachedAtOnceAndLeftLate(t *testing.T) {
	for name, test := range map[string]struct {
		before     quotav1.Level
		used, hard string
		want       quotav1.Level
	}{
		"below 80 percent there is none":              {used: "79", hard: "100", want: nothing},
		"at 80 percent it is near":                    {used: "80", hard: "100", want: close80},
		"at 80 percent of little, too":                {used: "800m", hard: "1", want: close80},
		"and of much":                                 {used: "80Pi", hard: "100Pi", want: close80},
		"in the other unit":                           {used: "820M", hard: "1Gi", want: nothing},
		"one less than all is near":                   {used: "99", hard: "100", want: close80},
		"all is reached":                              {used: "100", hard: "100", want: full},
		"more than all is above":                      {used: "101", hard: "100", want: above},
		"a little more, too":                          {used: "1001m", hard: "1", want: above},
		"a lowered limit is above at once":            {before: nothing, used: "5", hard: "3", want: above},
		"near stays near at 70":                       {before: close80, used: "70", hard: "100", want: close80},
		"and is left below":                           {before: close80, used: "69", hard: "100", want: nothing},
		"reached stays reached at 90":                 {before: full, used: "90", hard: "100", want: full},
		"and is near below":                           {before: full, used: "89", hard: "100", want: close80},
		"or left at once":                             {before: full, used: "0", hard: "100", want: nothing},
		"above is left at the limit":                  {before: above, used: "100", hard: "100", want: full},
		"and is reached while it is not far below":    {before: above, used: "95", hard: "100", want: full},
		"a raised limit ends it":                      {before: above, used: "10", hard: "100", want: nothing},
		"of nothing there are no percents":            {used: "0", hard: "0", want: nothing},
		"nor reached":                                 {before: above, used: "0", hard: "0", want: nothing},
		"but more than nothing is above":              {used: "1", hard: "0", want: above},
		"what isn't counted keeps what it had":        {before: full, used: "", hard: "100", want: full},
		"and has none where it had none":              {used: "", hard: "100", want: nothing},
		"what is no longer limited has none any more": {before: full, used: "5", hard: "", want: nothing},
	} {
		t.Run(name, func(t *testing.T) {
			got := Levels(levels(test.before), amount(test.used), amount(test.hard))
			if diff := cmp.Diff(levels(test.want), got); diff != "" {
				t.Errorf("levels (-want,+got):\n%s", diff)
			}
		})
	}
}

func levels(level quotav1.Level) map[corev1.ResourceName]quotav1.Level {
	if level == nothing {
		return nil
	}
	return map[corev1.ResourceName]quotav1.Level{"pods": level}
}

func amount(quantity string) corev1.ResourceList {
	if quantity == "" {
		return nil
	}
	return corev1.ResourceList{"pods": resource.MustParse(quantity)}
}

func TestOnlyWhatRisesIsTold(t *testing.T) {
	before := map[corev1.ResourceName]quotav1.Level{"a": full, "b": full, "c": close80, "gone": above}
	current := map[corev1.ResourceName]quotav1.Level{"a": full, "b": close80, "c": above, "new": close80}
	if diff := cmp.Diff([]corev1.ResourceName{"c", "new"}, Risen(before, current)); diff != "" {
		t.Errorf("risen (-want,+got):\n%s", diff)
	}
}

// However use moves within the slack below a level, that level is told once.
func TestUseThatMovesAboutALevelIsToldOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hard := rapid.Int64Range(10, 1000).Draw(t, "hard")
		moves := rapid.SliceOf(rapid.Int64Range(hard-hard/10, hard)).Draw(t, "used")
		var now map[corev1.ResourceName]quotav1.Level
		told := 0
		for _, used := range append([]int64{hard}, moves...) {
			next := Levels(now, amount(fmt.Sprint(used)), amount(fmt.Sprint(hard)))
			told += len(Risen(now, next))
			now = next
		}
		if told != 1 {
			t.Fatalf("told %d times", told)
		}
	})
}
