// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// apiServer answers discovery: path -> body. A path that isn't named is not
// found.
type apiServer map[string]string

func (s apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, known := s[r.URL.Path]
	switch {
	case !known:
		http.NotFound(w, r)
	case body == "down":
		http.Error(w, "the service is unavailable", http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	}
}

func liveDiscovery(t *testing.T, handler http.Handler) *LiveDiscovery {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	discovery, err := NewLiveDiscovery(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return discovery
}

// groupList has group example.com with these versions, the preferred one among
// them, and another group.
func groupList(preferred string, versions ...string) string {
	named := func(version string) string {
		return `{"groupVersion":"example.com/` + version + `","version":"` + version + `"}`
	}
	var all []string
	for _, version := range versions {
		all = append(all, named(version))
	}
	return `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]},` +
		`{"name":"example.com","versions":[` + strings.Join(all, ",") + `],"preferredVersion":` + named(preferred) + `}]}`
}

// resourceList has resources of a version, in namespaces unless they begin with a
// slash.
func resourceList(version string, names ...string) string {
	var all []string
	for _, name := range names {
		bare, clusterScoped := strings.CutPrefix(name, "/")
		namespaced := "true"
		if clusterScoped {
			namespaced = "false"
		}
		all = append(all, `{"name":"`+bare+`","namespaced":`+namespaced+`,"kind":"K","verbs":["list","watch"]}`)
	}
	return `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"` + version + `","resources":[` + strings.Join(all, ",") + `]}`
}

func TestDiscoveryKnowsWhatIsServedAndWhatNobodyKnows(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	for name, test := range map[string]struct {
		server   apiServer
		resource schema.GroupResource
		want     Served
		err      string
	}{
		"one version": {
			server:   apiServer{"/apis": groupList("v1", "v1"), "/apis/example.com/v1": resourceList("example.com/v1", "others", "gadgets", "gadgets/status")},
			resource: gadgets, want: Served{Versions: []string{"v1"}, Namespaced: true},
		},
		"the preferred one comes first": {
			server: apiServer{
				"/apis": groupList("v1", "v2alpha1", "v1", "v1beta1"), "/apis/example.com/v1": resourceList("example.com/v1", "gadgets"),
				"/apis/example.com/v2alpha1": resourceList("example.com/v2alpha1", "gadgets"), "/apis/example.com/v1beta1": resourceList("example.com/v1beta1", "gadgets"),
			},
			resource: gadgets, want: Served{Versions: []string{"v1", "v2alpha1", "v1beta1"}, Namespaced: true},
		},
		"the preferred version of the group doesn't have it": {
			server: apiServer{
				"/apis": groupList("v1", "v1", "v1beta1"), "/apis/example.com/v1": resourceList("example.com/v1", "others"),
				"/apis/example.com/v1beta1": resourceList("example.com/v1beta1", "gadgets"),
			},
			resource: gadgets, want: Served{Versions: []string{"v1beta1"}, Namespaced: true},
		},
		"one version is down, another has it": {
			server: apiServer{
				"/apis": groupList("v1", "v1", "v1beta1"), "/apis/example.com/v1": "down",
				"/apis/example.com/v1beta1": resourceList("example.com/v1beta1", "gadgets"),
			},
			resource: gadgets, want: Served{Versions: []string{"v1beta1"}, Namespaced: true},
		},
		"one version is down, another doesn't have it": {
			server: apiServer{
				"/apis": groupList("v1", "v1", "v1beta1"), "/apis/example.com/v1": "down",
				"/apis/example.com/v1beta1": resourceList("example.com/v1beta1", "others"),
			},
			resource: gadgets, err: "example.com/v1",
		},
		"a version is named and not found": {
			server: apiServer{"/apis": groupList("v1", "v1")}, resource: gadgets, err: "example.com/v1",
		},
		"the group has gone": {
			server: apiServer{"/apis": groupList("v1", "v1")}, resource: schema.GroupResource{Group: "gone.example.com", Resource: "gadgets"},
		},
		"only a subresource is left": {
			server: apiServer{"/apis": groupList("v1", "v1"), "/apis/example.com/v1": resourceList("example.com/v1", "gadgets/status")}, resource: gadgets,
		},
		"outside of namespaces": {
			server:   apiServer{"/apis": groupList("v1", "v1"), "/apis/example.com/v1": resourceList("example.com/v1", "/gadgets")},
			resource: gadgets, want: Served{Versions: []string{"v1"}},
		},
		"of the core": {
			server:   apiServer{"/api/v1": resourceList("v1", "/nodes", "configmaps")},
			resource: configMaps, want: Served{Versions: []string{"v1"}, Namespaced: true},
		},
		"the core is not found": {server: apiServer{}, resource: configMaps, err: errNoResources.Error()},
		"no groups at all": {
			server: apiServer{"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`}, resource: gadgets, err: errNoGroups.Error(),
		},
		"the groups are not found": {server: apiServer{}, resource: gadgets, err: "groups"},
		"the groups are down":      {server: apiServer{"/apis": "down"}, resource: gadgets, err: "groups"},
		"something else answers":   {server: apiServer{"/apis": `{"hello":"world"}`}, resource: gadgets, err: errNoGroups.Error()},
		"something else answers for a version": {
			server: apiServer{"/apis": groupList("v1", "v1"), "/apis/example.com/v1": `{"hello":"world"}`}, resource: gadgets,
			err: errNoResources.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := liveDiscovery(t, test.server).Find(t.Context(), test.resource)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("want an error with %q, got %v", test.err, err)
			}
		})
	}
}

// silent is an API server that never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestDiscoveryHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		discovery, err := NewLiveDiscovery(&rest.Config{}, &http.Client{Transport: silent{}})
		if err != nil {
			t.Fatal(err)
		}
		begin := clock.RealClock{}.Now()
		if got, err := discovery.Find(t.Context(), gadgets); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v", got, err)
		}
		if took := (clock.RealClock{}).Since(begin); took != discoveryTimeout {
			t.Errorf("took %s", took)
		}
	})
}
