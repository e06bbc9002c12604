// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// redefinition is a quota before and after the plan.
type redefinition struct {
	live *quotav1.ClusterResourceQuota // nil for a new one
	then *quotav1.ClusterResourceQuota
}

func (r redefinition) change() render.PlanChange {
	switch {
	case r.live == nil:
		return render.PlanNew
	case apiequality.Semantic.DeepEqual(r.live.Spec, r.then.Spec):
		return render.PlanUnchanged
	default:
		return render.PlanChanged
	}
}

// countsTheSame reports whether the live quota counts the same objects, so that its status tells what is used.
func (r redefinition) countsTheSame() bool {
	return r.live != nil && apiequality.Semantic.DeepEqual(r.live.Spec.Selector, r.then.Spec.Selector) && r.sameObjects(r.live)
}

// sameObjects reports whether another quota counts the same objects of a namespace that both select.
func (r redefinition) sameObjects(other *quotav1.ClusterResourceQuota) bool {
	return sameScopes(r.then, other) && apiequality.Semantic.DeepEqual(r.then.Spec.Quota.ScopeSelector, other.Spec.Quota.ScopeSelector)
}

// revise returns what becomes of the quotas in the file, and all quotas as they would be then, sorted by name. The
// error says what is wrong with the file's quotas.
func revise(files []planned, live []quotav1.ClusterResourceQuota) (revised []redefinition, then []quotav1.ClusterResourceQuota, err error) {
	var mistakes []error
	then = slices.Clone(live)
	for _, file := range files {
		at := slices.IndexFunc(live, func(quota quotav1.ClusterResourceQuota) bool { return quota.Name == file.quota.Name })
		made := redefinition{then: file.quota}
		if at >= 0 {
			made.live = &live[at]
			if made.then, err = applied(file, made.live); err != nil {
				return nil, nil, err
			}
			then[at] = *made.then
		} else {
			then = append(then, *made.then)
		}
		if err := validate(made.then, made.live); err != nil {
			mistakes = append(mistakes, fmt.Errorf("ClusterResourceQuota %s (%s): %w", file.quota.Name, file.origin, err))
		}
		revised = append(revised, made)
	}
	slices.SortFunc(then, func(a, b quotav1.ClusterResourceQuota) int { return cmp.Compare(a.Name, b.Name) })
	return revised, then, errors.Join(mistakes...)
}

// specified is the part of a quota that is merged.
type specified struct {
	Spec any `json:"spec"`
}

// applied returns the live quota with the spec that kubectl apply would give it: fields that others have set stay,
// and those that were applied the last time and are left out now go. If it was never applied, none goes.
func applied(file planned, live *quotav1.ClusterResourceQuota) (*quotav1.ClusterResourceQuota, error) {
	current, err := json.Marshal(specified{live.Spec})
	if err != nil {
		return nil, fmt.Errorf("reading quota %s: %w", live.Name, err)
	}
	modified, err := json.Marshal(specified{file.content["spec"]})
	if err != nil {
		return nil, fmt.Errorf("reading quota %s: %w", live.Name, err)
	}
	original := []byte("{}")
	if last, known := lastApplied(live); known {
		original = last
	}
	merged, err := mergedSpec(original, modified, current)
	if err != nil {
		return nil, fmt.Errorf("merging quota %s with what is there: %w", live.Name, err)
	}
	then := live.DeepCopy()
	then.Spec = merged
	return then, nil
}

// lastApplied returns the part that kubectl apply noted; it is unknown if the quota was made in another way.
func lastApplied(live *quotav1.ClusterResourceQuota) (spec []byte, known bool) {
	noted, known := live.Annotations[corev1.LastAppliedConfigAnnotation]
	original := map[string]any{}
	if !known || json.Unmarshal([]byte(noted), &original) != nil {
		return nil, false
	}
	text, err := json.Marshal(specified{original["spec"]})
	return text, err == nil
}

//nolint:wrapcheck // the caller says what was being done
func mergedSpec(original, modified, current []byte) (quotav1.ClusterResourceQuotaSpec, error) {
	var merged struct {
		Spec quotav1.ClusterResourceQuotaSpec `json:"spec"`
	}
	change, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
	if err != nil {
		return merged.Spec, err
	}
	target, changed := map[string]any{}, map[string]any{}
	if err := errors.Join(json.Unmarshal(current, &target), json.Unmarshal(change, &changed)); err != nil {
		return merged.Spec, err
	}
	text, err := json.Marshal(mergeJSON(target, changed))
	if err != nil {
		return merged.Spec, err
	}
	return merged.Spec, json.Unmarshal(text, &merged)
}

// mergeJSON applies a patch of RFC 7386.
func mergeJSON(target, change map[string]any) map[string]any {
	for name, value := range change {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(target, name)
		case isObject:
			current, _ := target[name].(map[string]any)
			if current == nil {
				current = map[string]any{}
			}
			target[name] = mergeJSON(current, inner)
		default:
			target[name] = value
		}
	}
	return target
}
