// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// answer returns the answer for the situation.
func (d *diagnosis) answer() (*render.Why, error) {
	found := &render.Why{
		Namespace: d.Namespace, Subject: render.ObjectName{Kind: d.Subject.Kind, Name: d.Subject.Name},
		Chain: d.chain(), Pods: d.pods(), Quotas: []render.WhyQuota{}, Waiting: []render.WhyWaiting{}, Remedies: []string{},
	}
	if d.lacks() {
		found.Quotas = append(found.Quotas, d.quotas()...)
		found.Waiting = append(found.Waiting, d.waiting()...)
		if err := d.findLargest(found.Quotas); err != nil {
			return nil, err
		}
	}
	d.conclude(found)
	found.Result = string(outcomeOf(found.Cause))
	found.Notes = append([]string{}, d.allNotes()...)
	return found, nil
}

// isBlind reports whether something may be refused, or was refused, that the user can't see.
func (d *diagnosis) isBlind() bool {
	_, unseen := d.unseen()
	_, refused := d.latest()
	return unseen || d.demand.Unpriced != "" || !refused && (d.lacksQuotas() || d.lacksEvents())
}

func (d *diagnosis) lacksEvents() bool { return slices.Contains(d.Forbidden, "events") }

// lacksQuotas reports whether a quota may be there that the user may not read.
func (d *diagnosis) lacksQuotas() bool {
	return slices.Contains(d.Forbidden, viewResource) || slices.Contains(d.Forbidden, "resourcequotas")
}

func outcomeOf(cause render.Cause) fitting.Outcome {
	switch cause {
	case render.NotRefused, render.FitsNow:
		return fitting.Fits
	case render.NotCounted:
		return fitting.Unknown
	default:
		return fitting.DoesNot
	}
}

// chain returns the links with the refusals of each.
func (d *diagnosis) chain() []render.WhyLink {
	if len(d.Chain) == 0 {
		return []render.WhyLink{{
			ObjectName: render.ObjectName{Kind: d.Subject.Kind, Name: d.Subject.Name},
			State:      "doesn't exist", Refusals: d.refusals(0),
		}}
	}
	links := make([]render.WhyLink, 0, len(d.Chain))
	for i, link := range d.Chain {
		made := render.WhyLink{ObjectName: nameOf(link), State: stateOf(link), Woken: woken(link)}
		if i == len(d.Chain)-1 && d.alike > 0 {
			made.State += "; " + plural(d.alike, "other pod") + " of it likewise"
		}
		if d.lacks() {
			made.Refusals = d.refusals(i)
		}
		links = append(links, made)
	}
	return links
}

func (d *diagnosis) refusals(link int) []render.WhyRefusal {
	made := make([]render.WhyRefusal, 0, len(d.refused[link]))
	for _, refused := range d.refused[link] {
		refusal := render.WhyRefusal{
			Reason: refused.Reason, Message: refused.Text, Count: refused.Count,
			First: metav1.NewTime(refused.First), Last: metav1.NewTime(refused.Last),
		}
		switch {
		case refused.Quota != "":
			refusal.Quota = d.refuser(refused.Words)
		case refused.Reason == reading.RefusedElsewhere:
			refusal.By, _ = d.elsewhere(refused.Text)
		}
		made = append(made, refusal)
	}
	return made
}

// pods returns those of the subject's pods that exist and aren't ready, the most frequent state first.
func (d *diagnosis) pods() []render.WhyPods {
	found := []render.WhyPods{}
	for i := range d.Pods {
		pod := &d.Pods[i]
		if !d.isOwn(pod) {
			continue
		}
		state, message, troubled := podTrouble(pod)
		if !troubled {
			continue
		}
		at := slices.IndexFunc(found, func(known render.WhyPods) bool { return known.State == state && known.Message == message })
		if at < 0 {
			found = append(found, render.WhyPods{State: state, Message: message, Count: 1, Example: pod.Name})
			continue
		}
		found[at].Count++
	}
	slices.SortStableFunc(found, func(a, b render.WhyPods) int { return b.Count - a.Count })
	// The chain has the refusals of a pod.
	if len(found) > 0 && found[0].Message == "" && reading.KindOf(d.Maker()).Kind != "Pod" {
		found[0].Message = d.warn(render.ObjectName{Kind: "Pod", Name: found[0].Example})
	}
	return found[:min(mostStates, len(found))]
}

