// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// everything are facts that bring about every reason of every condition.
func everything() []facts {
	return []facts{
		good(),
		good(func(f *facts) { f.countedGeneration = 1 }),
		good(func(f *facts) { f.uncounted = []corev1.ResourceName{"services"} }),
		good(func(f *facts) { f.ledger.Sealed, f.sealedUntil = moment, moment }),
		good(func(f *facts) { f.trouble = &driver.Trouble{Since: moment, Err: errors.New("etcd is full")} }),
		good(func(f *facts) { f.trouble = &driver.Trouble{Since: moment, Untaken: true} }),
		good(func(f *facts) { f.invalid, f.slices, f.countedGeneration = errors.New("no selector"), nil, 0 }),
		good(func(f *facts) { f.invalid, f.refusing, f.slices, f.countedGeneration = errors.New("-1"), true, nil, 0 }),
		good(func(f *facts) { f.verdict = webhookconfig.Verdict{Enforcement: webhookconfig.Uncovered} }),
		good(func(f *facts) { f.verdict.Enforcement = webhookconfig.Unproved }),
		good(func(f *facts) {
			f.verdict = webhookconfig.Verdict{Enforcement: webhookconfig.Edited, Edit: "somebody else edited it"}
		}),
		good(func(f *facts) {
			f.verdict.Enforcement, f.verdict.Failure = webhookconfig.Unprovable, "connection refused"
		}),
		good(func(f *facts) { f.verdict.Coverage = webhookconfig.Wide }),
		good(func(f *facts) { f.admits = true }),
		good(func(f *facts) { f.admits, f.enforcement.Mode = true, quotav1.EnforcementAudit }),
		good(func(f *facts) { f.admits, f.enforcement.WhenUnavailable = true, quotav1.UnavailableAdmit }),
		good(func(f *facts) {
			f.slices, f.enforcement.Mode = map[string]corev1.ResourceList{"a": list("pods", "11")}, quotav1.EnforcementWarn
		}),
		good(admittedUnavailable),
		good(func(f *facts) { f.slices = map[string]corev1.ResourceList{"a": list("pods", "11")} }),
		good(func(f *facts) {
			f.slices, f.ledger.Surgers = map[string]corev1.ResourceList{"a": list("pods", "11")}, surgers("web", "api")
		}),
		good(func(f *facts) { f.protected = []string{"kube-system"} }),
		good(misnamed("storage")),
		good(func(f *facts) {
			f.problems = []Problem{{Reason: quotav1.ReasonNotServed, Message: "no widgets: install them"}}
		}),
		good(func(f *facts) {
			f.problems = []Problem{{Reason: quotav1.ReasonNotWatchable, Message: "no gadgets: see why"}}
		}),
		good(func(f *facts) {
			for _, name := range []string{"gadgets", "widgets"} {
				resource := schema.GroupResource{Resource: name}
				f.problems = append(f.problems, Problem{resource, quotav1.ReasonNotServed, outcomes.NotServedHere.Text(resource)})
			}
		}),
	}
}

// nextStep matches the advice in a message.
var nextStep = regexp.MustCompile(`(: |; |, or |, and |and |lasts, )(correct|exempt|find out|wait|look|have|raise|exclude|remove|select|set|start|install|see) ?`)

func TestEachTroubleSaysWhatToDoNext(t *testing.T) {
	good := map[string]metav1.ConditionStatus{} // none for those of progress, which are there only if they report a trouble
	for _, row := range rows() {
		good[row.kind] = row.good
	}
	for _, facts := range everything() {
		for _, condition := range facts.status(surging()).Conditions {
			asItShould := condition.Status == good[condition.Type]
			// A condition of enforcement with a reservation has a step, too.
			reserved := strings.Contains(condition.Message, "; ")
			if (!asItShould || reserved) && !nextStep.MatchString(condition.Message) {
				t.Errorf("%s=%s %s doesn't say what to do next: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
			}
		}
	}
}

func TestNoConditionSaysASentenceTwice(t *testing.T) {
	for _, facts := range everything() {
		for _, condition := range facts.status(surging()).Conditions {
			seen := map[string]bool{}
			for sentence := range strings.SplitSeq(condition.Message, "; ") {
				if seen[sentence] {
					t.Errorf("%s %s says %q twice: %s", condition.Type, condition.Reason, sentence, condition.Message)
				}
				seen[sentence] = true
			}
		}
	}
}

func TestEveryReasonIsDocumentedUnderItsCondition(t *testing.T) {
	text, err := os.ReadFile("../../docs/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, used []string
	var kind string
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			kind = strings.TrimSpace(heading)
		}
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			documented = append(documented, kind+" "+strings.TrimSpace(heading))
		}
	}
	for _, facts := range everything() {
		for _, condition := range facts.status(surging()).Conditions {
			used = append(used, condition.Type+" "+condition.Reason)
		}
	}
	for _, records := range [][]waiting.Record{nil, {{Refusal: refusalIn("a", "web", "1")}}} {
		_, conditions := waitingIn(records, true)
		for _, condition := range conditions {
			used = append(used, condition.Type+" "+condition.Reason)
		}
	}
	slices.Sort(documented)
	slices.Sort(used)
	if used = slices.Compact(used); !slices.Equal(documented, used) {
		t.Errorf("documented %q\nused       %q", documented, used)
	}
}
