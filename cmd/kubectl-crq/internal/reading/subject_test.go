// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"strings"
	"testing"
)

func TestParseSubject(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
		fail string
	}{
		"a kind and a name":       {args: []string{"deployment/web"}, want: "Deployment web"},
		"apart":                   {args: []string{"deployment", "web"}, want: "Deployment web"},
		"a short name":            {args: []string{"deploy/web"}, want: "Deployment web"},
		"a plural":                {args: []string{"statefulsets", "db"}, want: "StatefulSet db"},
		"with its group":          {args: []string{"deployment.apps/web"}, want: "Deployment web"},
		"in capitals":             {args: []string{"Job/import"}, want: "Job import"},
		"an autoscaler":           {args: []string{"hpa/web"}, want: "HorizontalPodAutoscaler web"},
		"of another group":        {args: []string{"deployment.example/web"}, fail: `unknown kind "deployment.example": want one of deployment, `},
		"of an unknown kind":      {args: []string{"secret/web"}, fail: `unknown kind "secret"`},
		"without a name":          {args: []string{"deployment"}, fail: wantSubject},
		"with a name of nothing":  {args: []string{"deployment/"}, fail: wantSubject},
		"with two names":          {args: []string{"deployment/web/x"}, fail: wantSubject},
		"with a slash too many":   {args: []string{"deployment", "pod/web"}, fail: wantSubject},
		"without anything at all": {fail: wantSubject},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseSubject(test.args)
			if test.fail != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.fail) {
					t.Fatalf("got %v, want an error that begins with %q", err, test.fail)
				}
				return
			}
			if err != nil || got.GroupVersionKind.Kind+" "+got.Name != test.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestTheMapperKnowsEachKindByItsPlural(t *testing.T) {
	mapper := Mapper()
	for _, kind := range Kinds() {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil || mapping.Resource != kind.Resource() {
			t.Errorf("%s: got %v, %v", kind.Kind, mapping, err)
		}
	}
}
