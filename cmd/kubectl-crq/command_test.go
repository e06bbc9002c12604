// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func TestMessage(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://x", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	forbidden := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "quota.sharedquota.dev", Resource: resource}, "", errors.New("no right"))
	}
	const (
		clusterForbidden = `clusterresourcequotas.quota.sharedquota.dev is forbidden: no right`
		viewForbidden    = `localresourcequotas.quota.sharedquota.dev is forbidden: no right`
	)
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"anything":                       {errors.New("this"), "this; see kubectl crq top --help, correct what the error names, and try again"},
		"a kind that isn't here":         {&meta.NoKindMatchError{}, outcomes.NotInstalled.Text()},
		"a quota forbidden":              {forbidden("clusterresourcequotas"), clusterForbidden + outcomes.MayNotSee.Next},
		"a view forbidden":               {forbidden("localresourcequotas"), viewForbidden + outcomes.MayNotSeeViews.Next},
		"too slow":                       {context.DeadlineExceeded, "context deadline exceeded" + outcomes.TookTooLong.Next},
		"no server there":                {refused, `Get "https://x": dial: connection refused` + outcomes.NoAnswer.Next},
		"a name that isn't there":        {apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web"), `pods "web" not found` + outcomes.NotThere.Next},
		"a right that the request lacks": {apierrors.NewBadRequest("no"), "no" + outcomes.ServerSays.Next},
		"one that has a next step":       {fmt.Errorf("reading: %w", outcomes.NoFile.Err()), "reading: " + outcomes.NoFile.Text()},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, advised(c.err, "kubectl crq top").Error()); diff != "" {
				t.Errorf("message (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	for name, c := range map[string]struct{ called, want []string }{
		"as a plugin":    {[]string{"/usr/bin/kubectl-crq", "top", "x"}, []string{"top", "x"}},
		"for completion": {[]string{"/usr/bin/kubectl_complete-crq", "top", ""}, []string{"__complete", "top", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Arguments(c.called)); diff != "" {
				t.Errorf("arguments (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestFrame(t *testing.T) {
	const eol = endOfLine
	for name, c := range map[string]struct {
		height int
		want   string
	}{
		"all of it fits":        {height: 7, want: home + "a" + eol + "b" + eol + "c" + eol + "d" + eol + eol + "now" + eol + endOfScreen},
		"an unknown height":     {height: 0, want: home + "a" + eol + "b" + eol + "c" + eol + "d" + eol + eol + "now" + eol + endOfScreen},
		"too much of it":        {height: 6, want: home + "a" + eol + "b" + eol + "… 2 more lines: make the window higher, or name a quota" + eol + eol + "now" + eol + endOfScreen},
		"no room for any of it": {height: 2, want: home + "… 4 more lines: make the window higher, or name a quota" + eol + eol + "now" + eol + endOfScreen},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, frame("a\nb\nc\nd\n", "now", c.height)); diff != "" {
				t.Errorf("frame (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestNotesOfAQuota(t *testing.T) {
	quota := builders.Quota("team").Obj()
	quota.Status.Conditions = []metav1.Condition{
		{Type: quotav1.ConditionEnforced, Status: metav1.ConditionTrue},
		{Type: quotav1.ConditionResourceUnavailable, Status: metav1.ConditionTrue, Reason: "NotLimitable", Message: "write count/jobs.batch"},
	}
	want := []string{
		"Its condition Ready isn't there yet: is the operator running?",
		"A part of it limits nothing, or isn't counted (NotLimitable): write count/jobs.batch",
	}
	if diff := cmp.Diff(want, notes(quota)); diff != "" {
		t.Errorf("notes (-want,+got):\n%s", diff)
	}
}
