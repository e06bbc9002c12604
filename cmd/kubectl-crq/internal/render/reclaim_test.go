// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import "testing"

func TestReclaimText(t *testing.T) {
	freed := func(pairs ...string) []Freed { return []Freed{{Quota: "crq/payments", Amounts: list(pairs...)}} }
	found := &Reclaim{
		Namespaces: []ReclaimNamespace{
			{
				Namespace: "shop", Tightest: Tightest{Quota: "crq/payments", Resource: "requests.cpu", Percent: 92},
				Findings: []Finding{
					{
						ObjectName: ObjectName{"Deployment", "web"}, Finding: PodsIdle, Frees: freed("pods", "2", "requests.cpu", "500m"),
						Message: "2 pods pending, for up to 3h: 0/3 nodes are available.", Command: "kubectl scale deployment/web --replicas=3 -n shop",
					},
					{
						ObjectName: ObjectName{"PersistentVolumeClaim", "data-db-3"}, Finding: ClaimUnused, Frees: freed("requests.storage", "5Gi"),
						Message: "no pod uses it. It was created 3d ago, and is kept by StatefulSet db, ordinal 3.",
						Caution: "its data is there for when that has pods again.",
					},
					{
						ObjectName: ObjectName{"PersistentVolumeClaim", "lost"}, Finding: ClaimUnused, Frees: freed("requests.storage", "1Gi"),
						Message: "no pod uses it. It was created 3d ago.", Command: "kubectl delete persistentvolumeclaim/lost -n shop",
						Caution: "its data is lost, unless the volume's reclaim policy is Retain.",
					},
				},
			},
			{
				Namespace: "tools", Tightest: Tightest{Quota: "quota/default", Resource: "pods", Percent: 100},
				Findings: []Finding{{ObjectName: ObjectName{"Job", "import"}, Message: "completed 3d ago, and still counts.", Command: "kubectl delete job/import -n tools"}},
			},
		},
		Notes: []string{"You may not read endpointslices: what depends on that isn't looked for."},
	}
	for name, style := range styles {
		t.Run(name, func(t *testing.T) { wantGolden(t, "reclaim-"+name, ReclaimText(found, style)) })
	}
	t.Run("nothing", func(t *testing.T) { wantGolden(t, "reclaim-nothing", ReclaimText(&Reclaim{}, Style{})) })
}
