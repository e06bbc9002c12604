// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/conversion"
)

// manifest is a quota as YAML, with this spec.
func manifest(name, spec string) string {
	return fmt.Sprintf("apiVersion: quota.sharedquota.dev/v1\nkind: ClusterResourceQuota\nmetadata: {name: %s}\nspec: %s\n", name, spec)
}

const (
	selector = "selector: {labels: {matchLabels: {team: payments}}}"
	valid    = "{" + selector + `, quota: {hard: {pods: "10"}}}`
)

// fileOf reads a file, and validates its quotas as if there were none yet.
func fileOf(content string) (quotas []planned, notes []string, err error) {
	objects, err := conversion.Read("quotas.yaml", []byte(content))
	if err != nil {
		return nil, nil, err
	}
	if quotas, notes, err = plannedQuotas(objects); err != nil {
		return nil, nil, err
	}
	_, _, err = revise(quotas, nil)
	return quotas, notes, err
}

func TestWhatIsWrongWithAFile(t *testing.T) {
	hard := func(limits string) string { return manifest("payments", "{"+selector+", quota: {hard: {"+limits+"}}}") }
	for name, c := range map[string]struct{ content, want string }{
		"empty":           {"", "there is no ClusterResourceQuota in the manifests"},
		"comments":        {"# none\n---\n---\n", "there is no ClusterResourceQuota in the manifests"},
		"no object":       {"- a\n- b\n", "not an object"},
		"no YAML":         {"a: b: c\n", "parsing YAML"},
		"another kind":    {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "there is no ClusterResourceQuota in the manifests"},
		"that of others":  {"apiVersion: quota.openshift.io/v1\nkind: ClusterResourceQuota\nmetadata: {name: x}\n", "there is no ClusterResourceQuota in the manifests"},
		"no name":         {strings.Replace(manifest("x", valid), "{name: x}", "{generateName: x}", 1), "metadata.name: Required value"},
		"a name of words": {manifest(`"two words"`, valid), `metadata.name: Invalid value: "two words"`},
		"a misspelt field": {manifest("payments", "{"+selector+", quota: {hrad: {pods: 1}}}"),
			`ClusterResourceQuota payments (quotas.yaml): reading the quota: unknown field "spec.quota.hrad"`},
		"a field twice":            {manifest("payments", "{"+selector+", quota: {hard: {pods: 1, pods: 2}}}"), `key "pods" already set in map`},
		"a quota twice":            {manifest("payments", valid) + "---\n" + manifest("payments", valid), "(quotas.yaml, document 2) is there before, in quotas.yaml, document 1"},
		"no selector":              {manifest("payments", `{quota: {hard: {pods: 1}}}`), "spec.selector: Required value: must restrict the namespaces"},
		"a selector of another":    {manifest("payments", `{selector: {labels: {team: x}}, quota: {}}`), `unknown field "spec.selector.labels.team"`},
		"no quantity":              {hard("pods: many"), "quantities must match"},
		"less than nothing":        {hard(`pods: "-1"`), "spec.quota.hard[pods]: Invalid value"},
		"a part of a pod":          {hard(`pods: 1500m`), "spec.quota.hard[pods]: Invalid value"},
		"too much":                 {hard(`requests.cpu: 1e30`), "must be less than 1e30"},
		"too much to write down":   {hard(`requests.cpu: "1e999999999"`), "spec.quota.hard[requests.cpu]: Invalid value"},
		"too little to write down": {hard(`requests.cpu: "1e-999999999"`), "spec.quota.hard[requests.cpu]: Invalid value"},
		"an unknown resource":      {hard(`pots: 1`), "spec.quota.hard[pots]: Invalid value"},
		"hard is no map":           {manifest("payments", "{"+selector+", quota: {hard: [pods]}}"), "reading the quota"},
		"a mode that isn't":        {manifest("payments", "{"+selector+", quota: {hard: {pods: 1}}, enforcement: {mode: Maybe}}"), `spec.enforcement.mode: Unsupported value: "Maybe"`},
		"a preflight that isn't":   {manifest("payments", "{"+selector+", quota: {hard: {pods: 1}}, preflight: Maybe}"), `spec.preflight: Unsupported value: "Maybe"`},
		"an override of nothing":   {manifest("payments", "{"+selector+", quota: {hard: {pods: 1}}, enforcement: {overrides: [{resource: secrets, mode: Warn}]}}"), "spec.enforcement.overrides[0].resource: Invalid value"},
		"a mistake in a trial":     {manifest("payments", "{"+selector+`, quota: {hard: {pods: 1}}, trial: {hard: {pods: "-1"}}}`), "spec.trial.hard[pods]: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			_, _, err := fileOf(c.content)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("that took %s", took)
			}
		})
	}
}

