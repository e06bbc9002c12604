// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// RealNodes are the nodes of a real cluster.
const RealNodes = 3

// Alone returns the case with the nodes of a real cluster, and all pods of the workload before.
func (c Case) Alone() Case {
	c.Nodes, c.Came = RealNodes, 99
	return c
}

// Real returns the case for a namespace of a real cluster, whose other namespaces use nothing: the limits are lower instead.
// It is false for a case that a real cluster can't play: no namespace is protected, nothing ends there, nothing runs by
// schedule, and which of several claims is made first is a matter of chance.
func (c Case) Real(namespace string) (played Case, playable bool) {
	played = c.Alone()
	template := templateOf(c.Applied)
	claims := 0
	if template != nil {
		claims = len(template.Volumes) + len(template.ResourceClaims)
	}
	switch object := c.Applied.(type) {
	case *batchv1.CronJob:
		return played, false
	case *batchv1.Job:
		if object.Spec.Completions != nil && *object.Spec.Completions > *object.Spec.Parallelism {
			return played, false
		}
	case *appsv1.StatefulSet:
		claims += len(object.Spec.VolumeClaimTemplates)
	}
	if c.Protected || claims > 1 || claims > 0 && c.Before != nil {
		return played, false
	}
	place := func(object client.Object) client.Object {
		placed, _ := object.DeepCopyObject().(client.Object)
		placed.SetNamespace(namespace)
		return placed
	}
	played.Applied = place(c.Applied)
	if c.Before != nil {
		played.Before = place(c.Before)
	}
	played.LimitRanges = nil
	for i := range c.LimitRanges {
		limits := *c.LimitRanges[i].DeepCopy()
		limits.Namespace = namespace
		played.LimitRanges = append(played.LimitRanges, limits)
	}
	played.Quotas = nil
	for _, quota := range c.Quotas {
		lower := Quota{quota.DeepCopy(), nil}
		lower.Name = namespace + "-" + quota.Name
		lower.Spec.Selector.LabelSelector.MatchExpressions[0].Values = []string{namespace}
		for name, hard := range lower.Spec.Quota.Hard {
			hard.Sub(quota.Others[name])
			if hard.Sign() < 0 {
				hard = resource.Quantity{}
			}
			lower.Spec.Quota.Hard[name] = hard
			if surge, ok := quota.Spec.Surge.Hard[name]; ok {
				most := quota.Spec.Quota.Hard[name].DeepCopy()
				most.Add(surge)
				most.Sub(quota.Others[name])
				most.Sub(hard)
				if most.Sign() < 0 {
					most = resource.Quantity{}
				}
				lower.Spec.Surge.Hard[name] = most
			}
		}
		if lower.Spec.Preflight == "Deny" { // It says the same as Warn, and then nothing could be seen.
			lower.Spec.Preflight = ""
		}
		played.Quotas = append(played.Quotas, lower)
	}
	return played, true
}

// templateOf returns what its pods are made of; nil if it makes none.
func templateOf(object client.Object) *corev1.PodSpec {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return &object.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return &object.Spec.Template.Spec
	case *appsv1.ReplicaSet:
		return &object.Spec.Template.Spec
	case *appsv1.DaemonSet:
		return &object.Spec.Template.Spec
	case *corev1.ReplicationController:
		return &object.Spec.Template.Spec
	case *batchv1.Job:
		return &object.Spec.Template.Spec
	case *corev1.Pod:
		return &object.Spec
	}
	return nil
}

// Claims returns how many PersistentVolumeClaims and ResourceClaims are made for each pod.
func Claims(object client.Object) (volumes, devices int) {
	template := templateOf(object)
	if template == nil {
		return 0, 0
	}
	if set, ok := object.(*appsv1.StatefulSet); ok {
		volumes = len(set.Spec.VolumeClaimTemplates)
	}
	return volumes + len(template.Volumes), len(template.ResourceClaims)
}

var exceededPattern = regexp.MustCompile(`exceeded quota: (\S+), requested: (\S+), used: `)

// RefusalOf reads a refusal from the message of the API server. A message that isn't one is unknown.
func RefusalOf(kind, message string) *RefusalError {
	refusal := &RefusalError{Kind: kind}
	for _, found := range exceededPattern.FindAllStringSubmatch(message, -1) {
		for asked := range strings.SplitSeq(found[2], ",") {
			name, _, _ := strings.Cut(asked, "=")
			refusal.Shorts = append(refusal.Shorts, Short{found[1], corev1.ResourceName(name)})
		}
	}
	if at := strings.Index(message, "failed quota: "); at >= 0 {
		refusal.Message, _, _ = strings.Cut(message[at:], "\n")
	} else if len(refusal.Shorts) == 0 && (strings.Contains(message, "forbidden") || strings.Contains(message, "is invalid")) {
		refusal.Message = message
	}
	return refusal
}

// ReadFit reads the answer of `kubectl crq fit -o json`.
func ReadFit(answer []byte) (fitting.Verdict, error) {
	read := struct {
		Quotas []struct {
			Quota, Resource, WithSurge, Available, Shortfall string
			Surge                                            *struct{ Left, Shortfall string }
			Advisory                                         bool
		}
		Refusals []struct{ Refused, Message string }
	}{}
	if err := json.Unmarshal(answer, &read); err != nil { //nolint:musttag // keys match in any case
		return fitting.Verdict{}, fmt.Errorf("reading the answer of fit: %w", err)
	}
	verdict := fitting.Verdict{}
	for _, row := range read.Quotas {
		limit := &fitting.Limit{Name: strings.TrimPrefix(row.Quota, "crq/")}
		if row.Advisory {
			limit.Admits = "it only warns"
		}
		found := fitting.Row{Limit: limit, Resource: corev1.ResourceName(row.Resource), Counted: row.Available != ""}
		if found.Counted {
			found.WholeSurge, found.Available = resource.MustParse(row.WithSurge), resource.MustParse(row.Available)
			found.Shortfall = resource.MustParse(row.Shortfall)
			if row.Surge != nil {
				found.Surge = fitting.Surge(row.Surge.Shortfall)
				limit.Surge = corev1.ResourceList{found.Resource: resource.MustParse(row.Surge.Left)}
			}
		}
		verdict.Rows = append(verdict.Rows, found)
	}
	for _, refusal := range read.Refusals {
		verdict.Refusals = append(verdict.Refusals, fitting.Refusal{Refused: refusal.Refused, Message: refusal.Message})
	}
	return verdict, nil
}

// ReadWhy reads the answer of `kubectl crq why -o json`, and its exit status, which must say the same.
func ReadWhy(answer []byte, exit int) (Why, error) {
	why := Why{}
	if err := json.Unmarshal(answer, &why); err != nil { //nolint:musttag // keys match in any case
		return Why{}, fmt.Errorf("reading the answer of why: %w: %s", err, answer)
	}
	if says, known := map[int]string{0: fits, 1: doesNotFit, 2: "unknown"}[exit]; !known || says != why.Result {
		return Why{}, fmt.Errorf("why says that it %s, and its exit status is %d", why.Result, exit)
	}
	return why, nil
}
