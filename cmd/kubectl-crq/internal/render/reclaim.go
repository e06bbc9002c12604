// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedquota/shared-quota-operator/internal/report"
)

// ReclaimKind is the kind of a Reclaim, where it is printed as an object.
const ReclaimKind = "Reclaim"

// Findings, as programs read them.
const (
	// PodsIdle: pods have been pending or crash-looping for long.
	PodsIdle = "PodsIdle"
	// PodsEnded: pods have ended, and still count. No Job made them.
	PodsEnded = "PodsEnded"
	// JobFinished: the Job has ended, and it or its pods still count.
	JobFinished = "JobFinished"
	// RolloutStuck: several ReplicaSets of a Deployment have pods, and it makes no progress.
	RolloutStuck = "RolloutStuck"
	// ReplicaSetEmpty: the ReplicaSet has no pods and wants none.
	ReplicaSetEmpty = "ReplicaSetEmpty"
	// ServiceWithoutEndpoints: no endpoint answers behind the Service.
	ServiceWithoutEndpoints = "ServiceWithoutEndpoints"
	// LoadBalancerWithoutEndpoints: nor behind the load balancer.
	LoadBalancerWithoutEndpoints = "LoadBalancerWithoutEndpoints"
	// ClaimUnused: no pod uses the claim.
	ClaimUnused = "ClaimUnused"
	// ClaimUnbound: the claim has no volume.
	ClaimUnbound = "ClaimUnbound"
)

// Reclaim has the objects that hold quota and do nothing.
type Reclaim struct {
	metav1.TypeMeta `json:",inline"`
	Namespaces      []ReclaimNamespace `json:"namespaces"`
	// LookedFor are the causes that were looked for, if nothing was found.
	LookedFor []string `json:"lookedFor,omitempty"`
	Notes     []string `json:"notes"`
}

// ReclaimNamespace has the objects that were found in one namespace.
type ReclaimNamespace struct {
	Namespace string `json:"namespace"`
	// Tightest is the resource of which least is left; the findings that free most of it come first.
	Tightest Tightest  `json:"tightest"`
	Findings []Finding `json:"findings"`
}

// Tightest is a resource of a quota, and how full it is.
type Tightest struct {
	Quota    string              `json:"quota"`
	Resource corev1.ResourceName `json:"resource"`
	// Percent is the used and reserved part of the limit.
	Percent int `json:"percent"`
}

// Finding is an object that holds quota and does nothing.
type Finding struct {
	ObjectName `json:",inline"`
	Finding    string `json:"finding"`
	// Message describes the object's idleness.
	Message string `json:"message"`
	// Since is when it began at the latest; nil if nothing says.
	Since *metav1.Time `json:"since,omitempty"`
	// Frees are the amounts that each quota would get back.
	Frees []Freed `json:"frees"`
	// Command would free it. It has not been executed. It is empty if none is known to be safe.
	Command string `json:"command,omitempty"`
	// Caution describes the command's other effects; without a command, it is the advice.
	Caution string `json:"caution,omitempty"`
}

// Freed is the amount that a quota would get back.
type Freed struct {
	// Quota is crq/NAME or quota/NAME.
	Quota   string              `json:"quota"`
	Amounts corev1.ResourceList `json:"amounts"`
}

// ReclaimText returns the findings of each namespace.
func ReclaimText(of *Reclaim, style Style) string {
	MakeVisible(of)
	var text strings.Builder
	if len(of.Namespaces) == 0 {
		text.WriteString("Nothing was found that holds quota and does nothing.\n")
	}
	for i, what := range of.LookedFor {
		if i == 0 {
			text.WriteString("Looked for:\n")
		}
		text.WriteString(bullet(style.wrap(what, indent)))
	}
	for i := range of.Namespaces {
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(namespaceText(&of.Namespaces[i], style))
	}
	return text.String() + notesText(of.Notes, style)
}

func namespaceText(of *ReclaimNamespace, style Style) string {
	count := fmt.Sprintf("%d findings", len(of.Findings))
	if len(of.Findings) == 1 {
		count = "1 finding"
	}
	var text strings.Builder
	title := fmt.Sprintf("%s %s: %s.", style.paint(bold, "Namespace"), of.Namespace, count)
	if most := of.Tightest; most.Resource != "" {
		title += fmt.Sprintf(" Tightest is %s of %s, %d%% used.", most.Resource, most.Quota, most.Percent)
	}
	text.WriteString(style.wrap(title, ""))
	for i := range of.Findings {
		finding := &of.Findings[i]
		text.WriteString("\n" + style.wrap(style.paint(bold, finding.String())+": "+finding.Message, ""))
		for _, freed := range finding.Frees {
			text.WriteString(style.wrap("frees "+report.Amounts(freed.Amounts)+" of "+freed.Quota, indent))
		}
		text.WriteString(commandText(finding, style))
	}
	return text.String()
}

// commandText has the command on one line, to be copied.
func commandText(of *Finding, style Style) string {
	text, title := "", "No command:"
	if of.Command != "" {
		text, title = indent+style.paint(green, of.Command)+"\n", "Caution:"
	}
	if of.Caution == "" {
		return text
	}
	return text + style.wrap(style.paint(yellow, title)+" "+of.Caution, indent)
}
