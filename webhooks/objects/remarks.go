// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	kubeadmission "k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/history"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/report"
)

// Keys of the audit annotations of a request that is admitted. The API server puts the name of the webhook's entry and a
// slash before them.
const (
	auditWouldRefuse = "would-refuse"
	auditUnchecked   = "unchecked"
)

// maxAudit bounds an audit annotation.
const maxAudit = 4 << 10

// comments are what a request that is admitted is told.
type comments struct {
	warnings, audited, unchecked []string
}

// remarkOn adds to the answer for a request that is admitted what the quotas say of it, in the way that the mode of
// each resource asks for.
func (h *Handler) remarkOn(
	request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, decided outcome, response admission.Response,
) (metrics.Outcome, admission.Response) {
	var said comments
	granted, _ := decided.decision.(ledger.Granted)
	for _, remark := range granted.Remarks {
		h.comment(&said, request, attributes, decided, remark)
	}
	for _, remark := range decided.passedOver {
		h.comment(&said, request, attributes, decided, remark)
	}
	for _, charge := range decided.amounts {
		if charge.Incomplete != "" {
			h.commentIncomplete(&said, request, attributes, named(decided.covered.Definitions, charge.Quota), charge)
		}
	}
	response.Warnings = append(response.Warnings, bounded(said.warnings)...)
	annotate(&response, auditWouldRefuse, said.audited)
	annotate(&response, auditUnchecked, said.unchecked)
	if len(said.unchecked) > 0 {
		return metrics.Unchecked, response
	}
	return metrics.Allowed, response
}

func (h *Handler) comment(
	said *comments, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, decided outcome, remark ledger.Remark,
) {
	quota := named(decided.covered.Definitions, remark.Quota)
	switch refusal := remark.Refusal.(type) {
	case ledger.Denied:
		switch remark.Kind {
		case ledger.Near:
			said.warnings = append(said.warnings, nearMessages(refusal)...)
		case ledger.Unenforced:
			for mode, part := range byMode(quota.Enforcement, refusal) {
				h.count(attributes, remark.Quota, metrics.Mode(mode), part.Resources())
				said.add(mode, exceededMessage(part))
				h.tellOf(request, attributes, report.Refusal{
					Quota: remark.Quota, Reason: quotav1.ReasonWouldExceed, Resource: first(part.Requested),
				}, exceededMessage(part))
			}
		default: // what is tried concerns nobody but the administrator, who reads it in the status
			h.count(attributes, remark.Quota, metrics.ModeTrial, refusal.Resources())
		}
	case ledger.Undecided:
		if remark.Kind == ledger.Unchecked {
			said.unchecked = append(said.unchecked, uncheckedMessage(refusal))
			said.warnings = append(said.warnings, uncheckedMessage(refusal))
			return
		}
		if limited := limitedBy(quota, refusal.Resources); len(limited) > 0 {
			said.add(strictest(quota.Enforcement, limited), unknownMessage(refusal))
		}
	}
}

// limitedBy returns those of the resources that the quota limits, and doesn't only try to.
func limitedBy(quota *definition.Definition, names []corev1.ResourceName) []corev1.ResourceName {
	return slices.DeleteFunc(slices.Clone(names), func(name corev1.ResourceName) bool {
		_, limited := quota.Limits.Hard[name]
		return !limited
	})
}

func (h *Handler) commentIncomplete(
	said *comments, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes,
	quota *definition.Definition, charge evaluation.Charge,
) {
	limited := limitedBy(quota, charge.Missing)
	if len(limited) == 0 {
		return
	}
	for _, name := range limited {
		h.count(attributes, charge.Quota, metrics.Mode(quota.Enforcement.Of(name)), []corev1.ResourceName{name})
	}
	said.add(strictest(quota.Enforcement, limited), charge.Incomplete)
	h.tellOf(request, attributes, report.Refusal{
		Quota: charge.Quota, Reason: quotav1.ReasonWouldExceed, Resource: limited[0],
	}, charge.Incomplete)
}

// count counts a request that would have been refused.
func (h *Handler) count(attributes kubeadmission.Attributes, quota string, mode metrics.Mode, resources []corev1.ResourceName) {
	if attributes.IsDryRun() {
		return
	}
	for _, name := range resources {
		h.Metrics.WouldRefuse(quota, name, mode)
	}
}

// add says in the way of a mode what would have been refused.
func (c *comments) add(mode quotav1.EnforcementMode, message string) {
	if mode == quotav1.EnforcementWarn {
		c.warnings = append(c.warnings, message+" ("+admittedText+")")
		return
	}
	c.audited = append(c.audited, message)
}

const admittedText = "admitted, because the quota only warns"

// byMode splits a denial by the modes of its resources.
func byMode(enforcement definition.Enforcement, refusal ledger.Denied) map[quotav1.EnforcementMode]ledger.Denied {
	resources := map[quotav1.EnforcementMode][]corev1.ResourceName{}
	for _, name := range refusal.Resources() {
		resources[enforcement.Of(name)] = append(resources[enforcement.Of(name)], name)
	}
	parts := map[quotav1.EnforcementMode]ledger.Denied{}
	for mode, names := range resources {
		parts[mode] = ledger.Denied{
			Quota: refusal.Quota, Requested: quota.Mask(refusal.Requested, names),
			Used: quota.Mask(refusal.Used, names), Limited: quota.Mask(refusal.Limited, names),
		}
	}
	return parts
}

