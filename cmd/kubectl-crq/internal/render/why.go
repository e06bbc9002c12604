// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/report"
)

// WhyKind is the kind of a Why, where it is printed as an object.
const WhyKind = "Why"

// Cause is why an object doesn't come up.
type Cause string

// Causes, as programs read them.
const (
	// NotRefused: nothing is refused.
	NotRefused Cause = "NotRefused"
	// FitsNow: a quota refused it, and has room now.
	FitsNow Cause = "FitsNow"
	// QuotaShort: quotas leave too little.
	QuotaShort Cause = "QuotaShort"
	// QuotaRefused: a quota refuses it, independently of its rest.
	QuotaRefused Cause = "QuotaRefused"
	// OtherRefused: something else than a quota refuses it.
	OtherRefused Cause = "OtherRefused"
	// NotCounted: the rest isn't known yet.
	NotCounted Cause = "NotCounted"
)

// Why says why an object doesn't come up, and lists the remedies.
type Why struct {
	metav1.TypeMeta `json:",inline"`
	Namespace       string     `json:"namespace"`
	Subject         ObjectName `json:"subject"`
	// Result is "fits", "does not fit" or "unknown".
	Result string `json:"result"`
	Cause  Cause  `json:"cause"`
	// Summary is the answer in a sentence.
	Summary string `json:"summary"`
	// Chain begins with the subject and goes on with the objects that its controller made.
	Chain []WhyLink `json:"chain"`
	// Pods are those of the subject that exist and aren't ready.
	Pods []WhyPods `json:"pods"`
	// Quotas are the quotas that are short, or that refused.
	Quotas  []WhyQuota   `json:"quotas"`
	Waiting []WhyWaiting `json:"waiting"`
	// Remedies are changes that would make it fit.
	Remedies []string `json:"remedies"`
	Notes    []string `json:"notes"`
}

// ObjectName names an object of the namespace.
type ObjectName struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// String is as people type it: "Deployment/web".
func (o ObjectName) String() string { return o.Kind + "/" + o.Name }

// WhyLink is an object on the way from the subject to its pods.
type WhyLink struct {
	ObjectName `json:",inline"`
	State      string `json:"state"`
	// Refusals that its controller met, the latest first.
	Refusals []WhyRefusal `json:"refusals,omitempty"`
	// Woken is when the operator told the controller last that there is room.
	Woken *metav1.Time `json:"woken,omitempty"`
}

// WhyRefusal is refused requests of one controller, by one quota and for one reason.
type WhyRefusal struct {
	// Reason is QuotaExceeded, RequestIncomplete, UsageUnknown, TooMuchInDoubt, NotCovered or RefusedElsewhere.
	Reason string `json:"reason"`
	// Quota is crq/NAME or quota/NAME; empty if no quota refused. By then names the component that did.
	Quota   string      `json:"quota,omitempty"`
	By      string      `json:"by,omitempty"`
	Message string      `json:"message"`
	First   metav1.Time `json:"first"`
	Last    metav1.Time `json:"last"`
	// Count is 0 if it is unknown.
	Count int32 `json:"count,omitempty"`
}

// WhyPods are pods in one state.
type WhyPods struct {
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	Count   int    `json:"count"`
	// Example is the name of one of them.
	Example string `json:"example"`
}

// Text is the state and the message.
func (p WhyPods) Text() string {
	if p.Message == "" {
		return p.State
	}
	return p.State + ": " + p.Message
}

// WhyQuota has the subject's need of a quota, and its holders.
type WhyQuota struct {
	// Quota is crq/NAME or quota/NAME.
	Quota string `json:"quota"`
	// Unread: the user may not read the ClusterResourceQuota, so that other namespaces aren't known.
	Unread bool     `json:"unread,omitempty"`
	Rows   []WhyRow `json:"resources"`
	// Surge of the quota, if pods of the subject need it, or if others hold it; without the user's right to read the
	// ClusterResourceQuota, it has the workloads of this namespace alone.
	Surge *quotav1.SurgeStatus `json:"surge,omitempty"`
}

// WhyRow is one resource of a quota. Amounts that have not been counted are left out.
type WhyRow struct {
	Resource corev1.ResourceName `json:"resource"`
	// One is the cost of the next object, and All the need of all missing ones at the worst moment.
	One       resource.Quantity  `json:"one"`
	All       resource.Quantity  `json:"all"`
	Available *resource.Quantity `json:"available,omitempty"`
	Short     *resource.Quantity `json:"short,omitempty"`
	// Hard, Used and Here are the limit, the use of all namespaces, and the use of this one.
	Hard resource.Quantity  `json:"hard"`
	Used *resource.Quantity `json:"used,omitempty"`
	Here *resource.Quantity `json:"here,omitempty"`
	// Holders are the namespaces that use most of the resource, if it is short, and More how many others use any.
	Holders []WhyHolder `json:"holders,omitempty"`
	More    int         `json:"more,omitempty"`
	// Largest are the pods and claims of this namespace that use most of the short resource.
	Largest []WhyUser `json:"largest,omitempty"`
}

