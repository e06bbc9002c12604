// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// row is a row of the tables in the documentation of ResourceQuota: one name,
// and an object that uses something of it.
type row struct {
	limited  corev1.ResourceName
	resource schema.GroupResource
	object   runtime.Object
	want     string
}

func computeRows() map[string]row {
	return map[string]row{
		"an init container that needs more sets the CPU limit":      {"limits.cpu", pods(), typicalPod(), "2"},
		"limits of memory add up over containers that run together": {"limits.memory", pods(), typicalPod(), "1152Mi"},
		"an init container that needs more sets the CPU request":    {"requests.cpu", pods(), typicalPod(), "2"},
		"requests of memory add up":                                 {"requests.memory", pods(), typicalPod(), "1152Mi"},
		"cpu is the same as requests.cpu":                           {"cpu", pods(), typicalPod(), "2"},
		"memory is the same as requests.memory":                     {"memory", pods(), typicalPod(), "1152Mi"},
		"requests of local storage":                                 {"requests.ephemeral-storage", pods(), typicalPod(), "2Gi"},
		"limits of local storage":                                   {"limits.ephemeral-storage", pods(), typicalPod(), "4Gi"},
		"ephemeral-storage is the same as its requests":             {"ephemeral-storage", pods(), typicalPod(), "2Gi"},
		"huge pages of one size": {"hugepages-2Mi", pods(),
			podOf(container("db", amountsOf("hugepages-2Mi", "64Mi", "hugepages-1Gi", "2Gi"), nil)), "64Mi"},
		"requests of huge pages are the same": {"requests.hugepages-1Gi", pods(),
			podOf(container("db", amountsOf("hugepages-1Gi", "2Gi"), nil)), "2Gi"},
		"extended resources, by their requests": {"requests.vndr.example/gpu", pods(),
			podOf(container("train", amountsOf("vndr.example/gpu", "3"), nil)), "3"},
	}
}

func storageRows() map[string]row {
	gold := volumeClaimOf("gold", "10Gi")
	return map[string]row{
		"storage over all classes":    {"requests.storage", volumeClaims(), gold, "10Gi"},
		"claims over all classes":     {"persistentvolumeclaims", volumeClaims(), gold, "1"},
		"storage of one class":        {"gold.storageclass.storage.k8s.io/requests.storage", volumeClaims(), gold, "10Gi"},
		"claims of one class":         {"gold.storageclass.storage.k8s.io/persistentvolumeclaims", volumeClaims(), gold, "1"},
		"devices of one class":        {"gpu.deviceclass.resource.k8s.io/devices", resourceClaims(), resourceClaimOf(exactly("gpu", 4)), "4"},
		"devices by implicit name":    {"requests.deviceclass.resource.kubernetes.io/gpu", pods(), podOf(container("train", amountsOf("deviceclass.resource.kubernetes.io/gpu", "2"), nil)), "2"},
		"load balancers' ports":       {"services.nodeports", services(), serviceOf(corev1.ServiceTypeLoadBalancer, 0, 0, 0), "3"},
		"resource claims are counted": {"count/resourceclaims.resource.k8s.io", resourceClaims(), resourceClaimOf(), "1"},
	}
}

// limitRows are the rows of builders.Limits. Objects of which only metadata is needed are reduced to that.
func limitRows() map[string]row {
	rows := map[string]row{}
	for _, limit := range builders.Limits() {
		var object runtime.Object = limit.Object("team-a", "object")
		kind, err := apiutil.GVKForObject(object, scheme.Scheme)
		if err != nil {
			panic(err)
		}
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		if !NeedsObject(resource.GroupResource()) {
			object = metadataOf(kind.Kind)
		}
		rows[string(limit.Name)] = row{limit.Name, resource.GroupResource(), object, limit.Unit}
	}
	return rows
}

func TestEveryDocumentedNameIsChargedAndCounted(t *testing.T) {
	for table, rows := range map[string]map[string]row{
		"compute": computeRows(), "storage": storageRows(), "limit": limitRows(),
	} {
		for name, row := range rows {
			t.Run(table+"/"+name, func(t *testing.T) { testRow(t, row) })
		}
	}
}

// Names may have a placeholder in the page.
func TestEveryNameIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/administrator.md")
	if err != nil {
		t.Fatal(err)
	}
	placeholders := strings.NewReplacer("gold.", "CLASS.", "fpga.", "CLASS.", "-2Mi", "-SIZE", "vndr.example/gpu", "DOMAIN/NAME",
		"deviceclass.resource.kubernetes.io/fpga", "DOMAIN/NAME")
	for _, limit := range builders.Limits() {
		name := placeholders.Replace(string(limit.Name))
		if !strings.HasPrefix(name, countPrefix) && !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/administrator.md, What can be limited: %s is missing", name)
		}
	}
}

// testRow creates the row's object under a quota that limits the row's name and a
// quota that limits something else.
func testRow(t *testing.T, row row) {
	evaluators := New(clockAt{now: testNow()}, ClaimSources{DeviceClasses: deviceClasses("fpga", "vndr.example/fpga")})
	quotas := []Quota{quotaOf("other", "count/others.example.com"), quotaOf("limited", row.limited)}
	want := amountsOf(string(row.limited), row.want)

	charges, err := evaluators.Charges(creation(row.resource, row.object), quotas)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Charge{{Quota: "limited", Amounts: want}}, charges); diff != "" {
		t.Errorf("charges (-want,+got):\n%s", diff)
	}

	footprint, err := evaluators.Footprint(row.resource, row.object)
	if err != nil {
		t.Fatal(err)
	}
	usage, err := evaluators.Usage(row.resource, footprint, quotas[1], testNow())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, usage); diff != "" {
		t.Errorf("usage (-want,+got):\n%s", diff)
	}
}
