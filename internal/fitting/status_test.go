// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// oldGroups describes the pods that must be replaced.
func oldGroups(pods *fitting.Pods) string {
	var parts []string
	for _, group := range pods.Old {
		known := "known"
		if group.Items == nil {
			known = "unknown"
		}
		parts = append(parts, fmt.Sprint(group.Count, " ", known))
	}
	return strings.Join(parts, ", ")
}

func TestWhatIsThereByTheStatus(t *testing.T) {
	status := func(text, of string) string { return text + "\nstatus: {" + of + "}" }
	changed := func(text string) string { return strings.Replace(text, "image: web", "image: web:2", 1) }
	set := func(kind string, replicas int) string {
		return apps + fmt.Sprintf("kind: %s\nspec: {%s, replicas: %d, template: %s}", kind, selector, replicas, template)
	}
	const allFour = "observedGeneration: 1, replicas: 4, updatedReplicas: 4"
	const threeOfFour = "observedGeneration: 1, replicas: 4, updatedReplicas: 3"
	for name, test := range map[string]struct {
		live, applied string
		generation    int64
		// missing of wanted, grows; the old ones; the items
		want   string
		unsure bool
	}{
		"a deployment that is scaled in the midst of a rollout": {
			live: status(deployment("replicas: 4"), threeOfFour), applied: deployment("replicas: 9"),
			want: "6 of 9, grows 5; 1 unknown; Deployment; more pods of an older template may be made, which isn't known", unsure: true,
		},
		"a deployment that is changed": {
			live: status(deployment("replicas: 4"), threeOfFour), applied: changed(deployment("replicas: 4")),
			want: "4 of 4, grows 0; 3 known, 1 unknown; Deployment, ReplicaSet", unsure: true,
		},
		"a deployment whose status is outdated": {
			live: status(deployment("replicas: 4"), threeOfFour), generation: 2, applied: deployment("replicas: 9"),
			want: "9 of 9, grows 0; ; Deployment, ReplicaSet", unsure: true,
		},
		"a deployment that is paused": {
			live: status(deployment("replicas: 4"), threeOfFour), applied: deployment("replicas: 9, paused: true"),
			want: "5 of 9, grows 0; ; Deployment; more pods of an older template may be made, which isn't known", unsure: true,
		},
		"a status of more than there can be": {
			live: status(deployment("replicas: 4"), "observedGeneration: 1, replicas: -4, updatedReplicas: 9"), applied: deployment("replicas: 4"),
			want: "4 of 4, grows 0; ; Deployment",
		},
		"a stateful set that grows": {
			live:    status(statefulSet("replicas: 4, volumeClaimTemplates: [{metadata: {name: data}}]"), threeOfFour),
			applied: statefulSet("replicas: 9, volumeClaimTemplates: [{metadata: {name: data}}]"),
			want:    "6 of 9, grows 0; 1 unknown; StatefulSet, 5 PersistentVolumeClaim", unsure: true,
		},
		"a stateful set whose numbers move on": {
			live: status(statefulSet("replicas: 4"), allFour), applied: statefulSet("replicas: 4, ordinals: {start: 3}"),
			want: "3 of 4, grows 0; ; StatefulSet",
		},
		"a stateful set whose numbers move on in the midst of a rollout": {
			live: status(statefulSet("replicas: 4"), threeOfFour), applied: statefulSet("replicas: 4, ordinals: {start: 1}"),
			want: "1 of 4, grows 0; ; StatefulSet",
		},
		"a stateful set all of whose numbers are others": {
			live: status(statefulSet("replicas: 4, ordinals: {start: 7}"), allFour), applied: statefulSet("replicas: 4"),
			want: "4 of 4, grows 0; ; StatefulSet",
		},
		"a stateful set that shrinks in the midst of a rollout, whose highest pods are replaced first": {
			live: status(statefulSet("replicas: 4"), "observedGeneration: 1, replicas: 4, updatedReplicas: 2"), applied: statefulSet("replicas: 2"),
			want: "2 of 2, grows 0; 2 unknown, 2 known; StatefulSet", unsure: true,
		},
		"a stateful set that shrinks and is changed, whose highest pods go first": {
			live: status(statefulSet("replicas: 4"), allFour), applied: changed(statefulSet("replicas: 1")),
			want: "1 of 1, grows 0; 1 known, 3 known; StatefulSet, ControllerRevision",
		},
		"a deployment that is scaled and changed": {
			live: status(deployment("replicas: 4"), allFour), applied: changed(deployment("replicas: 9")),
			want: "9 of 9, grows 5; 4 known; Deployment, ReplicaSet",
		},
		"a deployment that is scaled and changed, and recreates its pods": {
			live: status(deployment("replicas: 4"), allFour), applied: changed(deployment("replicas: 9, strategy: {type: Recreate}")),
			want: "9 of 9, grows 0; 4 known; Deployment, ReplicaSet",
		},
		"a stateful set that lacks an unknown pod, and shrinks": {
			live:    status(statefulSet("replicas: 4"), "observedGeneration: 1, replicas: 3, updatedReplicas: 3"),
			applied: statefulSet("replicas: 3"), want: "0 of 3, grows 0; ; StatefulSet", unsure: true,
		},
		"a stateful set that grows below its partition": {
			live: status(statefulSet("replicas: 4"), allFour), applied: changed(statefulSet("replicas: 6, updateStrategy: {rollingUpdate: {partition: 5}}")),
			want: "2 of 6, grows 0; ; StatefulSet, ControllerRevision; either as before", unsure: true,
		},
		"a stateful set that grows below its partition in the midst of a rollout": {
			live:    status(statefulSet("replicas: 4"), threeOfFour+", currentRevision: a, updateRevision: b"),
			applied: statefulSet("replicas: 6, updateStrategy: {rollingUpdate: {partition: 5}}"),
			want:    "2 of 6, grows 0; ; StatefulSet; pods below its partition are made of an older template, which isn't known",
		},
		"a stateful set that changes above a partition": {
			live: status(statefulSet("replicas: 4"), threeOfFour), applied: changed(statefulSet("replicas: 4, updateStrategy: {rollingUpdate: {partition: 3}}")),
			want: "1 of 4, grows 0; 1 known; StatefulSet, ControllerRevision",
		},
		"a stateful set whose pods are deleted by hand": {
			live: status(statefulSet("replicas: 4"), threeOfFour), applied: changed(statefulSet("replicas: 4, updateStrategy: {type: OnDelete}")),
			want: "0 of 4, grows 0; ; StatefulSet, ControllerRevision",
		},
		"a stateful set in the midst of a rollout": {
			live: status(statefulSet("replicas: 4"), threeOfFour), applied: statefulSet("replicas: 4"),
			want: "1 of 4, grows 0; 1 unknown; StatefulSet", unsure: true,
		},
		"a daemon set that is changed": {
			live:    status(daemonSet(""), "observedGeneration: 1, desiredNumberScheduled: 5, currentNumberScheduled: 4, updatedNumberScheduled: 3"),
			applied: changed(daemonSet("")), want: "5 of 5, grows 0; 3 known, 1 unknown; DaemonSet, ControllerRevision", unsure: true,
		},
		"a daemon set whose pods are deleted by hand": {
			live:    status(daemonSet(""), "observedGeneration: 1, desiredNumberScheduled: 5, currentNumberScheduled: 4, updatedNumberScheduled: 3"),
			applied: changed(daemonSet(", updateStrategy: {type: OnDelete}")), want: "1 of 5, grows 0; ; DaemonSet, ControllerRevision",
		},
		"a daemon set that stays": {
			live:    status(daemonSet(""), "observedGeneration: 1, desiredNumberScheduled: 5, currentNumberScheduled: 4, updatedNumberScheduled: 3"),
			applied: daemonSet(""), want: "2 of 5, grows 0; 1 unknown; DaemonSet", unsure: true,
		},
		"a replica set": {
			live: status(set("ReplicaSet", 4), "observedGeneration: 1, replicas: 4"), applied: set("ReplicaSet", 9), want: "5 of 9, grows 0; ; ReplicaSet",
		},
		"a job": {
			live:    status(job(", parallelism: 2, completions: 9, completionMode: Indexed"), "active: 2, succeeded: 3"),
			applied: job(", parallelism: 4, completions: 9, completionMode: Indexed"), want: "2 of 4, grows 0; ; Job, 2 Pod",
		},
		"what is new": {applied: deployment("replicas: 3"), want: "3 of 3, grows 0; ; Deployment, ReplicaSet"},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := manifestOf(t, test.applied)
			manifest.Present = fitting.Present{Unlisted: true}
			if test.live != "" {
				there(t, &manifest, test.live)
				manifest.Live.SetGeneration(max(1, test.generation))
			}
			demand := mustExpand(t, manifest)
			var items []string
			for _, item := range demand.Items {
				items = append(items, strings.TrimPrefix(fmt.Sprint(item.Count, " ", item.Kind), "1 "))
			}
			pods := demand.Pods
			got := fmt.Sprintf("%d of %d, grows %d; %s; %s", pods.Missing(), pods.Wanted, pods.Grows, oldGroups(pods), strings.Join(items, ", "))
			if pods.Either != nil {
				got += "; either as before"
			}
			if demand.Unpriced != "" {
				got += "; " + demand.Unpriced
			}
			if diff := cmp.Diff(test.want, got); diff != "" || demand.Unsure != test.unsure {
				t.Errorf("unsure %t, (-want,+got):\n%s", demand.Unsure, diff)
			}
			if made := demand.Made(); len(made.Items) != len(demand.Items)-1 || demand.Items[0].Kind != demand.Kind {
				t.Errorf("made %v of %v", made.Items, demand.Items)
			}
		})
	}
}
