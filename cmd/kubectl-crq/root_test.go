// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

func TestEveryCommandIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubectl-crq.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range commands() {
		name := made(newEnvironment(genericiooptions.NewTestIOStreamsDiscard())).Name()
		for _, want := range []string{"\n| [`" + name + "`](#" + name + ") | ", "\n## " + name + "\n"} {
			if !strings.Contains(string(page), want) {
				t.Errorf("docs/kubectl-crq.md: %q is missing", want)
			}
		}
	}
}

// The commands that take files need no cluster, or more than the file.
func TestEveryCommandSaysThatThereIsNoCluster(t *testing.T) {
	klog.SetLogger(logr.Discard())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	for _, made := range commands() {
		command := made(newEnvironment(genericiooptions.NewTestIOStreamsDiscard()))
		_, example, ok := strings.Cut("\n"+command.Example, "\n  kubectl crq "+command.Name())
		args, _, _ := strings.Cut(example, "\n")
		if strings.Contains(command.Use, "-f FILE") {
			continue
		}
		t.Run(command.Name(), func(t *testing.T) {
			if !ok || command.Short == "" {
				t.Fatalf("want an example and a summary, got %q, %q", command.Example, command.Short)
			}
			var said bytes.Buffer
			streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &said, ErrOut: &said}
			status := Run(t.Context(), append(append([]string{command.Name()}, strings.Fields(args)...), "--server=https://127.0.0.1:1"), streams)
			_, yesOrNo := command.Annotations[answers]
			want := map[bool]int{false: statusFailed, true: statusUnanswered}[yesOrNo]
			if status != want || !strings.Contains(said.String(), outcomes.NoAnswer.Next) {
				t.Errorf("status %d, want %d: %s", status, want, said.String())
			}
		})
	}
}