// IsShort reports whether too little is left.
func (r *WhyRow) IsShort() bool { return r.Short != nil && !r.Short.IsZero() }

// WhyHolder is the use of a namespace.
type WhyHolder struct {
	Namespace string            `json:"namespace"`
	Used      resource.Quantity `json:"used"`
}

// WhyUser is the use of an object.
type WhyUser struct {
	ObjectName `json:",inline"`
	Used       resource.Quantity `json:"used"`
}

// WhyWaiting is that the operator knows that a controller waits for room.
type WhyWaiting struct {
	ObjectName `json:",inline"`
	Quota      string              `json:"quota"`
	Since      metav1.Time         `json:"since"`
	Short      corev1.ResourceList `json:"short,omitempty"`
	// Woken: the operator wakes it if there is room.
	Woken bool `json:"woken"`
}

// IsShort reports whether the quota leaves too little of any resource.
func (q WhyQuota) IsShort() bool {
	return slices.ContainsFunc(q.Rows, func(row WhyRow) bool { return row.IsShort() })
}

// IsUncounted reports whether the rest of a resource isn't known.
func (q WhyQuota) IsUncounted() bool {
	return slices.ContainsFunc(q.Rows, func(row WhyRow) bool { return row.Available == nil })
}

// Shared returns the name of the ClusterResourceQuota, if it is one.
func (q WhyQuota) Shared() (string, bool) { return strings.CutPrefix(q.Quota, sharedPrefix) }

// HeldBy names the namespaces that use most of the short resources.
func (q WhyQuota) HeldBy(quota *quotav1.ClusterResourceQuota, most int) {
	if q.Surge != nil && quota.Status.Surge != nil {
		q.Surge.Workloads = quota.Status.Surge.Workloads
	}
	for i := range q.Rows {
		row := &q.Rows[i]
		if !row.IsShort() {
			continue
		}
		parts := heaviest(quota, row.Resource)
		for _, one := range parts[:min(most, len(parts))] {
			row.Holders = append(row.Holders, WhyHolder{Namespace: one.namespace, Used: one.used})
		}
		row.More = max(0, len(parts)-most)
	}
}

// WhyText returns the answer, and then the way to it: the chain, the quotas, their holders, and the remedies.
func WhyText(of *Why, style Style, now time.Time) string {
	MakeVisible(of)
	var text strings.Builder
	text.WriteString(style.wrap(of.Summary, "") + "\n")
	for i := range of.Chain {
		text.WriteString(linkText(&of.Chain[i], style, now))
	}
	for _, pods := range of.Pods {
		text.WriteString(podsText(pods, style))
	}
	for i := range of.Quotas {
		text.WriteString(quotaText(&of.Quotas[i], of.Namespace, style, now))
	}
	for _, waiting := range of.Waiting {
		text.WriteString("\n" + style.wrap(waitingText(waiting, now), ""))
	}
	titles := map[Cause]string{NotRefused: "To look further:", NotCounted: "To find out:"}
	title := cmp.Or(titles[of.Cause], "To make it fit:")
	if len(of.Remedies) > 0 {
		text.WriteString("\n" + style.paint(bold, title) + "\n")
	}
	for _, remedy := range of.Remedies {
		text.WriteString(bullet(style.wrap(remedy, indent)))
	}
	return text.String() + notesText(of.Notes, style)
}

// bullet puts a dash before the first line of a wrapped text.
func bullet(wrapped string) string { return "- " + strings.TrimPrefix(wrapped, indent) }

func linkText(link *WhyLink, style Style, now time.Time) string {
	var text strings.Builder
	text.WriteString(style.wrap(style.paint(bold, link.String())+": "+link.State, ""))
	for _, refusal := range link.Refusals {
		by := cmp.Or(refusal.Quota, refusal.By, "a rule that no quota covers")
		text.WriteString(style.wrap(fmt.Sprintf("refused by %s %s:", by, whenText(refusal, now)), indent))
		text.WriteString(style.wrap(refusal.Message, indent+indent))
	}
	if link.Woken != nil {
		text.WriteString(style.wrap("woken "+age(*link.Woken, now)+" ago, because there was room", indent))
	}
	return text.String()
}

