// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// configured is what the operator writes for the quotas, and all that is read besides.
func configured(flag admissionregistrationv1.FailurePolicyType, quotas ...*quotav1.ClusterResourceQuota) *reading.Outage {
	found := &reading.Outage{}
	settings := reach.Settings{
		Endpoint: reach.Endpoint{URL: "https://operator"}, Protected: []string{"kube-system"}, FailurePolicy: flag,
		Paths: reach.Paths{Objects: "/objects", Workloads: "/workloads", Quotas: "/quotas", Probe: "/probe"},
	}
	var asked []reach.Quota
	for _, quota := range quotas {
		defined := definition.Salvage(quota)
		var limited []schema.GroupResource
		for name := range quota.Spec.Quota.Hard {
			limited = append(limited, schema.ParseGroupResource(strings.TrimPrefix(string(name), "count/")))
		}
		asked = append(asked, reach.Quota{
			Name: quota.Name, UID: types.UID(quota.Name), Selector: defined.Selector, Limited: limited, Preflight: true,
			Admits: defined.Enforcement.AdmitsUnavailable(settings.AdmitsByDefault()),
		})
		found.Quotas = append(found.Quotas, *quota)
	}
	webhooks, _ := settings.Webhooks(asked)
	found.Configuration = &admissionregistrationv1.ValidatingWebhookConfiguration{
		Webhooks: append(webhooks, settings.Probe(reach.NextEdition(&admissionregistrationv1.ValidatingWebhookConfiguration{}))),
	}
	return found
}

// with adds namespaces, each as its name and its team.
func with(found *reading.Outage, namespaces ...string) *reading.Outage {
	for i := 0; i+1 < len(namespaces); i += 2 {
		found.Namespaces = append(found.Namespaces, *builders.Namespace(namespaces[i]).
			Label(corev1.LabelMetadataName, namespaces[i]).Label("team", namespaces[i+1]).Obj())
	}
	return found
}

func teamQuota(name, team string, mode quotav1.EnforcementMode, unavailable quotav1.UnavailablePolicy, hard ...corev1.ResourceName) *quotav1.ClusterResourceQuota {
	builder := builders.Quota(name).Label("team", team).Enforcement(mode, unavailable)
	for _, resource := range hard {
		builder.Hard(resource, "1")
	}
	return builder.Obj()
}

