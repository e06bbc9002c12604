// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// gitTimeout bounds a question to git, which only reads what is here.
const gitTimeout = time.Minute

// checkTree says what keeps the tree from being that of a release. With -strict, that is an error.
func checkTree(args []string) error {
	flags := newFlags("check")
	text := flags.String("version", "", versionUsage)
	name := flags.String("image", "", "Image of the operator.")
	root := flags.String("root", ".", "Root of the repository.")
	strict := flags.Bool("strict", false, "Fail unless the tree is that of the version's tag.")
	if err := parse(flags, args); err != nil {
		return err
	}
	version, err := parseVersion(*text)
	if err != nil {
		return err
	}
	if err := checkImage(*name); err != nil {
		return err
	}
	doubts, err := doubts(*root, "v"+version.String())
	if err != nil {
		return err
	}
	if _, err := notes(*root, version.String()); err != nil {
		doubts = append(doubts, err.Error())
	}
	if len(doubts) > 0 && *strict {
		return errors.New(strings.Join(doubts, "; "))
	}
	for _, doubt := range doubts {
		fmt.Fprintln(os.Stderr, "warning:", doubt)
	}
	return nil
}

// doubts are reasons why files made from the tree aren't those of the tag.
func doubts(root, tag string) ([]string, error) {
	var doubts []string
	status, err := git(root, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changed := lines(status); len(changed) > 0 {
		doubts = append(doubts, fmt.Sprintf(
			"the tree is dirty: %d files differ from the commit, the first is %s", len(changed), changed[0][3:]))
	}
	tags, err := git(root, "tag", "--points-at", "HEAD")
	if err != nil {
		return nil, err
	}
	if !slices.Contains(lines(tags), tag) {
		commit, err := git(root, "rev-parse", "--short", "HEAD")
		if err != nil {
			return nil, err
		}
		doubts = append(doubts, fmt.Sprintf("the commit %s doesn't have the tag %s", strings.TrimSpace(commit), tag))
	}
	return doubts, nil
}

func lines(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return line == "" })
}

// commitTime is when the commit was made: the time of all that is packed.
func commitTime(root string) (time.Time, error) {
	text, err := git(root, "log", "-1", "--format=%ct")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the commit's time: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func git(root string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	return output(exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...))
}

// output runs a command, and returns what it prints. Its error has what it said of it.
func output(command *exec.Cmd) (string, error) {
	printed, err := command.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command.Args, " "), err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(command.Args, " "), err)
	}
	return string(printed), nil
}

// notes are what the changelog says of a version.
func notes(root, version string) (string, error) {
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	_, section, found := strings.Cut(string(changelog), "\n## ["+version+"]")
	if !found {
		return "", fmt.Errorf("CHANGELOG.md has no section [%s]", version)
	}
	_, section, _ = strings.Cut(section, "\n")
	section, _, _ = strings.Cut(section, "\n## [")
	return strings.TrimSpace(section) + "\n", nil
}
