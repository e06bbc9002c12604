// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

// For any addition to an object that is found in clusters, at any place, each
// value of its spec comes out, or a comment names it or a field above it.
func TestNothingIsLostSilently(t *testing.T) {
	bases := foundInClusters(t)
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		content := clone(rapid.SampledFrom(bases).Draw(t, "base"))
		for range rapid.IntRange(0, 5).Draw(t, "additions") {
			addSomewhere(t, content)
		}
		given := leaves(clone(content))
		outcomes := Convert([]Object{newObject("input", content)}, "shop")
		wantReadAgain(t, outcomes)
		for _, manifest := range outcomes[0].Manifests {
			if errs := definition.Validate(manifest.Quota); len(errs) > 0 {
				t.Fatalf("an invalid quota: %v", errs)
			}
		}
		if Sum(outcomes).Refused > 0 {
			return
		}
		compared++
		wantAllSaid(t, given, outcomes[0])
	})
	if compared == 0 {
		t.Error("every object was refused: nothing was compared")
	}
}

func wantAllSaid(t *rapid.T, given map[string]any, outcome Outcome) {
	t.Helper()
	comments := string(Comments([]Outcome{outcome}))
	came := map[string]any{} // name of a quota, space, path -> value
	for _, manifest := range outcome.Manifests {
		fields, err := fieldsOf(manifest.Quota)
		if err != nil {
			t.Fatal(err)
		}
		for path, value := range leaves(fields) {
			came[manifest.Quota.Name+" "+path] = value
		}
	}
	for _, path := range slices.Sorted(maps.Keys(given)) {
		if !isBelow(path, "spec") || said(comments, path) || cameOut(came, path, given[path]) {
			continue
		}
		t.Errorf("%s: %v is lost\n%s\n%v", path, given[path], comments, came)
	}
}

// said reports whether the path, or one above it, is in a comment.
func said(comments, path string) bool {
	for at := len(path); at > len("spec"); at-- {
		if at != len(path) && path[at] != '.' && path[at] != '[' {
			continue
		}
		if strings.Contains(comments, ": "+plain(path[:at])+": ") {
			return true
		}
	}
	return false
}

// cameOut reports whether the value is at its place in some quota. The limits and
// scopes are below spec.quota there; a selector's values are in its selector.
func cameOut(came map[string]any, path string, value any) bool {
	if path == "spec.resourceQuotas.scope" && value == "Tenant" {
		return true // the selector means the same
	}
	if ruleQuota.FindString(path)+".name" == path { // the quota's name ends with it
		return slices.ContainsFunc(slices.Collect(maps.Keys(came)), func(at string) bool {
			return strings.HasSuffix(at, " metadata.name") && strings.HasSuffix(fmt.Sprint(came[at]), fmt.Sprintf("-%v", value))
		})
	}
	rest := path
	for _, place := range []string{"spec.quota", "spec.resourceQuotas.items[N]", ruleQuota.FindString(path), "spec"} {
		place = strings.Replace(place, "N", indexIn(path), 1)
		if place != "" && isBelow(path, place) {
			rest = strings.TrimPrefix(path, place)
			break
		}
	}
	selects := strings.Contains(path, "elector")
	for at, current := range came {
		inSelector := strings.Contains(at, " spec.selector.")
		switch {
		case !same(current, value):
		case strings.HasSuffix(at, " "+path), strings.HasSuffix(at, " spec.quota"+rest):
			return true
		case selects && inSelector:
			return true
		}
	}
	// The terms that the selectors have in common, and their operators, may be
	// said otherwise.
	return selects && (value == "In" || strings.HasSuffix(path, ".key"))
}

// ruleQuota is where a quota of a Tenant's rule stands.
var ruleQuota = regexp.MustCompile(`^spec\.rules\[\d+\]\.quota\[\d+\]`)

func indexIn(path string) string {
	_, after, _ := strings.Cut(path, "items[")
	index, _, _ := strings.Cut(after, "]")
	return index
}

