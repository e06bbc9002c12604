// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// Keys of the audit annotations of a request that is admitted. The API server puts the name of the webhook's entry and a
// slash before them.
const (
	auditWouldRefuse = "would-refuse"
	auditUnchecked   = "unchecked"
)

// maxAudit bounds an audit annotation.
const maxAudit = 4 << 10

// comments are the remarks on a request that is admitted.
type comments struct {
	warnings, audited, unchecked []string
}

// add adds the message of a would-be refusal, in the way of a mode: as a warning, or for the audit log.
func (c *comments) add(mode quotav1.EnforcementMode, message string, warning *outcomes.Message) {
	if mode == quotav1.EnforcementWarn {
		c.warnings = append(c.warnings, warning.Text(message))
		return
	}
	c.audited = append(c.audited, message)
}

// bounded keeps warnings within the length that the API server passes on.
func bounded(warnings []string) []string {
	warnings = webhookconfig.Warnings(warnings, outcomes.MoreWarnings)
	for i, warning := range warnings {
		warnings[i] = shortened(warning, webhookconfig.MaxWarning)
	}
	return warnings
}

// shortened returns a text of one line: joined errors have one each.
func shortened(text string, most int) string {
	const ellipsis = "..."
	text = webhookconfig.Printable(strings.ReplaceAll(text, "\n", ": "))
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
	why, _, _ := strings.Cut(failed.Result.Message, outcomes.TryAgain)
	message := outcomes.NotCheckedByAny.Text(strings.TrimRight(why, ":;"))
	response := admission.Allowed("").WithWarnings(shortened(message, webhookconfig.MaxWarning))
	annotate(&response, auditUnchecked, []string{message})
	return response
}
