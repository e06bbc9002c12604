// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
)

//go:embed manifests/*.yaml
var manifests embed.FS

// kubectl runs kubectl in a directory.
type kubectl interface {
	KubectlIn(ctx context.Context, dir string, stdin io.Reader, args ...string) (harness.KubectlResult, error)
}

// player plays a story and stops at the first step that doesn't come out as
// told.
type player struct {
	kubectl kubectl
	out     *screen
	// dir holds the story's manifests. Its commands are run there.
	dir string
	// operator is what the story stops and starts.
	operator process
}

// process is one that the story stops and starts.
type process interface {
	Stop() error
	Start(ctx context.Context) error
}

// What the story does to the operator.
const (
	stopOperator  = "kill $OPERATOR"
	startOperator = "bin/manager &"
)

// newPlayer writes the story's manifests to the cluster's directory.
func newPlayer(cluster *harness.Cluster, operator process, out *screen) (*player, error) {
	if err := os.CopyFS(cluster.Dir(), manifests); err != nil {
		return nil, fmt.Errorf("writing the manifests: %w", err)
	}
	return &player{kubectl: cluster, out: out, dir: filepath.Join(cluster.Dir(), "manifests"), operator: operator}, nil
}

// play returns how many steps it has played.
func (p *player) play(ctx context.Context, chapters []chapter) (int, error) {
	played := 0
	for i, chapter := range chapters {
		p.out.chapter(i+1, chapter.title)
		for _, step := range chapter.steps {
			if err := p.tell(ctx, step); err != nil {
				return played, fmt.Errorf("step %d did not come out as told: %w", played+1, err)
			}
			played++
		}
	}
	return played, nil
}

// tell plays one step for the reader.
func (p *player) tell(ctx context.Context, step step) error {
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

// perform runs the step's command, repeatedly if the step allows for time, and
// returns the last result. The error says what is wrong with it.
func (p *player) perform(ctx context.Context, step step) (harness.KubectlResult, error) {
	args, err := splitWords(step.run)
	if err != nil {
		return harness.KubectlResult{}, err
	}
	deadline, cancel := context.WithTimeout(ctx, step.within)
	defer cancel()
	ticker := time.NewTicker(repeatInterval)
	defer ticker.Stop()
	for {
		result, err := p.run(ctx, args)
		if err != nil {
			return result, err
		}
		wrong := judge(result, step.want)
		if wrong == nil {
			return result, nil
		}
		// Who interrupts the story isn't told that its step came out wrong.
		if err := ctx.Err(); err != nil {
			return result, err
		}
		if deadline.Err() != nil {
			return result, wrong
		}
		select {
		case <-ctx.Done():
			return result, ctx.Err()
		case <-ticker.C:
		}
	}
}

// run runs a command: kubectl, or cat of one file.
func (p *player) run(ctx context.Context, args []string) (harness.KubectlResult, error) {
	switch command := strings.Join(args, " "); {
	case command == stopOperator:
		return harness.KubectlResult{}, p.operator.Stop()
	case command == startOperator:
		return harness.KubectlResult{}, p.operator.Start(ctx)
	case len(args) == 2 && args[0] == "cat":
		content, err := os.ReadFile(filepath.Join(p.dir, args[1]))
		return harness.KubectlResult{Stdout: string(content)}, err
	case len(args) > 1 && args[0] == "kubectl":
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		return p.kubectl.KubectlIn(ctx, p.dir, nil, args[1:]...)
	default:
		return harness.KubectlResult{}, fmt.Errorf("no such command: %s", strings.Join(args, " "))
	}
}

// installed is what the people of the story need of config/: the owner's role,
// with the views in it, and the policy that knows which quotas she may create.
func installed() []string {
	return []string{
		"rbac/local_quota_view_role.yaml",
		"roles/project_owner.yaml",
		"roles/project_owner_subdivision.yaml",
		"policies/subdivision.yaml",
		"policies/subdivision_binding.yaml",
	}
}

// install applies those files of the directory config.
func (p *player) install(ctx context.Context, config string) error {
	config, err := filepath.Abs(config)
	if err != nil {
		return err
	}
	command := []string{"kubectl", "apply"}
	for _, file := range installed() {
		command = append(command, "-f", filepath.Join(config, filepath.FromSlash(file)))
	}
	result, err := p.run(ctx, command)
	if err := errors.Join(err, judge(result, []check{succeeds})); err != nil {
		return fmt.Errorf("installing roles and policies: %w\n%s", err, printed(result))
	}
	return nil
}