func same(a, b any) bool {
	if fmt.Sprint(a) == fmt.Sprint(b) {
		return true
	}
	current, err1 := resource.ParseQuantity(fmt.Sprint(a))
	previous, err2 := resource.ParseQuantity(fmt.Sprint(b))
	return err1 == nil && err2 == nil && current.Equal(previous)
}

// addSomewhere adds a field somewhere in an object.
func addSomewhere(t *rapid.T, content map[string]any) {
	at := content
	for {
		var below []map[string]any
		for _, key := range slices.Sorted(maps.Keys(at)) {
			below = append(below, objectsIn(at[key])...)
		}
		if len(below) == 0 || (rapid.IntRange(0, 3).Draw(t, "stop") == 0) {
			break
		}
		at = rapid.SampledFrom(below).Draw(t, "below")
	}
	name := rapid.OneOf(
		rapid.SampledFrom([]string{"hard", "Hard", "pods", "scopes", "items", "quota", "namespaceOptions", "limitRanges", "cpu", "x", "annotations"}),
		rapid.String(),
	).Draw(t, "name")
	if _, there := at[name]; there {
		return
	}
	at[name] = anything(2).Draw(t, "value")
}

// leaves returns all values that say something by their paths.
func leaves(content any) map[string]any {
	all := map[string]any{}
	walk("", content, func(path string, value any) {
		switch value.(type) {
		case nil, map[string]any, []any:
		default:
			all[path] = value
		}
	})
	return all
}

func objectsIn(value any) []map[string]any {
	switch value := value.(type) {
	case map[string]any:
		return []map[string]any{value}
	case []any:
		var objects []map[string]any
		for _, item := range value {
			objects = append(objects, objectsIn(item)...)
		}
		return objects
	}
	return nil
}

func anything(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.String().AsAny(), rapid.Int64Range(0, 9).AsAny(), rapid.Bool().AsAny(),
		rapid.SampledFrom([]string{"1", "5Gi", "a\nkind: Evil\n---", "\u2028", "\u0085apiVersion: v1"}).AsAny(),
	}
	if depth > 0 {
		kinds = append(kinds,
			rapid.SliceOfN(anything(depth-1), 0, 3).AsAny(),
			rapid.MapOfN(rapid.String(), anything(depth-1), 0, 3).AsAny())
	}
	return rapid.OneOf(kinds...)
}

// foundInClusters returns the objects of the golden inputs.
func foundInClusters(t *testing.T) []map[string]any {
	t.Helper()
	var found []map[string]any
	for _, name := range goldens {
		content, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range Read(name, content) {
			if as := conversions()[object.kind.GroupKind()]; slices.Contains(as.versions, object.kind.Version) {
				found = append(found, object.content)
			}
		}
	}
	return found
}

// clone also makes the types those of decoded objects.
func clone(content map[string]any) map[string]any {
	written, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	again := map[string]any{}
	if err := utiljson.Unmarshal(written, &again); err != nil {
		panic(err)
	}
	return again
}

// A namespace is selected by the merged selector if any of them selects it.
func TestSelectorsAreMergedOnlyWhereThatChangesNothing(t *testing.T) {
	merged := 0
	rapid.Check(t, func(t *rapid.T) {
		selectors := rapid.SliceOfN(rapid.Custom(drawSelector), 1, 3).Draw(t, "selectors")
		one, err := anyOf(selectors)
		if err != nil {
			return
		}
		merged++
		for i := range 27 {
			namespace := map[string]string{}
			for at, key := range []string{"a", "b", "c"} {
				if digit := strconv.FormatInt(int64(i)+27, 3)[at+1]; digit != '0' {
					namespace[key] = string(digit)
				}
			}
			wanted := slices.ContainsFunc(selectors, func(s metav1.LabelSelector) bool { return selects(t, s, namespace) })
			if got := selects(t, one, namespace); got != wanted {
				t.Fatalf("%v: %v, but any of them: %v (merged: %+v)", namespace, got, wanted, one)
			}
		}
	})
	if merged == 0 {
		t.Error("nothing was merged")
	}
}

