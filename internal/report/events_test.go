// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const exceeded = "exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10"

func refusal(reason, message string) outcomes.Refusal {
	return outcomes.Refusal{
		Quota: "team", Namespace: "shop", Kind: "pods", Name: "web-1", Reason: reason, Resources: []corev1.ResourceName{"pods"}, Message: message,
	}
}

var (
	team = &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "u1", ResourceVersion: "5"}}
	view = &quotav1.LocalResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: "shop", UID: "u2", ResourceVersion: "6"}}
)

func use(level quotav1.Level, used string) Use {
	return Use{Resource: "requests.cpu", Level: level, Used: used, Hard: "10"}
}

func TestEventsWordForWord(t *testing.T) {
	for name, test := range map[string]struct {
		got  Event
		want string
	}{
		"a refusal, to the administrator": {
			got: refused("u1", refusal(quotav1.ReasonQuotaExceeded, exceeded)),
			want: "ClusterResourceQuota team u1 spec.quota.hard{pods}: QuotaExceeded Admitting: refused pods: " + exceeded +
				"; delete unneeded objects in the namespaces that share the quota, or raise spec.quota.hard",
		},
		"and to the owner": {
			got: refusedInView("u2", refusal(quotav1.ReasonQuotaExceeded, exceeded)),
			want: `LocalResourceQuota shop/team u2 status.total.hard{pods}: QuotaExceeded Admitting: refused pods "web-1": ` + exceeded +
				"; used is what all namespaces that share the quota use: delete unneeded objects, or ask the cluster's administrator for a higher limit",
		},
		"a request that doesn't say enough": {
			got: refusedInView("u2", outcomes.Refusal{
				Quota: "team", Namespace: "shop", Kind: "pods", Name: "web-1", Reason: quotav1.ReasonRequestIncomplete,
				Message: "failed quota: team: must specify limits.cpu for: c1",
			}),
			want: `LocalResourceQuota shop/team u2: RequestIncomplete Admitting: refused pods "web-1": failed quota: team: ` +
				"must specify limits.cpu for: c1; state it in the object, or let a LimitRange in the namespace give it",
		},
		"what isn't counted yet": {
			got: refused("u1", refusal(quotav1.ReasonUsageUnknown, "status unknown for quota: team (try again in a moment)")),
			want: "ClusterResourceQuota team u1 spec.quota.hard{pods}: UsageUnknown Admitting: " +
				"refused pods: what is used of the quota is not known; look at the quota's condition Ready, which says why",
		},
		"requests that failed, to the administrator": {
			got: refused("u1", refusal(quotav1.ReasonTooMuchInDoubt, "too much in doubt for quota: team")),
			want: "ClusterResourceQuota team u1 spec.quota.hard{pods}: TooMuchInDoubt Admitting: refused pods: too many requests of one " +
				"namespace failed after they were admitted, so the quota admits no more from this namespace until their reservations expire; " +
				"find the namespace in status.doubtful and its objects with kubectl crq reservations team, and correct what refuses them, " +
				"such as another webhook",
		},
		"and to their owner": {
			got: refusedInView("u2", refusal(quotav1.ReasonTooMuchInDoubt, "too much in doubt for quota: team")),
			want: `LocalResourceQuota shop/team u2 status.total.hard{pods}: TooMuchInDoubt Admitting: refused pods "web-1": ` +
				"too much in doubt for quota: team; ask the cluster's administrator which objects are missing, and when their reservations " +
				"expire: kubectl crq reservations team",
		},
		"what a container is called is its owner's business": {
			got: refused("u1", outcomes.Refusal{
				Quota: "team", Namespace: "shop", Kind: "pods", Name: "web-1", Reason: quotav1.ReasonRequestIncomplete,
				Message: "failed quota: team: must specify limits.cpu for: c1",
			}),
			want: "ClusterResourceQuota team u1: RequestIncomplete Admitting: refused pods: a request must state all that " +
				"the quota limits; see kubectl get events -A --field-selector involvedObject.kind=LocalResourceQuota",
		},
		"what would have been refused, to the administrator": {
			got: refused("u1", refusal(quotav1.ReasonWouldExceed, "exceeded quota: team")),
			want: "ClusterResourceQuota team u1 spec.quota.hard{pods}: WouldExceed Admitting: admitted pods: exceeded quota: team; " +
				"with the mode Deny it would be refused: see the metric sharedquota_admission_would_refuse_total, which counts such requests",
		},
		"what would have been refused, to the owner": {
			got: refusedInView("u2", refusal(quotav1.ReasonWouldExceed, "exceeded quota: team")),
			want: `LocalResourceQuota shop/team u2 status.total.hard{pods}: WouldExceed Admitting: admitted pods "web-1": exceeded quota: ` +
				"team; make room, or state what is missing, before the quota's mode becomes Deny",
		},
		"a limit that isn't enforced is reached": {
			got: LevelReached(&quotav1.ClusterResourceQuota{
				ObjectMeta: team.ObjectMeta, Spec: quotav1.ClusterResourceQuotaSpec{Enforcement: quotav1.Enforcement{Mode: quotav1.EnforcementAudit}},
			}, use(quotav1.LevelLimitReached, "10")),
			want: "ClusterResourceQuota team u1 spec.quota.hard{requests.cpu}: LimitReached Counting: requests.cpu: used 10, hard 10; " +
				"requests for more are admitted, because the mode is Audit: " +
				"delete unneeded objects, or raise spec.quota.hard, before you set the mode to Deny",
		},
		"a limit comes near": {
			got: LevelReached(team, use(quotav1.LevelNearLimit, "8")),
			want: "ClusterResourceQuota team u1 spec.quota.hard{requests.cpu}: NearLimit Counting: requests.cpu: used 8, hard 10; " +
				"delete unneeded objects, or raise spec.quota.hard, before requests are refused",
		},
		"it is reached": {
			got: LevelReached(team, use(quotav1.LevelLimitReached, "10")),
			want: "ClusterResourceQuota team u1 spec.quota.hard{requests.cpu}: LimitReached Counting: requests.cpu: used 10, hard 10; " +
				"requests for more are refused: delete unneeded objects, or raise spec.quota.hard",
		},
		"it is below what is used": {
			got: LevelReached(team, use(quotav1.LevelUsedAboveHard, "12")),
			want: "ClusterResourceQuota team u1 spec.quota.hard{requests.cpu}: UsedAboveHard Counting: requests.cpu: used 12, hard 10; " +
				"nothing is removed, and requests for more are refused: delete unneeded objects, or raise spec.quota.hard",
		},
		"requests were admitted while they couldn't be decided": {
			got: AdmittedUnchecked(team, "pods: used 12, hard 10, 2 above it; nothing is removed: delete unneeded objects; set it"),
			want: "ClusterResourceQuota team u1: AdmittedWhileUnavailable Counting: pods: used 12, hard 10, 2 above it; " +
				"nothing is removed: delete unneeded objects; set it",
		},
		"more resources than fit are above their limits": {
			got: AdmittedUnchecked(team, strings.Repeat("x", 2000)+"; nothing is removed: delete unneeded objects; set it"),
			want: "ClusterResourceQuota team u1: AdmittedWhileUnavailable Counting: " + strings.Repeat("x", 968) +
				"…; nothing is removed: delete unneeded objects; set it",
		},
		"a ledger was lost": {
			got:  LedgerLost(team, time.Unix(5000, 0), "it was deleted"),
			want: "ClusterResourceQuota team u1: LedgerLost SealingUntil1970-01-01T01:23:20Z: it was deleted",
		},
		"an owner's limit comes near": {
			got: LevelReachedInView(view, use(quotav1.LevelNearLimit, "8")),
			want: "LocalResourceQuota shop/team u2 status.total.hard{requests.cpu}: NearLimit Counting: " +
				"requests.cpu: used 8 by all namespaces that share the quota, hard 10; delete unneeded objects, " +
				"or ask the cluster's administrator for a higher limit, before requests are refused",
		},
		"an owner's limit is reached": {
			got: LevelReachedInView(view, use(quotav1.LevelLimitReached, "10")),
			want: "LocalResourceQuota shop/team u2 status.total.hard{requests.cpu}: LimitReached Counting: " +
				"requests.cpu: used 10 by all namespaces that share the quota, hard 10; requests for more are refused: " +
				"delete unneeded objects, or ask the cluster's administrator for a higher limit",
		},
		"an owner's limit is below what is used": {
			got: LevelReachedInView(view, use(quotav1.LevelUsedAboveHard, "12")),
			want: "LocalResourceQuota shop/team u2 status.total.hard{requests.cpu}: UsedAboveHard Counting: " +
				"requests.cpu: used 12 by all namespaces that share the quota, hard 10; nothing is removed, and requests for more are refused: " +
				"delete unneeded objects, or ask the cluster's administrator for a higher limit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := &recorder{}
			test.got.Record(recorded)
			if diff := cmp.Diff("Warning "+test.want, recorded.line); diff != "" {
				t.Errorf("event (-want,+got):\n%s", diff)
			}
		})
	}
}

// recorder puts its events into one line.
type recorder struct{ line string }

func (r *recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if note != "%s" {
		panic("a note must not be a format: " + note)
	}
	r.line = eventtype + " " + named(regarding)
	if related != nil {
		r.line += ", " + named(related)
	}
	r.line += ": " + reason + " " + action + ": " + args[0].(string)
}

func named(object runtime.Object) string {
	reference := object.(*corev1.ObjectReference)
	if reference.ResourceVersion != "" {
		panic("each version would be a series of its own")
	}
	name := reference.Name
	if reference.Namespace != "" {
		name = reference.Namespace + "/" + name
	}
	return strings.Join(strings.Fields(reference.Kind+" "+name+" "+string(reference.UID)+" "+reference.FieldPath), " ")
}

func TestALongNoteKeepsWhatToDoNext(t *testing.T) {
	got := refused("u1", refusal(quotav1.ReasonQuotaExceeded, strings.Repeat("ä", maxNote))).Note
	if len(got) > maxNote {
		t.Errorf("got %d bytes, want at most %d", len(got), maxNote)
	}
	if !strings.HasSuffix(got, "ä …; delete unneeded objects in the namespaces that share the quota, or raise spec.quota.hard") {
		t.Errorf("got %s", got)
	}
}
