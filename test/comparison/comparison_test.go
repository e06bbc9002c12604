// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"fmt"
	"strings"
	"testing"
)

// least is how many of the cases must fit, and how many must not, as they are created and as pods are replaced.
const least = 20

// leastSurged is in how many of them a pod must have taken surge.
const leastSurged = 3

func TestWhatTheToolsSayComesTrue(t *testing.T) {
	tally := map[string]int{}
	for seed := range Seeds(1000) {
		drawn := Drawn(seed)
		if wrong := play(drawn, tally); len(wrong) > 0 {
			t.Fatalf("COMPARE_SEED=%d COMPARE=1 plays this case again:\n%s\n%s", seed, drawn, strings.Join(wrong, "\n"))
		}
	}
	t.Log(tally)
	if tally["surged"] < leastSurged && tally["all"] >= 1000 {
		t.Errorf("in %d cases a pod took surge, want %d", tally["surged"], leastSurged)
	}
	for _, sort := range []string{"created, fits true", "created, fits false", "replaced, fits true", "replaced, fits false"} {
		if tally[sort] < least && tally["all"] >= 1000 {
			t.Errorf("%d cases are %s, want %d", tally[sort], sort, least)
		}
	}
}

// play compares all that is said of a case with what becomes of it, and returns what is wrong.
func play(drawn Case, tally map[string]int) []string {
	cluster := NewCluster(drawn)
	if drawn.Before != nil {
		cluster.Force()
	}
	verdict, demand := cluster.Fit()
	var lines []string
	if drawn.IsPreflighted() {
		lines = cluster.Preflight()
	}
	outcome := cluster.Apply(drawn.Applied, drawn.Before)
	asked := drawn.Asked(demand)
	wrong := outcome.DisprovesFit(verdict, asked)
	if drawn.IsPreflighted() {
		wrong = append(wrong, outcome.Disproves(lines, asked)...)
	}
	sort := map[bool]string{true: "replaced", false: "created"}[asked.Replaces]
	if cluster.surged {
		tally["surged"]++
	}
	tally[fmt.Sprintf("%s, fits %t", sort, outcome.Itself == nil && outcome.Made == nil)]++
	tally["all"]++
	if len(wrong) > 0 {
		wrong = append(wrong, fmt.Sprintf("preflight: %q\nfit: %+v\noutcome: %+v", lines, verdict, outcome))
	}
	return wrong
}

func TestDisprovesWhy(t *testing.T) {
	const maximum = "maximum cpu usage per Pod is 600m"
	short := func(resource string) Why {
		why, err := ReadWhy([]byte(`{"result": "does not fit", "cause": "QuotaShort", "quotas": [
			{"quota": "crq/team", "resources": [{"resource": "`+resource+`", "short": "1"}]}]}`), 1)
		if err != nil {
			t.Fatal(err)
		}
		return why
	}
	full := &RefusalError{Kind: "Pod", Shorts: []Short{{"team", "pods"}}}
	unstated := &RefusalError{Kind: "Pod", Message: "failed quota: team: must specify requests.cpu for: app"}
	limited := &RefusalError{Kind: "Pod", Message: `Error creating: pods "web-1" is forbidden: ` + maximum}
	for name, test := range map[string]struct {
		made  *RefusalError
		asked Asked
		why   Why
		wrong int
	}{
		"all came":                              {why: Why{Result: fits, Cause: notRefused}},
		"all came, and it says that not":        {why: short("pods"), wrong: 1},
		"a quota is full":                       {made: full, why: short("pods")},
		"another resource is short":             {made: full, why: short("services"), wrong: 1},
		"it says that all came":                 {made: full, why: Why{Result: fits, Cause: notRefused}, wrong: 3},
		"there is room since pods were ended":   {made: full, asked: Asked{Replaces: true}, why: Why{Result: fits, Cause: fitsNow}},
		"there is room, and nothing was ended":  {made: full, why: Why{Result: fits, Cause: fitsNow}, wrong: 3},
		"nobody told of it":                     {made: &RefusalError{}, why: short("pods")},
		"something isn't stated":                {made: unstated, why: Why{Result: doesNotFit, Cause: quotaRefused, Summary: "crq/team refuses pods"}},
		"another quota is blamed for that":      {made: unstated, why: Why{Result: doesNotFit, Cause: quotaRefused, Summary: "crq/other refuses pods"}, wrong: 1},
		"a LimitRange refuses":                  {made: limited, why: Why{Result: doesNotFit, Cause: otherRefused, Summary: "a LimitRange refuses it: " + maximum + "."}},
		"it has other words":                    {made: limited, why: Why{Result: doesNotFit, Cause: otherRefused, Summary: "a LimitRange refuses it: another."}, wrong: 1},
		"something else is blamed":              {made: limited, why: Why{Result: doesNotFit, Cause: otherRefused, Summary: "webhook x refuses it: " + maximum + "."}, wrong: 1},
		"of several LimitRanges, one is blamed": {made: limited, asked: Asked{LimitRanges: 2}, why: Why{Result: doesNotFit, Cause: otherRefused, Summary: "a LimitRange refuses it: another."}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Outcome{Made: test.made}).DisprovesWhy(&test.why, test.asked); len(got) != test.wrong {
				t.Errorf("want %d wrong claims, got %q", test.wrong, got)
			}
		})
	}
}

