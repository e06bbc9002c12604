// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	// commandTimeout is how long one command may take.
	commandTimeout = 90 * time.Second
	// repeatInterval is the pause between two tries of a command that is
	// repeated until it comes out as told.
	repeatInterval = 250 * time.Millisecond
	// soon is for what the operator or a controller does on its own account. It
	// takes a moment; the rest is for a machine that is busy.
	soon = 60 * time.Second
)

// chapter is a part of the story.
type chapter struct {
	title string
	steps []step
}

// step is one command of the story, and what must come of it.
type step struct {
	// say is what the story tells before the command.
	say string
	// run is the command as a person would type it.
	run string
	// repeat: the command is repeated until it comes out as told, but not for long. Else it must do so the first time.
	repeat bool
	// fails: its exit code is 1, because it is refused, or its answer is no.
	fails bool
	// says are regular expressions of what is printed, and hides of what isn't.
	says, hides []string
}

// check returns what a result lacks, nil if it is as told.
func (s *step) check(result harness.KubectlResult) error {
	if want := map[bool]int{true: 1}[s.fails]; result.ExitCode != want {
		return fmt.Errorf("the exit code should be %d, but is %d", want, result.ExitCode)
	}
	for _, text := range s.says {
		if !regexp.MustCompile(text).MatchString(printed(result)) {
			return fmt.Errorf("should say %q", text)
		}
	}
	for _, text := range s.hides {
		if regexp.MustCompile(text).MatchString(printed(result)) {
			return fmt.Errorf("should not say %q", text)
		}
	}
	return nil
}

func printed(result harness.KubectlResult) string {
	return result.Stdout + result.Stderr
}

//go:embed manifests/*.yaml
var manifests embed.FS

// player plays a story and stops at the first step that doesn't come out as
// told.
type player struct {
	// shell runs a command line in the directory of the story's manifests.
	shell func(ctx context.Context, line string) (harness.KubectlResult, error)
	out   *screen
	dir   string
	// operator is what the story stops and starts.
	operator *operator
}

// What the story does to the operator.
const (
	stopOperator  = "kill $OPERATOR"
	startOperator = "bin/manager &"
)

// newPlayer writes the story's manifests to the cluster's directory.
func newPlayer(cluster *harness.Cluster, operator *operator, out *screen) (*player, error) {
	if err := os.CopyFS(cluster.Dir(), manifests); err != nil {
		return nil, fmt.Errorf("writing the manifests: %w", err)
	}
	dir := filepath.Join(cluster.Dir(), "manifests")
	shell := func(ctx context.Context, line string) (harness.KubectlResult, error) {
		return cluster.Shell(ctx, dir, line)
	}
	return &player{shell: shell, out: out, dir: dir, operator: operator}, nil
}

// play returns how many steps it has played.
func (p *player) play(ctx context.Context, chapters []chapter) (int, error) {
	played := 0
	for i, chapter := range chapters {
		p.out.chapter(i+1, chapter.title)
		for _, step := range chapter.steps {
			if err := p.tell(ctx, &step); err != nil {
				return played, fmt.Errorf("step %d did not come out as told: %w", played+1, err)
			}
			played++
		}
	}
	return played, nil
}

// tell plays one step for the reader.
func (p *player) tell(ctx context.Context, step *step) error {
	if step.say != "" {
		p.out.say(step.say)
	}
	p.out.command(step.run)
	result, err := p.perform(ctx, step)
	p.out.output(printed(result))
	if err != nil {
		return fmt.Errorf("%w\n  command: %s\n  exit code: %d\n  output:\n%s", err, step.run, result.ExitCode, printed(result))
	}
	return nil
}

// perform runs the step's command, repeatedly if the step allows for that, and
// returns the last result. The error says what is wrong with it.
func (p *player) perform(ctx context.Context, step *step) (harness.KubectlResult, error) {
	deadline := time.Now().Add(soon)
	ticker := time.NewTicker(repeatInterval)
	defer ticker.Stop()
	for {
		result, err := p.run(ctx, step.run)
		if err != nil {
			return result, err
		}
		wrong := step.check(result)
		if wrong == nil || !step.repeat || time.Now().After(deadline) {
			return result, wrong
		}
		select {
		case <-ctx.Done():
			return result, ctx.Err()
		case <-ticker.C:
		}
	}
}

func (p *player) run(ctx context.Context, line string) (harness.KubectlResult, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	switch line {
	case stopOperator:
		return harness.KubectlResult{}, p.operator.running.Stop()
	case startOperator:
		return harness.KubectlResult{}, p.operator.Start(ctx)
	default:
		return p.shell(ctx, line)
	}
}

// installed is what the people of the story need of config/: the owner's role,
// with the views in it, and the policy that knows which quotas she may create.
var installed = []string{
	"rbac/local_quota_view_role.yaml",
	"rbac/project_owner_role.yaml",
	"rbac/project_owner_subdivision_role.yaml",
	"policies/subdivision.yaml",
	"policies/subdivision_binding.yaml",
}

// install applies those files of the directory config.
func (p *player) install(ctx context.Context, config string) error {
	config, err := filepath.Abs(config)
	if err != nil {
		return err
	}
	var command strings.Builder
	command.WriteString("kubectl apply")
	for _, file := range installed {
		fmt.Fprintf(&command, " -f '%s'", filepath.Join(config, filepath.FromSlash(file)))
	}
	result, err := p.run(ctx, command.String())
	if err := errors.Join(err, (&step{}).check(result)); err != nil {
		return fmt.Errorf("installing roles and policies: %w\n%s", err, printed(result))
	}
	return nil
}
