// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// wireQuota is a record with short names, because there may be thousands.
type wireQuota struct {
	wireName

	Since      int64                              `json:"s,omitempty"`
	Touched    int64                              `json:"t,omitempty"`
	Resources  map[corev1.ResourceName]wireSeries `json:"r,omitempty"`
	Workloads  []wireWorkload                     `json:"w,omitempty"`
	Today      int32                              `json:"d,omitempty"`
	Namespaces map[string]int64                   `json:"c,omitempty"`
	Trials     map[string]wireTrial               `json:"y,omitempty"`
	Edits      []wireEdit                         `json:"e,omitempty"`
}

type wireSeries struct {
	Before   string    `json:"b,omitempty"`
	BeforeAt int64     `json:"a,omitempty"`
	Days     []wireDay `json:"d,omitempty"`
}

type wireDay struct {
	Number   int32  `json:"d"`
	Peak     string `json:"p,omitempty"`
	PeakAt   int64  `json:"a,omitempty"`
	Last     string `json:"l,omitempty"`
	LastAt   int64  `json:"t,omitempty"`
	Requests int64  `json:"c,omitempty"`
	Need     string `json:"m,omitempty"`
}

type wireWorkload struct {
	Period    int32  `json:"p"`
	Namespace string `json:"n,omitempty"`
	Kind      string `json:"k,omitempty"`
	Name      string `json:"m,omitempty"`
	Requests  int64  `json:"c"`
}

type wireTrial struct {
	Since     int64                             `json:"s,omitempty"`
	Resources map[corev1.ResourceName]wireTried `json:"r,omitempty"`
}

type wireTried struct {
	Requests int64  `json:"c"`
	Need     string `json:"m,omitempty"`
	Last     int64  `json:"l,omitempty"`
}

type wireEdit struct {
	At         int64        `json:"a"`
	By         string       `json:"b"`
	Generation int64        `json:"g"`
	Before     string       `json:"f"`
	After      string       `json:"t"`
	Changes    []wireChange `json:"c,omitempty"`
}

type wireChange struct {
	Field    string              `json:"f"`
	Resource corev1.ResourceName `json:"r,omitempty"`
	From     string              `json:"o,omitempty"`
	To       string              `json:"n,omitempty"`
}

func wireOf(of key, r *record) wireQuota {
	made := wireQuota{
		wireName: wireName{Name: of.name, UID: of.uid}, Since: r.since, Touched: r.touched, Today: r.today,
		Namespaces: maps.Clone(r.namespaces), Resources: make(map[corev1.ResourceName]wireSeries, len(r.series)),
		Trials: make(map[string]wireTrial, len(r.trials)),
	}
	for name, of := range r.series {
		made.Resources[name] = wireSeriesOf(of)
	}
	for period, of := range r.workloads {
		for which, requests := range of {
			made.Workloads = append(made.Workloads, wireWorkload{period, which.namespace, which.kind, which.name, requests})
		}
	}
	slices.SortFunc(made.Workloads, func(a, b wireWorkload) int {
		return cmp.Or(cmp.Compare(a.Period, b.Period),
			workload{a.Namespace, a.Kind, a.Name}.compare(workload{b.Namespace, b.Kind, b.Name}))
	})
	for digest, of := range r.trials {
		wire := wireTrial{Since: of.since, Resources: make(map[corev1.ResourceName]wireTried, len(of.resources))}
		for name, seen := range of.resources {
			wire.Resources[name] = wireTried{Requests: seen.requests, Need: written(seen.need), Last: seen.last}
		}
		made.Trials[digest] = wire
	}
	for i := range r.edits {
		made.Edits = append(made.Edits, wireEditOf(&r.edits[i]))
	}
	return made
}

func wireSeriesOf(of *series) wireSeries {
	made := wireSeries{Before: written(of.before.amount), BeforeAt: of.before.at, Days: make([]wireDay, 0, len(of.days))}
	for i := range of.days {
		d := &of.days[i]
		wire := wireDay{
			Number: d.number, PeakAt: d.peakAt, Last: written(d.last.amount), LastAt: d.last.at,
			Requests: d.requests, Need: written(d.need),
		}
		if d.peakAt != 0 {
			wire.Peak = written(&d.peak)
		}
		made.Days = append(made.Days, wire)
	}
	return made
}

func wireEditOf(edit *Edit) wireEdit {
	made := wireEdit{
		At: edit.At.UnixMilli(), By: edit.By, Generation: edit.Generation, Before: edit.Before, After: edit.After,
	}
	for _, change := range edit.Changes {
		made.Changes = append(made.Changes, wireChange{change.Field, change.Resource, change.From, change.To})
	}
	return made
}