func TestSaid(t *testing.T) {
	const why, less = "; see kubectl crq why deployment/web -n here", "; see kubectl crq fit -f FILE, and apply fewer"
	for line, want := range map[string]string{
		"quota team: 3 of 8 pods fit now, short of pods 5, requests.cpu 1" + why:                                                "team 3/8 [pods requests.cpu]",
		"quota team: at least 3 of 8 pods fit now, short of pods 5 and 2 more" + why:                                            "team 3/8 at least [pods] more",
		"quota team: 9 pods can never fit (at most 3 fit now), because that is more than the limit: pods 9 of 8" + less:         "team 3/9 at most [pods] never",
		"quota team only warns: the rollout would be stuck, short of pods 1" + why:                                              "team only warns [pods]",
		"quota team: the rollout will wait for room between its steps, because its whole surge is short of pods 1" + why:        "team [pods] waits",
		"quota team: the rollout fits, and will use this part of the surge that is left: pods 1 of 5" + why:                     "team [] fits",
		"quota team: the rollout will be stuck, because pods that ask for more than before get no surge, short of pods 1" + why: "team [pods]",
		"quota team: the rollout will be stuck until others give the quota's surge back, short of pods 1" + why:                 "team [pods]",
		"quota team: it is not known whether the workload's pods fit: usage is still being counted; not known: pods" + why:      "team [] unjudged",
		"its pods may be refused: failed quota: team: must specify limits.cpu for: app" + why:                                   " [] maybe refused",
	} {
		said := ParseSaid(line)
		got := said.Quota
		if said.OnlyWarns {
			got += " only warns"
		}
		if said.Wanted >= 0 {
			got += fmt.Sprintf(" %d/%d", said.Fit, said.Wanted)
		}
		for _, flag := range []struct {
			set  bool
			name string
		}{{said.AtLeast, "at least"}, {said.AtMost, "at most"}} {
			if flag.set {
				got += " " + flag.name
			}
		}
		got += fmt.Sprint(" ", said.Short)
		for _, flag := range []struct {
			set  bool
			name string
		}{{said.More, "more"}, {said.Never, "never"}, {said.Fits, "fits"}, {said.Waits, "waits"}, {said.Unjudged, "unjudged"}, {said.Maybe, "maybe"}, {said.Refused != "", "refused"}} {
			if flag.set {
				got += " " + flag.name
			}
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", line, got, want)
		}
	}
}