func drawSelector(t *rapid.T) metav1.LabelSelector {
	values := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"1", "2"}), 1, 2, rapid.ID[string])
	selector := metav1.LabelSelector{}
	for _, key := range []string{"a", "b", "c"} {
		switch rapid.IntRange(0, 4).Draw(t, key) {
		case 0, 1:
			metav1.AddLabelToSelector(&selector, key, rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value"))
		case 2:
			selector.MatchExpressions = append(selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values.Draw(t, "values")})
		case 3:
			if rapid.Bool().Draw(t, "rarely") {
				selector.MatchExpressions = append(selector.MatchExpressions,
					metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists})
			}
		}
	}
	return selector
}

func selects(t *rapid.T, selector metav1.LabelSelector, namespace map[string]string) bool {
	t.Helper()
	compiled, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Matches(labels.Set(namespace))
}

// shapes are texts that are not plain objects of kinds that are converted.
func shapes(tb testing.TB) [][]byte {
	tb.Helper()
	var all [][]byte
	for _, name := range goldens {
		content, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, content)
	}
	for _, shape := range []string{
		`{"kind":"List","items":[1,null,{"kind":"List","items":[]}]} {"a":1}`, "{a: b}\n---\n--- # next\n- 1",
		"apiVersion: hnc.x-k8s.io/v1alpha2\nkind: HierarchicalResourceQuota\nmetadata: 7\nspec: [1]",
		"kind: Template\nobjects: [{apiVersion: v1, kind: ClusterResourceQuota, metadata: {name: '${N}'}, spec: {}}]",
		"kind: ConfigMap\ndata: {a: 'kind: Tenant\n\napiVersion: capsule.clastix.io/v1beta2'}",
		"{{ if .x }}\n---\napiVersion: quota.openshift.io/v1\nkind: ClusterResourceQuota\nspec: {scopes: [x], quota: {hard: {pods: null}}}\n{{ end }}",
		"{a: b}: c\n--- {~: d}\n...\n!!binary x: .nan\n", "\xff\xfek\x00", "? [a]\n: {hard: 1e999999999}", "a: !!int x\n<<: [1]\n", "%YAML 1.1\n---\na: *b",
	} {
		all = append(all, []byte(shape))
	}
	return all
}

// wantAnswered fails unless each text is answered in people's words, and the output is read as the same quotas.
func wantAnswered(tb interface {
	Helper()
	Fatalf(format string, args ...any)
}, content []byte,
) {
	tb.Helper()
	if bytes.Contains(content, []byte("&")) {
		return // anchors make a small file large
	}
	outcomes := Convert(Read("input", content), "shop")
	wantReadAgain(tb, outcomes)
	comments := Comments(outcomes)
	if len(comments) == 0 && Sum(outcomes).Quotas == 0 || goWords.Match(comments) && !goWords.Match(content) {
		tb.Fatalf("%q is answered %q", content, comments)
	}
}

func TestEveryTextIsAnswered(t *testing.T) {
	all := shapes(t)
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			shape := rapid.SampledFrom(all).Draw(t, "shape")
			from := rapid.IntRange(0, len(shape)).Draw(t, "from")
			text = append(text, shape[from:rapid.IntRange(from, len(shape)).Draw(t, "to")]...)
			text = append(text, rapid.SampledFrom([]string{"", "\n---\n", "\n", ": ", "{{ .Values.x }}", "{", "]", "\x00", "\"", "- ", "\t"}).Draw(t, "between")...)
		}
		wantAnswered(t, text)
	})
}

func FuzzRead(f *testing.F) {
	for _, shape := range shapes(f) {
		f.Add(shape)
	}
	f.Fuzz(func(t *testing.T, content []byte) { wantAnswered(t, content) })
}