func written(amount *resource.Quantity) string {
	if amount == nil {
		return ""
	}
	own := *amount // String keeps what it has written in the quantity
	return own.String()
}

// readRecord reads what wireOf made, within the bounds of a record.
func readRecord(encoded json.RawMessage) (*record, error) {
	var wire wireQuota
	if err := json.Unmarshal(encoded, &wire); err != nil {
		return nil, fmt.Errorf("%w: %w", errQuota, err)
	}
	read := newRecord()
	read.since, read.touched = wire.Since, wire.Touched
	for _, name := range slices.Sorted(maps.Keys(wire.Resources)) {
		of, err := wire.Resources[name].series()
		if err != nil {
			return nil, fmt.Errorf("%.100s: %w", name, err)
		}
		if own := read.seriesOf(name, true); own != nil {
			*own = *of
		}
	}
	if err := errors.Join(wire.readRefused(read), wire.readTrials(read)); err != nil {
		return nil, err
	}
	for i := range wire.Edits[:min(len(wire.Edits), mostEdits)] {
		read.edits = append(read.edits, wire.Edits[i].edit(wire.wireName))
	}
	read.settle()
	return read, nil
}

// readRefused reads who was refused.
func (w *wireQuota) readRefused(into *record) error {
	for _, of := range w.Workloads {
		if of.Requests < 1 {
			return errQuota
		}
		if into.workloads[of.Period] == nil {
			if len(into.workloads) > Periods {
				continue
			}
			into.workloads[of.Period] = tally{}
		}
		into.workloads[of.Period].count(workload{bounded(of.Namespace), bounded(of.Kind), bounded(of.Name)}, of.Requests)
	}
	for _, namespace := range slices.Sorted(maps.Keys(w.Namespaces)) {
		if w.Namespaces[namespace] < 1 {
			return errQuota
		}
		into.addIn(w.Today, bounded(namespace), w.Namespaces[namespace])
	}
	return nil
}

func (w *wireQuota) readTrials(into *record) error {
	for _, digest := range slices.Sorted(maps.Keys(w.Trials)) {
		if len(digest) > longestName {
			return errQuota
		}
		of := into.judge(w.Trials[digest].Since, digest)
		for name, seen := range w.Trials[digest].Resources {
			need, err := read(seen.Need)
			if err != nil || seen.Requests < 1 {
				return fmt.Errorf("%.100s: %w", name, cmp.Or(err, errQuota))
			}
			of.miss(name, tried{requests: seen.Requests, need: need, last: seen.Last})
		}
	}
	return nil
}

func (w wireSeries) series() (*series, error) {
	before, err := read(w.Before)
	if err != nil {
		return nil, err
	}
	if len(w.Days) > 2*Days {
		return nil, errQuota
	}
	made := &series{before: level{amount: before, at: w.BeforeAt}, days: make([]day, 0, len(w.Days))}
	for i := range w.Days {
		of, err := w.Days[i].day()
		if err != nil {
			return nil, err
		}
		if i > 0 && of.number <= made.days[i-1].number {
			return nil, errQuota
		}
		made.days = append(made.days, of)
	}
	return made, nil
}

func (w *wireDay) day() (day, error) {
	made := day{number: w.Number, peakAt: w.PeakAt, requests: w.Requests}
	peak, err := read(w.Peak)
	if err != nil {
		return day{}, err
	}
	if (peak == nil) != (w.PeakAt == 0) || w.Requests < 0 {
		return day{}, errQuota
	}
	if peak != nil {
		made.peak = *peak
	}
	last, err := read(w.Last)
	if err != nil {
		return day{}, err
	}
	made.last = level{amount: last, at: w.LastAt}
	made.need, err = read(w.Need)
	return made, err
}

func (w *wireEdit) edit(of wireName) Edit {
	made := Edit{
		Quota: of.Name, UID: of.UID, At: time.UnixMilli(w.At), By: shortened(w.By, longestUser), Generation: w.Generation,
		Before: bounded(w.Before), After: bounded(w.After),
	}
	for _, change := range w.Changes[:min(len(w.Changes), MostChanges)] {
		if len(change.Resource) > longestResource {
			continue
		}
		made.Changes = append(made.Changes, quotav1.SpecChange{
			Field: bounded(change.Field), Resource: change.Resource,
			From: shortened(change.From, longestValue), To: shortened(change.To, longestValue),
		})
	}
	return made
}

// read returns an amount; nil if there is none.
func read(text string) (*resource.Quantity, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	amount, err := waiting.ParseAmount(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errQuota, err)
	}
	return &amount, nil
}
