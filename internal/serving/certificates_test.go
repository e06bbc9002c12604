// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

const testHost = "webhook.operator.svc"

var start = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// content is the data of a Secret: issued again, or with another certificate of
// the same authority.
func content(t *testing.T, previous map[string][]byte) map[string][]byte {
	t.Helper()
	previous = maps.Clone(previous)
	delete(previous, CertKey)
	renewed, err := NewIssuer(testHost).Renew(previous, start)
	if err != nil {
		t.Fatal(err)
	}
	return renewed.Data
}

func material(t *testing.T, content map[string][]byte) *Material {
	t.Helper()
	made, err := NewMaterial(content[CertKey], content[KeyKey], content[AuthorityKey])
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// The API server's authorities, and the presented certificate, by the names that
// the stories below give to certificates: A and A2 have one authority, B and C
// have others.
func TestOneCertificateFollowsAnother(t *testing.T) {
	contents := map[string]map[string][]byte{"A": content(t, nil), "B": content(t, nil), "C": content(t, nil)}
	contents["A2"] = content(t, contents["A"])
	authorities := map[string]string{}
	for _, name := range []string{"A", "B", "C"} {
		authorities[name] = string(contents[name][AuthorityKey])
	}
	materials := map[string]*Material{}
	for name, content := range contents {
		materials[name] = material(t, content)
	}

	type step struct {
		after  time.Duration
		newest string
		// trusts are the authorities in the configuration; empty if there is none.
		trusts string
		// presented and bundle are the result, and again is when the next one is
		// due.
		presented, bundle string
		again             time.Duration
	}
	for name, steps := range map[string][]step{
		"the first is presented before anybody trusts it": {
			{newest: "A", presented: "A", bundle: "A"},
			{newest: "A", trusts: "A", presented: "A", bundle: "A"},
		},
		"another of the same authority needs no other bundle": {
			{newest: "A", trusts: "A", presented: "A", bundle: "A"},
			{newest: "A2", trusts: "A", presented: "A", bundle: "A", again: settle},
			{after: settle - 1, newest: "A2", trusts: "A", presented: "A", bundle: "A", again: 1},
			{after: 1, newest: "A2", trusts: "A", presented: "A2", bundle: "A"},
		},
		"another authority is trusted first, and the old one for an hour more": {
			{newest: "A", trusts: "A", presented: "A", bundle: "A"},
			{newest: "B", trusts: "A", presented: "A", bundle: "BA", again: overlap},
			{after: 2 * overlap, newest: "B", trusts: "A", presented: "A", bundle: "BA", again: overlap},
			{after: time.Second, newest: "B", trusts: "BA", presented: "A", bundle: "BA", again: settle},
			{after: settle, newest: "B", trusts: "BA", presented: "B", bundle: "BA", again: overlap - time.Second - settle},
			{after: overlap - time.Second - settle, newest: "B", trusts: "BA", presented: "B", bundle: "B"},
			{newest: "B", trusts: "B", presented: "B", bundle: "B"},
		},
		"a third that comes meanwhile is added": {
			{newest: "A", trusts: "A", presented: "A", bundle: "A"},
			{newest: "B", trusts: "A", presented: "A", bundle: "BA", again: overlap},
			{newest: "C", trusts: "BA", presented: "A", bundle: "CAB", again: overlap},
			{newest: "C", trusts: "CAB", presented: "A", bundle: "CAB", again: settle},
			{after: settle, newest: "C", trusts: "CAB", presented: "C", bundle: "CAB", again: overlap - settle},
		},
		"the time starts again where the configuration loses it": {
			{newest: "A", trusts: "A", presented: "A", bundle: "A"},
			{newest: "B", trusts: "BA", presented: "A", bundle: "BA", again: settle},
			{after: settle - 1, newest: "B", trusts: "A", presented: "A", bundle: "BA", again: overlap},
			{after: 1, newest: "B", trusts: "BA", presented: "A", bundle: "BA", again: settle},
		},
		"nothing is lost by an exchange at once where the old isn't trusted": {
			{newest: "A", trusts: "A", presented: "A", bundle: "A"},
			{newest: "B", trusts: "B", presented: "B", bundle: "BA", again: overlap},
		},
		"where neither is trusted, it waits for the configuration": {
			{newest: "A", trusts: "A", presented: "A", bundle: "A"},
			{newest: "B", trusts: "C", presented: "A", bundle: "BAC", again: overlap},
		},
		"a replica that starts presents the newest, and knows whom others may need": {
			{newest: "B", trusts: "A", presented: "B", bundle: "BA", again: overlap},
		},
		"an edit of the configuration is not taken over": {
			{newest: "A", trusts: "A", presented: "A", bundle: "A"},
			{newest: "A", trusts: "AC", presented: "A", bundle: "A"},
			{newest: "A", trusts: "C", presented: "A", bundle: "A"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(start)
			certificates := NewCertificates(clock)
			told := 0
			certificates.OnChange(func() { told++ })
			var previous string
			for i, step := range steps {
				clock.SetTime(clock.Now().Add(step.after))
				var calls []Call
				if step.trusts != "" {
					calls = []Call{{Host: testHost, Bundle: spell(authorities, step.trusts)}}
				}
				toldBefore := told
				progress := certificates.Update(materials[step.newest], calls)
				if presented := certificates.presented.Load(); presented != materials[step.presented] {
					t.Errorf("step %d: want %s presented", i, step.presented)
				}
				bundle := string(certificates.Bundle())
				if bundle != spell(authorities, step.bundle) {
					t.Errorf("step %d: bundle: got %s, want %s", i, named(authorities, bundle), step.bundle)
				}
				if progress.Again != step.again {
					t.Errorf("step %d: again after %s, want %s", i, progress.Again, step.again)
				}
				if want := bundle != previous; (told > toldBefore) != want {
					t.Errorf("step %d: told of a change: %t, want %t", i, told > toldBefore, want)
				}
				previous = bundle
			}
		})
	}
}

// spell returns the bundle of authorities with one-letter names.
func spell(authorities map[string]string, names string) string {
	var text strings.Builder
	for _, name := range names {
		text.WriteString(authorities[string(name)])
	}
	return text.String()
}

// named is the reverse of spell, for messages.
func named(authorities map[string]string, bundle string) string {
	names := slices.Collect(maps.Keys(authorities))
	slices.SortFunc(names, func(a, b string) int {
		return strings.Index(bundle, authorities[a]) - strings.Index(bundle, authorities[b])
	})
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(bundle, authorities[name]) }), "")
}

