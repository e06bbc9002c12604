// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/history"
)

// noted has the edits that were noted, each in a line.
type noted []string

func (n *noted) Edited(edit history.Edit) {
	line := fmt.Sprintf("%s %s %d", edit.By, edit.Quota, edit.Generation)
	for _, change := range edit.Changes {
		line += fmt.Sprintf(" %s %s>%s", change.Field, change.From, change.To)
	}
	*n = append(*n, line)
}

func TestEditsAreNoted(t *testing.T) {
	at := func(generation int64, quota *quotav1.ClusterResourceQuota) *quotav1.ClusterResourceQuota {
		quota.Generation = generation
		return quota
	}
	labelled := func(quota *quotav1.ClusterResourceQuota) *quotav1.ClusterResourceQuota {
		quota.Labels = map[string]string{"a": "b"}
		return quota
	}
	for name, test := range map[string]struct {
		previous, current *quotav1.ClusterResourceQuota
		dryRun            bool
		ledgerErr         error
		want              []string
	}{
		"a limit rises":                {previous: at(4, quotaOfPods("3")), current: at(5, quotaOfPods("5")), want: []string{"olga team 5 hard 3>5"}},
		"a limit falls":                {previous: at(4, quotaOfPods("3")), current: at(5, quotaOfPods("2")), want: []string{"olga team 5 hard 3>2"}},
		"it isn't for good":            {previous: at(4, quotaOfPods("3")), current: at(5, quotaOfPods("5")), dryRun: true},
		"it is invalid":                {previous: at(4, quotaOfPods("3")), current: at(5, quotaOfPods("-5"))},
		"a lower limit can't be bound": {previous: at(4, quotaOfPods("3")), current: at(5, quotaOfPods("2")), ledgerErr: errors.New("no")},
		"the spec stays":               {previous: at(4, quotaOfPods("3")), current: at(4, labelled(quotaOfPods("3")))},
		"it is deleted":                {previous: at(4, quotaOfPods("3")), current: leaving(at(5, quotaOfPods("5")))},
	} {
		t.Run(name, func(t *testing.T) {
			around, clock, told := &surroundings{}, clocktesting.NewFakeClock(time.Unix(0, 0)), &noted{}
			validator := NewValidator(NewWarner(around, evaluation.New(clock, evaluation.ClaimSources{}), around, nil),
				NewFences(clock, &ledgers{err: test.ledgerErr}, time.Minute), NewEdits(clock, told))
			ctx := admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				UserInfo: authenticationv1.UserInfo{Username: "olga"}, DryRun: ptr.To(test.dryRun),
			}})
			_, err := validator.ValidateUpdate(ctx, test.previous, test.current)
			if wantErr := test.ledgerErr != nil || name == "it is invalid"; (err != nil) != wantErr {
				t.Errorf("error: %v", err)
			}
			if diff := cmp.Diff(test.want, []string(*told), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("edits (-want,+got):\n%s", diff)
			}
			*told = noted{}
			if _, err := validator.ValidateCreate(ctx, quotaOfPods("3")); err != nil || len(*told) > 0 {
				t.Errorf("a creation is noted as %v: %v", *told, err)
			}
		})
	}
}
