// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	// Deadline is what anything may take on a machine that is busy with builds.
	Deadline = 60 * time.Second
	// Poll is how long Eventually waits between two looks.
	Poll = 50 * time.Millisecond
	// BuildTimeout covers a build of the operator from nothing.
	BuildTimeout = 15 * time.Minute
	// longestFailure is how many lines of a failure are told again.
	longestFailure = 12
)

// Run runs those specs of the calling package that the control plane is new enough for; timeout is for all of them and for what
// comes before. Eventually goes by Deadline and Poll, and ends with the context that it
// is given; a suite with waits of its own sets them in its BeforeSuite. A spec that fails
// is told with the end of the operators' logs, and why it failed is told again after all others, where people look first.
func Run(t *testing.T, description string, timeout time.Duration) {
	t.Helper()
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(Deadline)
	SetDefaultEventuallyPollingInterval(Poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	// What libraries log is told with the spec that fails.
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	tested, err := harness.KubernetesVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	JustAfterEach(reportLogs)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout, suite.SemVerFilter = timeout, tested
	var failures []string
	ReportAfterSuite("", func(report Report) {
		for _, spec := range report.SpecReports.WithState(types.SpecStateFailureStates) {
			said := strings.Split(spec.FailureMessage(), "\n") // and then, perhaps, all fields of an error
			failures = append(failures, spec.FullText()+": "+strings.Join(said[:min(longestFailure, len(said))], "\n"))
		}
	})
	if !RunSpecs(t, description, suite, reporter) {
		t.Log(strings.Join(failures, "\n"))
	}
}

// Async builds something while the caller goes on, to start the control plane. If it
// fails, so does the spec, and the channel is closed with nothing in it.
func Async[T any](ctx context.Context, build func(context.Context) T) <-chan T {
	built := make(chan T, 1)
	go func() {
		defer GinkgoRecover()
		defer close(built)
		built <- build(ctx)
	}()
	return built
}
