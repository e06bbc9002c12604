// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// Accounts by which HorizontalPodAutoscalers scale: their controller has one of its own, or that of all controllers. If
// it were refused, not even the pods that fit would be made.
const (
	autoscalerAccount  = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
	controllersAccount = "system:kube-controller-manager"
)

// Parts are the dependencies of a Handler.
type Parts struct {
	Clock    clock.PassiveClock
	Coverage Coverage
	Ledgers  Ledgers
	// Evaluators charge quotas. They must make no call, and know of nothing that is limited by
	// default: each quota is judged alone.
	Evaluators   *evaluation.Evaluators
	Surroundings Surroundings
	// Live reads the workload that a scale or an autoscaler names.
	Live    client.Reader
	Metrics *metrics.Metrics
	Events  *Events
}

// Coverage knows which quotas cover a namespace.
type Coverage interface {
	// Known returns that from memory. It is false if that is unknown.
	Known(namespace string) (namespaces.Covered, bool)
}

// Ledgers are the ledgers that this process knows.
type Ledgers interface {
	// Current returns a quota's ledger as it is known.
	Current(quota string) ledger.State
}

// Surroundings are the objects that admission depends on besides quotas.
type Surroundings interface {
	// Of returns those of a namespace, as they are known.
	Of(ctx context.Context, namespace string) fitting.Surroundings
}

// Handler judges workloads.
type Handler struct {
	Parts

	types *fitting.Types
	turns *semaphore.Weighted
}

// NewHandler makes a Handler.
func NewHandler(parts Parts) *Handler {
	return &Handler{Parts: parts, types: fitting.NewTypes(), turns: newTurns()}
}

// answer is the answer to a request, with its warnings.
type answer struct {
	outcome  metrics.Preflight
	warnings []string
	// denial is empty for a request that is let pass.
	denial string
}

// Handle answers one request. It never refuses one because of a failure of its own.
func (h *Handler) Handle(ctx context.Context, request *admissionv1.AdmissionRequest) (response admission.Response) {
	start := h.Clock.Now()
	given := answer{outcome: metrics.PreflightFailed}
	defer func() {
		if panicked := recover(); panicked != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", panicked), "Let a workload pass without judging it",
				"resource", request.Resource, "namespace", request.Namespace, "name", request.Name, "stack", string(debug.Stack()))
			response = admission.Allowed("").WithWarnings(unjudged(outcomes.JudgeFailed.Text()))
		}
		h.Metrics.Preflighted(given.outcome, h.Clock.Since(start))
	}()
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	given = h.answer(ctx, request)
	if given.denial != "" {
		return admission.Denied(given.denial).WithWarnings(given.warnings...)
	}
	return admission.Allowed("").WithWarnings(given.warnings...)
}

func (h *Handler) answer(ctx context.Context, request *admissionv1.AdmissionRequest) answer {
	covered, known := h.Coverage.Known(request.Namespace)
	if !known {
		return answer{outcome: metrics.PreflightUnjudged}
	}
	judging := slices.DeleteFunc(slices.Clone(covered.Definitions), func(quota definition.Definition) bool {
		return quota.Preflight == quotav1.PreflightOff || quota.Enforcement.Mode == quotav1.EnforcementAudit
	})
	if len(judging) == 0 {
		return answer{outcome: metrics.PreflightFits}
	}
	asked, err := h.subject(ctx, request)
	if err != nil {
		return answer{outcome: metrics.PreflightUnjudged, warnings: []string{unjudged(err.Error())}}
	}
	if asked == nil {
		return answer{outcome: metrics.PreflightUnjudged}
	}
	findings, err := h.judge(ctx, asked, judging, covered)
	if err != nil {
		return answer{outcome: metrics.PreflightUnjudged, warnings: []string{unjudged(err.Error())}}
	}
	if isAutoscaler(request) {
		findings = warned(findings)
	}
	isDryRun := ptr.Deref(request.DryRun, false)
	asked.absent = asked.after.Live == nil && (isDryRun || slices.ContainsFunc(findings, func(f finding) bool { return f.denies() }))
	given := answerOf(asked, findings)
	if given.outcome == metrics.PreflightWarned && !isDryRun {
		h.Events.tell(asked, shortages(findings), given.warnings)
	}
	return given
}

// isAutoscaler reports whether a HorizontalPodAutoscaler's controller asks for a scale.
func isAutoscaler(request *admissionv1.AdmissionRequest) bool {
	user := request.UserInfo.Username
	return request.SubResource == "scale" && (user == autoscalerAccount || user == controllersAccount)
}

// warned returns the findings of which none denies.
func warned(findings []finding) []finding {
	for i := range findings {
		findings[i].mode = quotav1.PreflightWarn
	}
	return findings
}

// answerOf returns the answer for the findings: the strictest one, and the words
// of all.
func answerOf(asked *subject, findings []finding) answer {
	slices.SortStableFunc(findings, worst)
	given := answer{outcome: metrics.PreflightFits}
	var denials []string
	for i := range findings {
		words := findings[i].words(asked)
		if findings[i].denies() {
			denials = append(denials, words...)
			continue
		}
		given.warnings = append(given.warnings, words...)
		switch {
		case findings[i].isShort():
			given.outcome = metrics.PreflightWarned
		case len(words) > 0 && given.outcome == metrics.PreflightFits:
			given.outcome = findings[i].outcome()
		}
	}
	given.warnings = webhookconfig.Warnings(unique(given.warnings), outcomes.MoreFindings)
	if len(denials) > 0 {
		given.outcome, given.denial = metrics.PreflightDenied, strings.Join(unique(denials), "\n")
	}
	return given
}

// unique leaves out repetitions: a LimitRange refuses the same whichever quota is judged.
func unique(words []string) []string {
	var told []string
	for _, word := range words {
		if !slices.Contains(told, word) {
			told = append(told, word)
		}
	}
	return told
}