func TestAllMistakesAreToldAtOnce(t *testing.T) {
	_, _, err := fileOf(manifest("a", "{quota: {}}") + "---\n" + manifest("b", valid) + "---\n" + manifest("c", "{quota: {}}"))
	for _, want := range []string{"ClusterResourceQuota a (quotas.yaml, document 1)", "ClusterResourceQuota c (quotas.yaml, document 3)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestAFileMayHaveOtherThingsToo(t *testing.T) {
	list := "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Namespace\n  metadata: {name: shop}\n- {apiVersion: quota.sharedquota.dev/v1, " +
		"kind: ClusterResourceQuota, metadata: {name: b}, spec: " + valid + ", status: {nonsense: true}}\n"
	quotas, notes, err := fileOf(manifest("a", valid) + "---\n# nothing\n---\n" + list)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, quota := range quotas {
		names = append(names, quota.quota.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("quotas (-want,+got):\n%s", diff)
	}
	want := []string{"Namespace shop (quotas.yaml, document 3, item 1) is no ClusterResourceQuota of quota.sharedquota.dev/v1, and is left out."}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want,+got):\n%s", diff)
	}
}

func TestWhatAppliesToALiveQuota(t *testing.T) {
	read := func(spec string) planned {
		t.Helper()
		quotas, _, err := fileOf(manifest("payments", spec))
		if err != nil {
			t.Fatal(err)
		}
		return quotas[0]
	}
	live := read("{" + selector + `, preflight: "Off", quota: {scopes: [NotTerminating], hard: {pods: "10", limits.cpu: "5", requests.cpu: "2"}}}`).quota
	live.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"quota":{"hard":{"pods":"10","limits.cpu":"5"}}}}`}
	file := read("{" + selector + `, quota: {scopes: [NotTerminating], hard: {pods: 11}}}`)
	then, err := applied(file, live)
	if err != nil {
		t.Fatal(err)
	}
	// limits.cpu was applied and no longer is; requests.cpu and preflight are of others.
	want := read("{" + selector + `, preflight: "Off", quota: {scopes: [NotTerminating], hard: {pods: "11", requests.cpu: "2"}}}`).quota
	if diff := cmp.Diff(want.Spec, then.Spec); diff != "" {
		t.Errorf("applied (-want,+got):\n%s", diff)
	}
	live.Annotations = nil
	if then, err = applied(file, live); err != nil {
		t.Fatal(err)
	}
	want.Spec.Quota.Hard["limits.cpu"] = resource.MustParse("5")
	if diff := cmp.Diff(want.Spec, then.Spec); diff != "" {
		t.Errorf("to one that was never applied (-want,+got):\n%s", diff)
	}
	_, _, err = revise([]planned{read("{" + selector + `, quota: {scopes: [BestEffort], hard: {pods: 11}}}`)}, []quotav1.ClusterResourceQuota{*live})
	if err == nil || !strings.Contains(err.Error(), "spec.quota.scopes: Forbidden: is immutable") {
		t.Errorf("other scopes: %v", err)
	}
}

// FuzzPlannedQuotas demands that nothing in a file is more than an error.
func FuzzPlannedQuotas(f *testing.F) {
	for _, seed := range []string{"", "{}", "---", manifest("a", valid), manifest("a", "{}"), manifest("a", "[]"), "kind: List\nitems: [1, {}]",
		manifest("a", `{selector: {labels: {matchExpressions: [{key: a, operator: In, values: [b]}]}}, quota: {hard: {requests.cpu: 1e9, pods: "1e-9999"}}}`)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		quotas, _, err := fileOf(content)
		if err == nil && len(quotas) == 0 {
			t.Error(errors.New("no quota and no mistake"))
		}
		for _, quota := range quotas {
			again, err := applied(quota, quota.quota)
			if err != nil {
				t.Errorf("applying it to itself: %v", err)
				continue
			}
			if change := (redefinition{live: quota.quota, then: again}).change(); change != "unchanged" {
				t.Errorf("applied to itself, it is %s:\n%s", change, cmp.Diff(quota.quota.Spec, again.Spec))
			}
		}
	})
}
