// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// story hands Proofs events, and notes the conclusions.
type story struct {
	proofs  Proofs
	now     time.Time
	changed []string
	edit    string // the other client that edited the observed configuration
}

func editionAt(generation int64) Edition {
	return Edition{Generation: generation, Mark: fmt.Sprintf("%016x", generation)}
}

// sees a configuration of this generation that covers these quotas, each as NAME or
// NAME/GENERATION; "-" before a name says that it doesn't.
func (s *story) sees(configuration types.UID, generation int64, quotas ...string) {
	seen := Observation{Configuration: configuration, Generation: generation, Edit: s.edit}
	for _, text := range quotas {
		text, uncovered := strings.CutPrefix(text, "-")
		name, of, _ := strings.Cut(text+"/1", "/")
		seen.Quotas = append(seen.Quotas, Quota{Name: name, UID: types.UID(name), Generation: int64(of[0] - '0')})
		seen.Coverages = append(seen.Coverages, map[bool]Coverage{true: Missing, false: Exact}[uncovered])
	}
	if configuration != "" {
		seen.Edition = editionAt(generation)
	}
	s.changed = s.proofs.Observe(seen, s.now)
}

// sawAnEdit is the story of a quota that was proved, uncovered by an edit, and covered again.
func (s *story) sawAnEdit() {
	s.sees("c", 3, "a", "b")
	s.answered(3)
	s.edit = "x"
	s.sees("c", 4, "-a", "b")
	s.sees("c", 5, "a", "b")
	s.answered(5)
}

func (s *story) answered(generation int64) {
	_, s.changed = s.proofs.Answered(editionAt(generation), s.now)
}
func (s *story) failed(why string)         { s.changed = s.proofs.Failed(why, s.now) }
func (s *story) passes(time time.Duration) { s.now = s.now.Add(time) }

func (s *story) of(name string, generation int64) Enforcement {
	return s.proofs.Of(name, types.UID(name), generation, s.now).Enforcement
}

