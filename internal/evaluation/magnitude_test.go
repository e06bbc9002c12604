// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAmountsBeyondTheBound(t *testing.T) {
	for quantity, want := range map[string]bool{
		"0": false, "1n": false, "250m": false, "-5": false, "8Ei": false, "999999Ei": false,
		"1e29": false, "999999999999999999999999999999m": false, "0e29": false,
		"1e30": true, "-1e30": true, "1000000000000000000000000000000": true, "1e300000000": true, "-1e300000000": true,
		"0e300000000": true, "0e-300000000": true,
	} {
		t.Run(quantity, func(t *testing.T) {
			if got := IsBeyond(resource.MustParse(quantity)); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// absurd takes a moment to add to anything. With a thousand times the exponent
// no computer can.
const absurd = "1e300000"

func podRequesting(cpu ...string) *corev1.Pod {
	pod := podOf()
	for _, cpu := range cpu {
		pod.Spec.Containers = append(pod.Spec.Containers, container(cpu, amountsOf("cpu", cpu), nil))
	}
	return pod
}

func TestAbsurdAmountsAreCountedAsBeyond(t *testing.T) {
	for name, test := range map[string]struct {
		resource schema.GroupResource
		object   runtime.Object
		limited  corev1.ResourceName
		want     string
	}{
		"a claim": {volumeClaims(), volumeClaimOf("", absurd), "requests.storage", "1e30"},
		"a container beside another": {
			pods(), podRequesting("1", absurd), "requests.cpu", "1000000000000000000000000000001",
		},
		"a zero beside an amount": {pods(), podRequesting("1234567890123456789012", "0e300000"), "requests.cpu", "1234567890123456789012"},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.object.DeepCopyObject()
			evaluators, team := newTestEvaluators(), quotaOf("team", test.limited)
			charges, err := evaluators.Charges(creation(test.resource, test.object), []Quota{team})
			if err != nil || len(charges) != 1 {
				t.Fatalf("charges %v, %v", charges, err)
			}
			footprint, err := evaluators.Footprint(test.resource, test.object)
			if err != nil {
				t.Fatal(err)
			}
			used, err := evaluators.Usage(test.resource, footprint, team, testNow())
			if err != nil {
				t.Fatal(err)
			}
			for what, got := range map[string]corev1.ResourceList{"charged": charges[0].Amounts, "used": used} {
				if amount := got[test.limited]; amount.String() != test.want {
					t.Errorf("%s %s, want %s", what, amount.String(), test.want)
				}
			}
			if !reflect.DeepEqual(before, test.object) {
				t.Error("the object was changed")
			}
		})
	}
}

// An update from an absurd amount to another charges nothing: both are the most that counts.
func TestAnAbsurdAmountBeforeAnUpdate(t *testing.T) {
	evaluators := newTestEvaluators()
	quotas := []Quota{quotaOf("team", "requests.storage")}
	charges, err := evaluators.Charges(update(volumeClaims(), volumeClaimOf("", absurd), volumeClaimOf("", "1e299999")), quotas)
	if err != nil || len(charges) != 0 {
		t.Errorf("got %v, %v", charges, err)
	}
}

// unread are the fields from which no evaluator reads a resource list: claims
// that are yet to be made from a pod, and containers that debug it, which have
// none.
var unread = []string{".ObjectMeta", ".Spec.Volumes", ".Spec.EphemeralContainers", ".Status.EphemeralContainerStatuses"}

// fill makes every resource list, with one element in each list above it.
func fill(value reflect.Value, path string, list corev1.ResourceList) {
	if slices.Contains(unread, path) {
		return
	}
	if value.Type() == reflect.TypeOf(list) {
		value.Set(reflect.ValueOf(maps.Clone(list)))
		return
	}
	switch value.Kind() { //nolint:exhaustive // No other kind has resource lists in it.
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.IsExported() {
				fill(value.Field(i), path+"."+field.Name, list)
			}
		}
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), path, list)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0), path, list)
	}
}

func TestNoResourceListOfAnObjectStaysBeyond(t *testing.T) {
	for name, test := range map[string]struct {
		object runtime.Object
		lists  int
	}{
		"pod":   {&corev1.Pod{}, 16},
		"claim": {&corev1.PersistentVolumeClaim{}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			fill(reflect.ValueOf(test.object).Elem(), "", amountsOf("storage", absurd))
			text, err := json.Marshal(counted(test.object))
			if err != nil {
				t.Fatal(err)
			}
			lists := strings.Count(string(text), `{"storage":`)
			if cut := strings.Count(string(text), `{"storage":"1e30"}`); cut != lists || cut != test.lists {
				t.Errorf("%d of %d resource lists can be counted with, want %d: %s", cut, lists, test.lists, text)
			}
		})
	}
}