// mostStates is how many states of pods are told.
const mostStates = 5

func (d *diagnosis) allNotes() []string {
	notes := d.notes
	if d.makes {
		notes = append(notes, unreadNotes(d.Unread, question{demands: []fitting.Demand{d.demand}, limits: d.limits})...)
	}
	for _, resource := range d.Forbidden {
		if note := forbiddenNote(resource, d.Namespace); note != "" {
			notes = append(notes, note)
		}
	}
	return append(notes, limitNotes(&d.Limits)...)
}

// row compares the need of a resource with its rest, and with surge of the quota if the missing pods replace others.
func (d *diagnosis) row(limit *fitting.Limit, name corev1.ResourceName, one, all resource.Quantity) render.WhyRow {
	row := render.WhyRow{Resource: name, One: one, All: all, Hard: limit.Spec.Hard[name]}
	if left, counted := limit.Left[name]; counted {
		short := all.DeepCopy()
		short.Sub(left)
		if d.replacing(limit) {
			short.Sub(limit.Surge[name])
		}
		if short.Sign() < 0 {
			short = resource.Quantity{Format: short.Format}
		}
		row.Available, row.Short = &left, &short
	}
	if amount, counted := limit.Used[name]; counted {
		row.Used = &amount
	}
	if amount, counted := limit.Here[name]; counted {
		row.Here = &amount
	}
	return row
}

// nextOf returns the next object's cost of a resource.
func (d *diagnosis) nextOf(limit *fitting.Limit, name corev1.ResourceName) resource.Quantity {
	for _, row := range d.one.Rows {
		if row.Resource == name && row.Limit.Name == limit.Name && row.Limit.Source == limit.Source {
			return row.InTheEnd
		}
	}
	return resource.Quantity{}
}

// findLargest names the pods and claims of the namespace that use most of the short resources, but for the subject's own.
func (d *diagnosis) findLargest(quotas []render.WhyQuota) error {
	for i := range quotas {
		for k := range quotas[i].Rows {
			row := &quotas[i].Rows[k]
			if !row.IsShort() || isCount(row.Resource) {
				continue
			}
			at := slices.IndexFunc(d.limits, func(limit fitting.Limit) bool { return quotaName(&limit) == quotas[i].Quota })
			largest, err := d.largest(&d.limits[at], row.Resource)
			if err != nil {
				return err
			}
			row.Largest = largest
		}
	}
	return nil
}

func (d *diagnosis) largest(limit *fitting.Limit, name corev1.ResourceName) ([]render.WhyUser, error) {
	var users []render.WhyUser
	add := func(resource schema.GroupResource, kind string, object client.Object) error {
		if d.isOwn(object) {
			return nil
		}
		uses, err := d.meter.uses(resource, object, limit)
		if amount := uses[name]; !amount.IsZero() {
			users = append(users, render.WhyUser{ObjectName: render.ObjectName{Kind: kind, Name: object.GetName()}, Used: amount})
		}
		return err
	}
	for i := range d.Pods {
		if err := add(corev1.Resource("pods"), "Pod", &d.Pods[i]); err != nil {
			return nil, err
		}
	}
	for i := range d.Claims {
		if err := add(corev1.Resource("persistentvolumeclaims"), "PersistentVolumeClaim", &d.Claims[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(users, func(a, b render.WhyUser) int {
		return cmp.Or(b.Used.Cmp(a.Used), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return users[:min(mostLargest, len(users))], nil
}

// isCount reports whether a resource is a number of objects, of which none uses more than another.
func isCount(name corev1.ResourceName) bool {
	return name == corev1.ResourcePods || strings.HasPrefix(string(name), "count/") ||
		strings.HasSuffix(string(name), string(corev1.ResourcePersistentVolumeClaims)) || strings.HasPrefix(string(name), "services")
}
