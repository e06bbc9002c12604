// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// check returns an error that says what a result lacks, nil if it is as told.
type check func(harness.KubectlResult) error

// succeeds wants that the command did its work.
func succeeds(result harness.KubectlResult) error {
	if result.ExitCode != 0 {
		return fmt.Errorf("should succeed, but its exit code is %d", result.ExitCode)
	}
	return nil
}

// refused wants that the API server refused the command, and not that it failed
// in another way. kubectl has three ways to say so.
func refused(result harness.KubectlResult) error {
	if result.ExitCode == 0 {
		return errors.New("should be refused, but it succeeded")
	}
	for _, text := range []string{"Error from server (Forbidden)", "denied the request: ", " is forbidden: "} {
		if says(text)(result) == nil {
			return nil
		}
	}
	return errors.New("should be refused, but it failed in another way")
}

// answersNo wants the exit code of a command whose answer is yes or no.
func answersNo(result harness.KubectlResult) error {
	if result.ExitCode != 1 {
		return fmt.Errorf("should exit with code 1, but its exit code is %d", result.ExitCode)
	}
	return nil
}

// unanswered wants that the API server got no answer from the operator, and
// refused the command for it.
func unanswered(result harness.KubectlResult) error {
	if result.ExitCode == 0 {
		return errors.New("should be refused, but it succeeded")
	}
	return says(`failed calling webhook "objects.quota.sharedquota.dev"`)(result)
}

// says wants each of the texts in what was printed, whether to stdout or stderr.
func says(texts ...string) check {
	return func(result harness.KubectlResult) error {
		for _, text := range texts {
			if !strings.Contains(printed(result), text) {
				return fmt.Errorf("should say %q", text)
			}
		}
		return nil
	}
}

// exceeds wants the words with which the quota refuses one more of a resource
// that is used up to its limit.
func exceeds(resource, limit string) check {
	return says(fmt.Sprintf("exceeded quota: payments, requested: %[1]s=1, used: %[1]s=%[2]s, limited: %[1]s=%[2]s", resource, limit))
}

// doesNotSay wants none of the texts in what was printed.
func doesNotSay(texts ...string) check {
	return func(result harness.KubectlResult) error {
		for _, text := range texts {
			if strings.Contains(printed(result), text) {
				return fmt.Errorf("should not say %q", text)
			}
		}
		return nil
	}
}

// matches wants that what was printed matches the regular expression.
func matches(expression string) check {
	compiled := regexp.MustCompile(expression)
	return func(result harness.KubectlResult) error {
		if !compiled.MatchString(printed(result)) {
			return fmt.Errorf("should match %s", expression)
		}
		return nil
	}
}

func printed(result harness.KubectlResult) string {
	return result.Stdout + result.Stderr
}

// judge returns what the first check that isn't satisfied says.
func judge(result harness.KubectlResult, checks []check) error {
	for _, check := range checks {
		if err := check(result); err != nil {
			return err
		}
	}
	return nil
}