func TestOutage(t *testing.T) {
	const (
		closed, open = admissionregistrationv1.Fail, admissionregistrationv1.Ignore
		updates      = "\nCreations of these would be refused, and updates that may take more, of pods.\n"
		edits        = "ClusterResourceQuotas could not be created, nor their specs changed.\n"
		heading      = "NAMESPACE   RESOURCES   QUOTAS\n"
		everywhere   = "kubernetes.io/metadata.name notin (kube-system),team in "
	)
	shop := teamQuota("shop", "shop", "", "", "pods")
	audit := teamQuota("audit", "lab", quotav1.EnforcementAudit, "", "pods")
	lenient := teamQuota("lenient", "blog", "", quotav1.UnavailableAdmit, "secrets")
	for name, test := range map[string]struct {
		found     *reading.Outage
		namespace string
		want      string
	}{
		"quotas that refuse, and quotas that admit": {
			found: with(configured(closed, shop, audit, lenient), "shop-b", "shop", "shop-a", "shop", "lab", "lab", "blog", "blog", "free", "none", "kube-system", "shop"),
			want: heading + "shop-a      pods        shop\nshop-b      pods        shop\n" + updates + edits +
				"Quotas that would have requests admitted: audit (only the modes Warn and Audit), lenient (whenUnavailable: Admit).\n",
		},
		"a quota that refuses has all requests of its namespaces refused": {
			found: with(configured(closed, teamQuota("a", "blog", "", "", "count/deployments.apps"), lenient), "blog", "blog"),
			want: "NAMESPACE   RESOURCES                  QUOTAS\nblog        deployments.apps,secrets   a\n\nCreations of these would be refused.\n" + edits +
				"Quotas that would have requests admitted: lenient (whenUnavailable: Admit).\n",
		},
		"two quotas that refuse": {
			found: with(configured(closed, teamQuota("b", "shop", "", "", "secrets"), shop), "shop", "shop"),
			want:  "NAMESPACE   RESOURCES      QUOTAS\nshop        pods,secrets   b,shop\n" + updates + edits + "No quota would have requests admitted.\n",
		},
		"none that refuses": {
			found: with(configured(closed, audit), "lab", "lab"),
			want: "Nothing would be refused.\n" + edits +
				"Quotas that would have requests admitted: audit (only the modes Warn and Audit).\n",
		},
		"all admit by default": {
			found: with(configured(open, shop), "shop", "shop"),
			want:  "Nothing would be refused.\nQuotas that would have requests admitted: shop (by --failure-policy=Ignore).\n",
		},
		"one that refuses, whatever is the default": {
			found: with(configured(open, teamQuota("shop", "shop", "", quotav1.UnavailableRefuse, "pods")), "shop", "shop"),
			want:  heading + "shop        pods        shop\n" + updates + "No quota would have requests admitted.\n",
		},
		"many namespaces with the same answer": {
			found: func() *reading.Outage {
				found := with(configured(closed, shop, teamQuota("blog", "blog", "", "", "pods")), "other", "blog")
				for i := range 12 {
					with(found, fmt.Sprintf("shop-%02d", i), "shop")
				}
				return found
			}(),
			want: "NAMESPACE                            RESOURCES   QUOTAS\n" +
				"other                                pods        blog\n" +
				"shop-00,shop-01,shop-02 and 9 more   pods        shop\n" + updates + edits + "No quota would have requests admitted.\n",
		},
		"no quotas": {found: with(configured(closed), "shop", "shop"), want: "Nothing would be refused.\n" + edits},
		"no configuration": {
			found: &reading.Outage{},
			want: "Nothing would be refused.\nThere is no webhook configuration shared-quota, so no quota is enforced: " +
				"is the operator installed here, and has it run?\n",
		},
		"quotas that may not be read": {
			found: func() *reading.Outage {
				found := with(configured(closed, shop, audit), "shop", "shop")
				found.Quotas, found.Forbidden = nil, []string{"clusterresourcequotas"}
				return found
			}(),
			want: heading + "shop        pods        -\n" + updates + edits +
				"You may not list ClusterResourceQuotas, so it isn't known for the sake of which quotas requests would be refused, " +
				"and which quotas would have them admitted.\n",
		},
		"namespaces that may not be read": {
			found: func() *reading.Outage {
				found := configured(closed, shop, audit, teamQuota("blog", "blog", "", "", "pods"))
				found.Forbidden = []string{"namespaces"}
				return found
			}(),
			namespace: "shop",
			want: "NAMESPACE                                                        RESOURCES   QUOTAS\n" +
				everywhere + "(blog)   pods        -\n" + everywhere + "(shop)   pods        -\n" + updates + edits +
				"Quotas that would have requests admitted: audit (only the modes Warn and Audit).\n" +
				"You may not read the namespace shop, so the selectors of the webhook configuration stand for the namespaces, " +
				"and the quotas of each aren't known.\n",
		},
		"a quota that was changed a moment ago": {
			found: func() *reading.Outage {
				found := with(configured(closed, shop), "shop", "shop")
				found.Quotas[0].Spec.Enforcement.Mode = quotav1.EnforcementWarn
				return found
			}(),
			want: heading + "shop        pods        -\n" + updates + edits +
				"Quotas that would have requests admitted: shop (only the modes Warn and Audit).\n" +
				"If no quota is named, none that selects the namespace has requests refused, and they are refused all the same: " +
				"because the resource is limited by default, because the webhook is called in more namespaces than are selected, " +
				"or because a quota was changed a moment ago.\n",
		},
		"an entry that somebody has narrowed": {
			found: func() *reading.Outage {
				found := with(configured(closed, shop), "shop", "shop")
				found.Configuration.Webhooks[1].ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"limited": "yes"}}
				return found
			}(),
			want: heading + "shop        pods        shop\n" + updates + edits + "No quota would have requests admitted.\n" +
				"Somebody has added conditions to the entry objects.quota.sharedquota.dev, so fewer requests may be refused than are listed.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, render.Outages(outageOf(test.found, test.namespace), render.Style{})); diff != "" {
				t.Errorf("answer (-want,+got):\n%s", diff)
			}
		})
	}
}