// strictest returns Warn if that is the mode of any of the resources, and otherwise Audit.
func strictest(enforcement definition.Enforcement, names []corev1.ResourceName) quotav1.EnforcementMode {
	if slices.ContainsFunc(names, func(name corev1.ResourceName) bool { return enforcement.Of(name) == quotav1.EnforcementWarn }) {
		return quotav1.EnforcementWarn
	}
	return quotav1.EnforcementAudit
}

// nearMessages says of each resource how much of its limit is taken with the request.
func nearMessages(near ledger.Denied) []string {
	names := near.Resources()
	messages := make([]string, 0, len(names))
	for _, name := range names {
		taken, limit := near.Used[name].DeepCopy(), near.Limited[name]
		taken.Add(near.Requested[name])
		messages = append(messages,
			fmt.Sprintf("quota %s: %s of %s is used with this request: %s", near.Quota, taken.String(), limit.String(), name))
	}
	return messages
}

// bounded keeps warnings within what the API server passes on.
func bounded(warnings []string) []string {
	warnings = report.Warnings(warnings, "warnings")
	for i, warning := range warnings {
		warnings[i] = shortened(warning, report.MaxWarning)
	}
	return warnings
}

// shortened returns a text of one line: joined errors have one each.
func shortened(text string, most int) string {
	const ellipsis = "..."
	text = report.Printable(strings.ReplaceAll(text, "\n", ": "))
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}

func annotate(response *admission.Response, key string, messages []string) {
	if len(messages) == 0 {
		return
	}
	if response.AuditAnnotations == nil {
		response.AuditAnnotations = map[string]string{}
	}
	response.AuditAnnotations[key] = shortened(strings.Join(messages, "; "), maxAudit)
}

// admitted returns the answer for a request that couldn't be decided, and is admitted because the entry says so.
func admitted(failed admission.Response) admission.Response {
	message := "not checked against the quotas of this namespace, and admitted: " + failed.Result.Message
	response := admission.Allowed("").WithWarnings(shortened(message, report.MaxWarning))
	annotate(&response, auditUnchecked, []string{message})
	return response
}

// record remembers what didn't fit.
func (h *Handler) record(request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, decided outcome) {
	if h.History == nil || attributes.IsDryRun() {
		return
	}
	switch decision := decided.decision.(type) {
	case ledger.Denied:
		h.recordDenied(request, attributes, decided, decision, false)
	case ledger.Granted:
		for _, remark := range decision.Remarks {
			if refusal, denied := remark.Refusal.(ledger.Denied); denied && remark.Kind != ledger.Near {
				h.recordDenied(request, attributes, decided, refusal, remark.Kind == ledger.Tried)
			}
		}
		for _, charge := range decided.amounts {
			h.recordMissing(request, attributes, named(decided.covered.Definitions, charge.Quota), charge.Missing)
		}
	}
}

func (h *Handler) recordDenied(
	request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, decided outcome, refusal ledger.Denied, tried bool,
) {
	limits := named(decided.covered.Definitions, refusal.Quota).Limits
	h.remember(request, attributes, history.Refusal{
		Quota: refusal.Quota, UID: limits.Quota, Tried: tried, Trial: triedOf(limits, tried),
		Needed: quota.Add(refusal.Used, refusal.Requested), Hard: refusal.Limited,
	})
}

// triedOf returns all limits that are tried, if a refusal is by one of these.
func triedOf(limits ledger.Limits, tried bool) corev1.ResourceList {
	if !tried {
		return nil
	}
	return limits.Trial
}

// recordMissing remembers that a request didn't say how much it asks for, which it must for what is limited, and for what
// is tried.
func (h *Handler) recordMissing(
	request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, quota *definition.Definition, missing []corev1.ResourceName,
) {
	for _, tried := range []bool{false, true} {
		limits := quota.Limits.Hard
		if tried {
			limits = quota.Limits.Trial
		}
		var names []corev1.ResourceName
		for _, name := range missing {
			if _, has := limits[name]; has {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			h.remember(request, attributes, history.Refusal{
				Quota: quota.Quota.Name, UID: quota.Limits.Quota, Tried: tried, Trial: triedOf(quota.Limits, tried), Missing: names,
			})
		}
	}
}

// recordIncomplete remembers a request that was refused because it doesn't say how much it asks for.
func (h *Handler) recordIncomplete(
	request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, definitions []definition.Definition,
	refusal *evaluation.Refusal,
) {
	at := slices.IndexFunc(definitions, func(d definition.Definition) bool { return d.Quota.Name == refusal.Quota })
	if h.History == nil || attributes.IsDryRun() || at < 0 {
		return
	}
	h.remember(request, attributes, history.Refusal{
		Quota: refusal.Quota, UID: definitions[at].Limits.Quota, Missing: missingIn(refusal.Message, definitions[at].Limits.Hard),
	})
}

// missingIn reads which resources a request doesn't specify, as in "must specify limits.cpu for: c1; limits.memory for: c1".
func missingIn(message string, hard corev1.ResourceList) []corev1.ResourceName {
	_, specify, _ := strings.Cut(message, "must specify ")
	var missing []corev1.ResourceName
	for part := range strings.SplitSeq(specify, "; ") {
		name, _, _ := strings.Cut(part, " for: ")
		if _, limited := hard[corev1.ResourceName(name)]; limited {
			missing = append(missing, corev1.ResourceName(name))
		}
	}
	return missing
}

func (h *Handler) remember(request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, refusal history.Refusal) {
	refusal.Namespace = request.Namespace
	if controller := controllerOf(attributes); controller != nil {
		refusal.Kind, refusal.Name = controller.Kind, controller.Name
	}
	h.History.Refused(h.Clock.Now(), refusal)
}
