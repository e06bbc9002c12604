// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

func Example() {
	now := time.Unix(0, 0)
	pods := func(number int64) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(number, resource.DecimalSI)}
	}
	list := waiting.NewList()
	for i, name := range []string{"web", "api"} {
		list.Refused(now.Add(time.Duration(i)*time.Second), waiting.Refusal{
			Owner: waiting.Owner{Kind: waiting.ReplicaSet, Namespace: "shop", Name: name, UID: types.UID(name)},
			Quota: "team", Requested: pods(1), Short: pods(1),
		})
	}
	free := waiting.Free{Hard: pods(3), Charged: pods(2), Limits: func(string) bool { return true }}
	plan := waiting.NewRoom().Plan(now.Add(time.Minute), list.Waiting("team"), free, 10)
	for _, record := range plan.Wake {
		fmt.Println("wake", record.Kind, record.Name, "which waits since", record.Since.Unix())
	}
	// Output: wake ReplicaSet web which waits since 0
}