func TestTheVerdictOnAQuota(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(s *story)
		want    Enforcement // of the spec 1 of quota a
	}{
		"nothing at first":            {happens: func(*story) {}, want: Unknown},
		"nothing before a probe ends": {happens: func(s *story) { s.sees("c", 3, "a") }, want: Unknown},
		"nothing of another spec":     {happens: func(s *story) { s.sees("c", 3, "a/2"); s.answered(3) }, want: Unknown},
		"that it is proved":           {happens: func(s *story) { s.sees("c", 3, "a"); s.answered(3) }, want: Proved},
		"that it is not covered":      {happens: func(s *story) { s.sees("c", 3, "-a"); s.answered(3) }, want: Uncovered},
		"that there is nothing to cover it by": {
			happens: func(s *story) { s.sees("", 0, "-a") }, want: Uncovered,
		},
		"that a new one isn't proved yet": {
			happens: func(s *story) { s.sees("c", 3, "b"); s.answered(3); s.sees("c", 4, "a", "b") }, want: Unproved,
		},
		"that it isn't by an answer of before": {
			happens: func(s *story) {
				s.sees("c", 3, "b")
				s.sees("c", 4, "a", "b")
				s.answered(4)
				s.sees("c", 5, "-a", "b")
				s.sees("c", 6, "a", "b")
				s.answered(4)
			},
			want: Unproved,
		},
		"that it is, by the newest": {
			happens: func(s *story) {
				s.sees("c", 4, "a")
				s.answered(4)
				s.sees("c", 5, "-a")
				s.sees("c", 6, "a")
				s.answered(6)
			},
			want: Proved,
		},
		"that an edit uncovers it":                  {happens: func(s *story) { s.edit = "x"; s.sees("c", 3, "-a") }, want: Edited},
		"that it did, until the repair has lasted":  {happens: func(s *story) { s.sawAnEdit() }, want: Edited},
		"that it is proved once the repair lasted":  {happens: func(s *story) { s.sawAnEdit(); s.edit = ""; s.sees("c", 5, "a") }, want: Proved},
		"that the repair isn't proved though":       {happens: func(s *story) { s.sawAnEdit(); s.edit = ""; s.sees("c", 6, "-a"); s.sees("c", 7, "a") }, want: Unproved},
		"that an edit of something else is nothing": {happens: func(s *story) { s.sees("c", 3, "a"); s.answered(3); s.edit = "x"; s.sees("c", 4, "a", "-b") }, want: Proved},
		"that a client deleted the configuration": {
			happens: func(s *story) {
				s.sees("c", 3, "a")
				s.answered(3)
				s.edit = "x"
				s.sees("", 0, "-a")
				s.sees("d", 1, "a")
			}, want: Edited,
		},
		"that another's creation changes nothing": {
			happens: func(s *story) { s.sees("c", 3, "a"); s.answered(3); s.sees("c", 4, "a", "b"); s.answered(3) }, want: Proved,
		},
		"that a quota that was created again is another": {
			happens: func(s *story) { s.sees("c", 3, "a"); s.answered(3); s.sees("c", 4); s.sees("c", 5, "a") }, want: Unproved,
		},
		"that its new spec isn't proved": {
			happens: func(s *story) { s.sees("c", 3, "a/2"); s.answered(3); s.sees("c", 4, "a") }, want: Unproved,
		},
		"that a configuration that was deleted proves nothing": {
			happens: func(s *story) {
				s.sees("c", 3, "a")
				s.answered(3)
				s.sees("", 0, "-a")
				s.sees("d", 1, "a")
				s.passes(probePatience)
			},
			want: Unproved,
		},
		"also if nobody saw it missing": {
			happens: func(s *story) { s.sees("c", 3, "a"); s.answered(3); s.sees("d", 4, "a"); s.passes(probePatience) }, want: Unproved,
		},
		"but one that was made again does": {happens: func(s *story) { s.sees("c", 3, "a"); s.answered(3); s.sees("d", 1, "a"); s.answered(1) }, want: Proved},
		"that probes may fail for a while": {
			happens: func(s *story) {
				s.sees("c", 3, "a")
				s.answered(3)
				s.failed("refused")
				s.passes(probePatience - 1)
				s.failed("refused")
			},
			want: Proved,
		},
		"but not for long": {
			happens: func(s *story) {
				s.sees("c", 3, "a")
				s.answered(3)
				s.failed("refused")
				s.passes(probePatience)
				s.failed("refused")
			},
			want: Unprovable,
		},
		"that they may begin to succeed again": {
			happens: func(s *story) {
				s.sees("c", 3, "a")
				s.answered(3)
				s.failed("refused")
				s.passes(probePatience)
				s.failed("refused")
				s.answered(3)
			},
			want: Proved,
		},
		"that failures between two answers are none that last": {
			happens: func(s *story) {
				s.sees("c", 3, "a")
				s.answered(3)
				s.failed("refused")
				s.passes(10 * time.Second)
				s.answered(3)
				s.passes(10 * time.Second)
				s.failed("refused")
			},
			want: Proved,
		},
		"that an answer by an older configuration is none that fails": {
			happens: func(s *story) {
				s.sees("c", 3, "a")
				s.answered(3)
				s.sees("c", 4, "a", "b")
				s.passes(time.Minute)
				s.answered(3)
			},
			want: Proved,
		},
		"that a proof doesn't live for ever": {
			happens: func(s *story) { s.sees("c", 3, "a"); s.answered(3); s.passes(proofLife + 1) }, want: Unprovable,
		},
		"that there was nothing to prove is no failure": {
			happens: func(s *story) {
				s.sees("c", 3, "a")
				s.answered(3)
				s.failed("refused")
				s.sees("c", 3)
				s.passes(time.Hour)
				s.sees("c", 3, "a")
			},
			want: Proved,
		},
		"that a new leader finds a probe failing": {
			happens: func(s *story) { s.sees("c", 3, "a"); s.failed("refused"); s.passes(probePatience - 1) }, want: Unknown,
		},
		"and concludes it": {
			happens: func(s *story) { s.sees("c", 3, "a"); s.failed("refused"); s.passes(probePatience); s.failed("refused") }, want: Unprovable,
		},
		"that a new leader finds an API server that is behind": {
			happens: func(s *story) { s.sees("c", 3, "a"); s.answered(2) }, want: Unknown,
		},
		"and that stays so": {
			happens: func(s *story) { s.sees("c", 3, "a"); s.answered(2); s.passes(probePatience); s.answered(2) }, want: Unproved,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{now: time.Unix(5000, 0)}
			test.happens(s)
			if got := s.of("a", 1); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestQuotasWithANewConclusionAreReported(t *testing.T) {
	s := &story{now: time.Unix(5000, 0)}
	for i, step := range []struct {
		happens func()
		want    []string
	}{
		{func() { s.sees("c", 1, "a", "b") }, []string{"a", "b"}},
		{func() { s.answered(1) }, []string{"a", "b"}},
		{func() { s.answered(1) }, nil},
		{func() { s.sees("c", 2, "a", "b", "c") }, []string{"c"}},
		{func() { s.answered(1) }, nil},
		{func() { s.answered(2) }, []string{"c"}},
		{func() { s.failed("refused") }, nil},
		{func() { s.passes(probePatience); s.failed("refused") }, []string{"a", "b", "c"}},
		{func() { s.passes(time.Second); s.failed("refused again, from another port") }, nil},
		{func() { s.answered(2) }, []string{"a", "b", "c"}},
		{func() { s.sees("c", 3, "a", "-b") }, []string{"b"}},
	} {
		step.happens()
		if diff := cmp.Diff(step.want, s.changed); diff != "" {
			t.Errorf("step %d: told (-want,+got):\n%s", i, diff)
		}
	}
}

func TestTheEditionToProve(t *testing.T) {
	s := &story{}
	for i, step := range []struct {
		happens func()
		want    Edition
	}{
		{happens: func() {}},
		{happens: func() { s.sees("", 0, "-a") }},
		{func() { s.sees("c", 1, "a") }, editionAt(1)},
		{func() { s.answered(1) }, editionAt(1)},
		{func() { s.sees("c", 2, "a", "b") }, editionAt(2)},
		{happens: func() { s.sees("c", 3) }},
	} {
		step.happens()
		if got, some := s.proofs.Wanted(); some != (step.want != Edition{}) || (some && got != step.want) {
			t.Errorf("step %d: got %+v, %t, want %+v", i, got, some, step.want)
		}
	}
}