func TestAnEarlierAuthorityThatHasEndedGoes(t *testing.T) {
	first, second := material(t, content(t, nil)), material(t, content(t, nil))
	end := first.authorities[0].NotAfter
	ended := trust{given: first.authorities}.after(second.authorities, nil, end.Add(time.Second))
	if got := len(ended.earlier); got != 0 {
		t.Errorf("got %d earlier authorities, want none", got)
	}
	living := trust{given: first.authorities}.after(second.authorities, nil, end)
	if got := len(living.earlier); got != 1 {
		t.Errorf("got %d earlier authorities, want the one that lives", got)
	}
}

func TestNothingIsPresentedAtFirst(t *testing.T) {
	certificates := NewCertificates(clocktesting.NewFakePassiveClock(start))
	if certificate, err := certificates.Present(nil); err == nil || certificate != nil {
		t.Errorf("got certificate %v, error %v, want an error", certificate, err)
	}
	if bundle := certificates.Bundle(); bundle != nil {
		t.Errorf("got bundle %q, want nil", bundle)
	}
	if end := certificates.NotAfter(); !end.IsZero() {
		t.Errorf("got an end at %s, want none", end)
	}
}

func TestInvalidMaterial(t *testing.T) {
	good := content(t, nil)
	for name, test := range map[string]struct{ cert, key, authority, want string }{
		"no certificate": {
			key: string(good[KeyKey]), authority: string(good[AuthorityKey]), want: "reading the webhook's certificate: ",
		},
		"another's key": {
			cert: string(good[CertKey]), key: string(good[AuthorityPrivateKey]),
			authority: string(good[AuthorityKey]), want: "reading the webhook's certificate: ",
		},
		"no authority": {
			cert: string(good[CertKey]), key: string(good[KeyKey]), authority: "garbage",
			want: "reading the webhook's certificate authority: data does not contain any valid",
		},
		"an authority that is broken": {
			cert: string(good[CertKey]), key: string(good[KeyKey]),
			authority: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
			want:      "reading the webhook's certificate authority: x509: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewMaterial([]byte(test.cert), []byte(test.key), []byte(test.authority)); err == nil ||
				!strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error: got %v, want %q", err, test.want)
			}
		})
	}
}
