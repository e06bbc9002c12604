// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// deadline and poll are shorter than other suites': many specs wait often.
	deadline = 30 * time.Second
	poll     = 20 * time.Millisecond
	// reservationTTL is the shortest that the operator takes.
	reservationTTL = 40 * time.Second
	// longest is the priority of containers with the longest specs. They begin first, so that
	// none of them keeps a process busy after the others are done.
	longest = SpecPriority(1)
)

// What the whole suite shares, or the part of it that this process runs.
var (
	cluster *harness.Cluster
	// api is the admin's client. It reads from the API server.
	api client.Client
	// watcher is the same without a timeout, which would end a watch, too.
	watcher client.WithWatch
	// running is the operator. The spec that kills it puts another in its place.
	running *harness.Operator
	// settings are what it was started with, to start it again the same way.
	settings harness.OperatorOptions
	// metricsAddress is where it serves its metrics.
	metricsAddress string
)

// Versions of Kubernetes that brought what some specs are about.
const (
	resizeSince           = "1.33"
	devicesSince          = "1.34"
	podLevelSince         = "1.34"
	volumeAttributesSince = "1.34"
	offeredSince          = "1.36" // a DeviceClass keeps the extended resource that it offers
)

// widget is a custom resource that is there from the start.
var widget = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func TestE2E(t *testing.T) {
	suite.Run(t, "A quota over many namespaces", 19*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(deadline)
	SetDefaultEventuallyPollingInterval(poll)

	binary := suite.Async(ctx, suite.Operator)
	startControlPlane(ctx)
	metricsAddress = fmt.Sprintf("127.0.0.1:%d", suite.FreePort())
	settings = harness.OperatorOptions{
		Binary: <-binary,
		Args: []string{
			"--metrics-bind-address", metricsAddress, "--metrics-secure", "--metrics-namespaces",
			// A status that is written often makes for short waits, and so does a
			// short life of what was reserved in vain. The rest doesn't depend on them.
			"--status-interval", "100ms", "--reservation-ttl", reservationTTL.String(),
		},
	}
	var err error
	running, err = cluster.StartOperator(ctx, settings)
	Expect(err).NotTo(HaveOccurred())
	settings.WebhookPort = running.WebhookPort
	waitUntilQuotasAreValidated(ctx)
	createSharedObjects(ctx)
	createScrapers(ctx)
}, NodeTimeout(suite.BuildTimeout))

func startControlPlane(ctx context.Context) {
	GinkgoHelper()
	cluster, _ = suite.Start(ctx, harness.Options{APIServerFlags: auditFlags()})
	// Only what specs need: the rest would create objects of its own in each
	// namespace, and load the machine.
	suite.StartControllers(ctx, cluster, "--controllers",
		"namespace-controller,deployment-controller,replicaset-controller,persistentvolumeclaim-protection-controller")
	api, watcher = suite.Client(cluster.Config(), deadline), suite.Client(cluster.Config(), 0)
}

// createSharedObjects makes what is cluster-scoped and used by several specs.
func createSharedObjects(ctx context.Context) {
	GinkgoHelper()
	installCustomResource(ctx, widget, "widgets")
	shared := []client.Object{
		builders.PriorityClass("high", 1000),
		builders.PriorityClass("low", 10),
		builders.ExpandableStorageClass("gold"),
		builders.RuntimeClass("heavy", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}),
	}
	if suite.IsSince(ctx, devicesSince) {
		shared = append(shared, builders.DeviceClass("fpga"), builders.DeviceClassOffering("gpu", "dra.example/gpu"))
	}
	for _, object := range shared {
		Expect(api.Create(ctx, object)).To(Succeed())
	}
}

// waitUntilQuotasAreValidated returns once the API server asks the operator about
// quotas, which it does by the configuration that enforces the first of them.
func waitUntilQuotasAreValidated(ctx context.Context) {
	GinkgoHelper()
	first := mustCreate(ctx, newTeam().quota().Hard("pods", "1").Obj())
	waitUntilEnforced(ctx, first)
	Expect(tryInvalidQuota(ctx)).To(MatchError(ContainSubstring("must be an integer")))
	mustDelete(ctx, first)
}

// tryInvalidQuota creates a quota that makes no sense, as a dry run.
func tryInvalidQuota(ctx context.Context) error {
	return api.Create(ctx, newTeam().quota().Hard("pods", "500m").Obj(), client.DryRunAll)
}
