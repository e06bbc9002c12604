// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// maxViolations is how many violations are kept of each quota, and how many commits that took surge.
const maxViolations = 100

// verdict outlives its quota, so that no violation is ever forgotten.
type verdict struct {
	violations, surged listing
}

// listing keeps the first ones, and counts the others.
type listing struct {
	kept []Violation
	more int
}

// judge looks at what an object's commit raised.
func (b *books) judge(e event, account *account, change corev1.ResourceList) {
	raised := false
	for _, name := range sortedNames(change) {
		if by := change[name]; by.Sign() <= 0 {
			continue
		}
		raised = true
		b.exceeded(account, Violation{
			Quota: account.quota.Name, Revision: e.revision, Key: e.key, Resource: name, Lives: account.lives[name],
		})
	}
	if raised {
		account.admitted++
	}
}

// exceeded notes a commit after which more lives than a limit.
func (b *books) exceeded(account *account, v Violation) {
	hard, enforced := account.enforced[v.Resource]
	if !enforced || v.Lives.Cmp(hard) <= 0 {
		return
	}
	if b.verdicts[v.Quota] == nil {
		b.verdicts[v.Quota] = &verdict{}
	}
	verdict := b.verdicts[v.Quota]
	most := hard.DeepCopy()
	most.Add(account.quota.Spec.Surge.Hard[v.Resource])
	if v.Hard = most; v.Lives.Cmp(most) > 0 {
		verdict.violations.add(v)
		return
	}
	v.Hard = hard
	verdict.surged.add(v)
}

func (r *listing) add(v Violation) {
	if len(r.kept) == maxViolations {
		r.more++
		return
	}
	r.kept = append(r.kept, v)
}

// report tells about every quota. The error names those that can't be judged.
func (b *books) report() (map[string]QuotaReport, error) {
	reports := map[string]QuotaReport{}
	for name, account := range b.accounts {
		reports[name] = account.report()
	}
	for name, verdict := range b.verdicts {
		report := reports[name]
		report.Violations, report.MoreViolations = slices.Clone(verdict.violations.kept), verdict.violations.more
		report.Surged, report.MoreSurged = slices.Clone(verdict.surged.kept), verdict.surged.more
		reports[name] = report
	}
	return reports, b.problems()
}

func (b *books) problems() error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(b.accounts)) {
		if err := b.broken[name]; err != nil {
			problems = append(problems, fmt.Errorf("judging quota %s: %w", name, err))
		}
		for _, resource := range b.uncounted(b.accounts[name]) {
			problems = append(problems, fmt.Errorf("judging quota %s: the judge can't count %s", name, resource))
		}
	}
	return errors.Join(problems...)
}

// uncounted returns what the quota limits and the judge can't count.
func (b *books) uncounted(account *account) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, name := range sortedNames(account.terms.Spec.Hard) {
		if !b.measures.counts(name) || b.offered(name) {
			names = append(names, name)
		}
	}
	return names
}

// offered tells whether ResourceClaims use a resource, because a device class
// offers it.
func (b *books) offered(name corev1.ResourceName) bool {
	for _, resource := range b.offers {
		if string(name) == corev1.DefaultResourceRequestsPrefix+resource {
			return true
		}
	}
	return false
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(slices.Values(quota.ResourceNames(list)))
}
