// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

// mostBytes is the size that the API server and etcd certainly take, less the
// part that others may add.
const mostBytes = 1<<20 - 64<<10

// listing is a quota of namespaces by name.
func listing(name string, names []string, more ...metav1.LabelSelectorRequirement) Quota {
	byName := metav1.LabelSelectorRequirement{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: names}
	selector, err := definition.CompileSelector(quotav1.ClusterResourceQuotaSelector{
		LabelSelector: &metav1.LabelSelector{MatchExpressions: append(more, byName)},
	})
	if err != nil {
		panic(err)
	}
	return Quota{
		Name: name, UID: types.UID(name), Generation: 1, Version: 7, Selector: selector, Preflight: true,
		Limited: []schema.GroupResource{pods, services},
	}
}

// listings are quotas of so many namespaces each, all others, whose names are as long as names can be.
func listings(quotas, each int) []Quota {
	all := make([]Quota, 0, quotas)
	for i := range quotas {
		names := make([]string, 0, each)
		for j := range each {
			names = append(names, fmt.Sprintf("namespace-%0*d-of-%03d", 63-len("namespace--of-000"), j, i))
		}
		all = append(all, listing(fmt.Sprint("list-", i), names))
	}
	return all
}

// rotating are settings at their largest: two authorities and the tokens that were replaced.
func rotating() Settings {
	settings, now := testSettings(), time.Unix(1_700_000_000, 0)
	settings.Endpoint.CABundle = bytes.Repeat([]byte("certificate"), 200)
	settings.Token, settings.TokenSince, settings.Retired = NewToken(), now, map[Token]time.Time{}
	for range 2 * maxRetired {
		settings.Retired[NewToken()] = now
	}
	return settings
}

// sizeOf is the size of the configuration of these webhooks as it is stored, but for the API server's own fields.
func sizeOf(t fataler, settings Settings, quotas []Quota) (size int, webhooks []admissionregistrationv1.ValidatingWebhook, exact bool) {
	t.Helper()
	webhooks, exact = settings.Webhooks(quotas)
	configuration := configured(append(webhooks, settings.Probe(NextEdition(configured(nil, true)))), exact)
	settings.Annotate(configuration, exact)
	text, err := json.Marshal(configuration)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for i, coverage := range settings.Coverages(configuration, quotas) {
		if coverage == Missing || exact && coverage != Exact && !quotas[i].Selector.HasAnnotations() {
			t.Fatalf("exact is %t, and quota %d has the coverage %v", exact, i, coverage)
		}
	}
	return len(text), webhooks, exact
}

// The API server took none of these three: they were 3.2, 1.7 and 2.2 MB, besides managed fields.
func TestSelectorsThatAreTooLargeAreWidened(t *testing.T) {
	for name, quotas := range map[string][]Quota{
		"24 of 1,000 names": listings(24, 1000),
		"one of 13,000":     listings(1, 13_000),
		"500 of 50":         listings(500, 50),
	} {
		t.Run(name, func(t *testing.T) {
			size, webhooks, exact := sizeOf(t, rotating(), append(quotas, teamQuota("shop", pods)))
			if size > mostBytes || exact || len(webhooks) > 2*maxEntries+1 {
				t.Errorf("%d bytes, %d entries, exact: %t", size, len(webhooks), exact)
			}
		})
	}
}

// Nothing is widened while there is room: the token and the certificate take none of that of the selectors.
func TestSelectorsThatFitAreExact(t *testing.T) {
	quotas := listings(5, 1000)
	for name, settings := range map[string]Settings{"at first": testSettings(), "while all is replaced": rotating()} {
		size, webhooks, exact := sizeOf(t, settings, quotas)
		if size > mostBytes || !exact || len(webhooks) != 1+2*len(quotas)-len(quotas)+1 {
			t.Errorf("%s: %d bytes, %d entries, exact: %t", name, size, len(webhooks), exact)
		}
	}
}

// meets reports whether a namespace meets a selector of the operator's. It doesn't validate thousands of names each time.
func meets(selector *metav1.LabelSelector, namespace map[string]string) bool {
	return !slices.ContainsFunc(selector.MatchExpressions, func(required metav1.LabelSelectorRequirement) bool {
		value, found := namespace[required.Key]
		switch required.Operator {
		case metav1.LabelSelectorOpIn:
			return !found || !slices.Contains(required.Values, value)
		case metav1.LabelSelectorOpNotIn:
			return found && slices.Contains(required.Values, value)
		default:
			return found != (required.Operator == metav1.LabelSelectorOpExists)
		}
	})
}

// For selectors with any number of names and any other labels, the configuration is small enough, covers every quota,
// and is a witness only of the truth.
func TestConfigurationsAreBoundedInBytes(t *testing.T) {
	outcomes := map[bool]int{}
	compiled := map[string]Quota{} // text of the selector -> quota; to compile thousands of names takes longer than all else
	property := func(t *rapid.T) {
		settings := rotating()
		settings.Endpoint.CABundle = bytes.Repeat([]byte("x"), rapid.IntRange(0, 6000).Draw(t, "certificate"))
		var quotas []Quota
		for i := range rapid.IntRange(1, 4).Draw(t, "quotas") {
			from, count := 3000*rapid.IntRange(0, 3).Draw(t, "from"), rapid.SampledFrom([]int{1, 50, 4000}).Draw(t, "names")
			var more []metav1.LabelSelectorRequirement
			if rapid.Bool().Draw(t, "with a label") {
				more = append(more, metav1.LabelSelectorRequirement{
					Key: "tier", Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{"In", "NotIn"}).Draw(t, "operator"),
					Values: []string{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tier")},
				})
			}
			text := fmt.Sprint(from, count, more)
			quota, found := compiled[text]
			if !found {
				names := make([]string, 0, count)
				for j := range count {
					names = append(names, fmt.Sprintf("%s-%06d", strings.Repeat("n", 50), from+j))
				}
				quota = listing("", names, more...)
				compiled[text] = quota
			}
			quota.Name, quota.UID = fmt.Sprint("list-", i), types.UID(fmt.Sprint("list-", i))
			quota.Limited = rapid.SampledFrom([][]schema.GroupResource{{pods}, {services}, {pods, widgets}}).Draw(t, "limited")
			quotas = append(quotas, quota)
		}
		size, webhooks, exact := sizeOf(t, settings, quotas)
		if size > mostBytes {
			t.Fatalf("%d bytes", size)
		}
		outcomes[exact]++
		name := fmt.Sprintf("%s-%06d", strings.Repeat("n", 50), 50*rapid.IntRange(0, 260).Draw(t, "namespace"))
		namespace := map[string]string{"kubernetes.io/metadata.name": name, "tier": rapid.SampledFrom([]string{"a", "b", "d"}).Draw(t, "its tier")}
		met := 0
		for _, webhook := range webhooks {
			question, ours := settings.isOurs(webhook)
			if !ours {
				continue
			}
			if meets(webhook.NamespaceSelector, namespace) {
				wantWitness(t, question, quotas, [2]map[string]string{namespace})
				met++
			}
		}
		covered := slices.ContainsFunc(quotas, func(quota Quota) bool { return quota.Selector.Matches(namespace, nil) })
		if met > 1 || covered && met == 0 || exact && !covered && met > 0 {
			t.Fatalf("%v meets %d entries, covered: %t, exact: %t", namespace, met, covered, exact)
		}
	}
	for range 10 {
		rapid.Check(t, property)
		if outcomes[true] > 0 && outcomes[false] > 0 {
			return
		}
	}
	t.Errorf("want some exact and some not, got %v", outcomes)
}