func whenText(refusal WhyRefusal, now time.Time) string {
	if refusal.Count == 0 {
		return "for " + age(refusal.Last, now)
	}
	return seenText(refusal.Count, refusal.First.Time, refusal.Last.Time, now, " ago")
}

func podsText(pods WhyPods, style Style) string {
	if pods.Count == 1 {
		return style.wrap("Pod/"+pods.Example+": "+pods.Text(), "")
	}
	return style.wrap(fmt.Sprintf("%d of its pods, such as %s: %s", pods.Count, pods.Example, pods.Text()), "")
}

func quotaText(of *WhyQuota, namespace string, style Style, now time.Time) string {
	title := style.paint(bold, of.Quota) + ", a ResourceQuota of this namespace alone:"
	if strings.HasPrefix(of.Quota, sharedPrefix) {
		title = style.paint(bold, of.Quota) + ", shared by namespaces:"
	}
	text := "\n" + title + "\n" + needsTable(of.Rows, style).text(indent)
	if holders := holdersTable(of, namespace, style); len(holders.rows) > 1 {
		text += "\n" + holders.text(indent)
	}
	if of.Surge != nil {
		text += "\n" + surgeTable(of.Surge, style, "SURGE", "TAKEN", "OF", "LEFT").text(indent)
		if len(of.Surge.Workloads) > 0 {
			text += "\n" + surgingTable(of.Surge.Workloads, style, now, "SURGE HELD BY", "IN NAMESPACE", "FOR").text(indent)
		}
	}
	if of.Unread {
		text += style.wrap("You can't read "+of.Quota+": which other namespaces hold it can't be seen.", indent)
	}
	if largest := largestTable(of.Rows, style); len(largest.rows) > 1 {
		text += "\n" + largest.text(indent)
	}
	return text
}

// sharedPrefix begins the name of a ClusterResourceQuota.
const sharedPrefix = "crq/"

func needsTable(rows []WhyRow, style Style) *table {
	made := style.table("RESOURCE", "NEXT NEEDS", "ALL NEED", "AVAILABLE", "SHORT OF")
	for i := range rows {
		row := &rows[i]
		short := plain("-")
		switch {
		case row.Short == nil:
			short = plain(unknown)
		case row.IsShort():
			short = style.cell(red, row.Short.String())
		}
		cells := plains(string(row.Resource), row.One.String(), row.All.String(), quantityText(row.Available))
		made.add(append(cells, short)...)
	}
	return made
}

// holdersTable has the namespaces that hold most of the short resources. If those can't be read, it has this one, and
// all together.
func holdersTable(of *WhyQuota, namespace string, style Style) *table {
	made := style.table("HELD", "BY NAMESPACE", "USED", "OF HARD")
	for i := range of.Rows {
		row := &of.Rows[i]
		if !row.IsShort() {
			continue
		}
		name := string(row.Resource)
		add := func(who string, used resource.Quantity) {
			share := Figure{Used: used, Hard: row.Hard, Counted: true}
			made.add(plains(name, who, used.String(), share.percentText())...)
		}
		for _, holder := range row.Holders {
			who := holder.Namespace
			if who == namespace {
				who += " (this one)"
			}
			add(who, holder.Used)
		}
		if len(row.Holders) == 0 && row.Here != nil {
			add(namespace+" (this one)", *row.Here)
			if others, shared := row.others(); shared {
				add("all others", others)
			}
		}
		if row.More > 0 {
			made.add(plains(name, fmt.Sprintf("%d more", row.More), "", "")...)
		}
	}
	return made
}

// others returns the sum of other namespaces' use.
func (r *WhyRow) others() (resource.Quantity, bool) {
	if r.Used == nil || r.Here == nil {
		return resource.Quantity{}, false
	}
	rest := r.Used.DeepCopy()
	rest.Sub(*r.Here)
	return rest, rest.Sign() > 0
}

func largestTable(rows []WhyRow, style Style) *table {
	made := style.table("MOST HERE", "OBJECT", "USES")
	for i := range rows {
		for _, user := range rows[i].Largest {
			made.add(plains(string(rows[i].Resource), user.String(), user.Used.String())...)
		}
	}
	return made
}

func quantityText(amount *resource.Quantity) string {
	if amount == nil {
		return unknown
	}
	return amount.String()
}

func waitingText(waiting WhyWaiting, now time.Time) string {
	text := fmt.Sprintf("The operator knows that %s has waited for %s for %s",
		waiting.ObjectName, waiting.Quota, age(waiting.Since, now))
	if waiting.Woken {
		text += ", and wakes it if there is room"
	}
	if len(waiting.Short) == 0 {
		return text + "."
	}
	return text + ". It was short of " + report.Amounts(waiting.Short) + "."
}
