// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	clocktesting "k8s.io/utils/clock/testing"
)

// The counted use of a claim is taken off again when its class has come to offer
// something else: the same amount, of the same limit.
func TestAClaimUsesWhatItsClassOfferedAsItWasMeasured(t *testing.T) {
	offers := deviceClasses("gpu", "vndr.example/gpu")
	evaluators := New(clocktesting.NewFakeClock(testNow()), ClaimSources{
		DeviceClasses: func() *extendedresourcecache.ExtendedResourceCache { return offers() },
	})
	claims := resourceClaims()
	measure := func() Footprint {
		footprint, err := evaluators.Footprint(claims, resourceClaimOf(exactly("gpu", 3)))
		if err != nil {
			t.Fatal(err)
		}
		return footprint
	}
	before := measure()
	if before != measure() {
		t.Error("claims that use the same are told apart")
	}
	offers = deviceClasses("gpu", "vndr.example/other")
	after := measure()
	const limit = "requests.vndr.example/gpu"
	for name, test := range map[string]struct {
		footprint Footprint
		want      string
	}{"before": {before, "3"}, "after": {footprint: after}} {
		want := amountsOf()
		if test.want != "" {
			want = amountsOf(limit, test.want)
		}
		got, err := evaluators.Usage(claims, test.footprint, quotaOf("team", limit), time.Time{})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s (-want,+got):\n%s%v", name, diff, err)
		}
	}
}
