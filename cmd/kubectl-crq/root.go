// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Exit statuses. A command whose answer is yes or no keeps 1 for no, and ends with statusUnanswered when it can't tell.
const (
	statusNo         = 1
	statusFailed     = 1
	statusUnanswered = 2
)

// version is set by the linker for a release.
var version = "dev"

// answers is the annotation of a command whose answer is yes or no.
const answers = "answers"

// errNo is returned by a command whose answer is no. It has said so.
var errNo = errors.New("no")

// Run runs the command line, without the program's name, and returns the exit status.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	root := newRoot(newEnvironment(streams))
	root.SetArgs(args)
	ran, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errNo):
		return statusNo
	}
	root.PrintErrln("error:", advised(err, ran.CommandPath()))
	if _, yesOrNo := ran.Annotations[answers]; yesOrNo {
		return statusUnanswered
	}
	return statusFailed
}

func newRoot(env *environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-crq",
		Short: "Look at what namespaces share under ClusterResourceQuotas",
		Long: "Look at what namespaces share under ClusterResourceQuotas: who uses what, " +
			"what is left, and whether the next thing fits.",
		// kubectl crq is how it is called; help says so.
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl crq"},
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		// kubectl completes the arguments of kubectl crq.
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(env.streams.In)
	root.SetOut(env.streams.Out)
	root.SetErr(env.streams.ErrOut)
	env.config.AddFlags(root.PersistentFlags())
	// It fails for a flag that doesn't exist.
	_ = root.RegisterFlagCompletionFunc("namespace", env.completeNamespaces)
	for _, made := range commands() {
		root.AddCommand(made(env))
	}
	return root
}

// commands are all of them, by name.
func commands() []func(*environment) *cobra.Command {
	return []func(*environment) *cobra.Command{
		newConvert,
		newDescribe,
		newExplain,
		newFit,
		newReclaim,
		newReservations,
		newTop,
		newWhy,
	}
}
