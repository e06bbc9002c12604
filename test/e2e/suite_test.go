/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package e2e

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	// deadline is what anything may take on a machine that is busy with builds.
	deadline = 30 * time.Second
	poll     = 20 * time.Millisecond
	// reservationTTL is the shortest that the operator takes.
	reservationTTL = 80 * time.Second
	// logLines is how much of the operator's log is told with a failure.
	logLines = 20
	// buildTimeout covers a build of the operator from nothing.
	buildTimeout = 15 * time.Minute
)

// What the whole suite shares.
var (
	cluster *harness.Cluster
	// api is the admin's client. It reads from the API server.
	api client.WithWatch
	// running is the operator. The spec that kills it puts another in its place.
	running *harness.Operator
	// settings are what it was started with, to start it again the same way.
	settings harness.OperatorOptions
	// metricsAddress is where it serves its metrics.
	metricsAddress string
)

// widget is a custom resource that is there from the start.
var widget = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = 15 * time.Minute
	RunSpecs(t, "A quota over many namespaces", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(deadline)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()

	binary := make(chan string, 1)
	go func() {
		defer GinkgoRecover()
		defer close(binary)
		binary <- operatorBinary(ctx)
	}()
	startControlPlane(ctx)
	metricsAddress = freeAddress()
	settings = harness.OperatorOptions{
		Binary: <-binary,
		Args: []string{
			"--metrics-bind-address", metricsAddress, "--metrics-secure",
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
}, NodeTimeout(buildTimeout))

var _ = AfterSuite(func() {
	if cluster == nil {
		return
	}
	if running != nil {
		Expect(running.Stop()).To(Succeed(), "the operator must have run to the end, and stop when told to")
	}
	logs, err := filepath.Glob(filepath.Join(cluster.Dir(), "operator*.log"))
	Expect(err).NotTo(HaveOccurred())
	for _, path := range logs {
		log, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		for _, trouble := range []string{"panic:", "Observed a panic", "DATA RACE", "count that had drifted"} {
			Expect(string(log)).NotTo(ContainSubstring(trouble), filepath.Base(path))
		}
	}
	Expect(cluster.Stop()).To(Succeed())
})

// A failure is told with what the operator said last.
var _ = JustAfterEach(func() {
	if !CurrentSpecReport().Failed() || running == nil {
		return
	}
	log, err := os.ReadFile(running.Log())
	Expect(err).NotTo(HaveOccurred())
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	last := lines[max(0, len(lines)-logLines):]
	AddReportEntry("the end of the operator's log", strings.Join(last, "\n"), ReportEntryVisibilityFailureOrVerbose)
})

func startControlPlane(ctx context.Context) {
	GinkgoHelper()
	var err error
	cluster, err = harness.Start(ctx, harness.Options{})
	Expect(err).NotTo(HaveOccurred())
	// Only what specs need: the rest would create objects of its own in each
	// namespace, and load the machine.
	_, err = cluster.StartControllerManager(ctx, "--controllers",
		"namespace-controller,deployment-controller,replicaset-controller,persistentvolumeclaim-protection-controller")
	Expect(err).NotTo(HaveOccurred())

	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	Expect(quotav1.AddToScheme(scheme)).To(Succeed())
	config := cluster.Config()
	config.Timeout = deadline
	api, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
}

// createSharedObjects makes what is cluster-scoped and used by several specs.
func createSharedObjects(ctx context.Context) {
	GinkgoHelper()
	installCustomResource(ctx, widget, "widgets")
	for _, object := range []client.Object{
		builders.PriorityClass("high", 1000),
		builders.PriorityClass("low", 10),
		builders.ExpandableStorageClass("gold"),
		builders.DeviceClass("fpga"),
		builders.DeviceClassOffering("gpu", "dra.example/gpu"),
		builders.RuntimeClass("heavy", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}),
	} {
		Expect(api.Create(ctx, object)).To(Succeed())
	}
}

// waitUntilQuotasAreValidated returns once the API server asks the operator
// about quotas: the operator registers its webhooks after it is ready to answer,
// and the API server loads them a moment later.
func waitUntilQuotasAreValidated(ctx context.Context) {
	GinkgoHelper()
	first := mustCreate(ctx, newTeam().quota().Hard("pods", "1").Obj())
	waitUntilEnforced(ctx, first)
	Eventually(ctx, tryInvalidQuota).Should(MatchError(ContainSubstring("must be an integer")))
	mustDelete(ctx, first)
}

// tryInvalidQuota creates a quota that makes no sense, as a dry run.
func tryInvalidQuota(ctx context.Context) error {
	return api.Create(ctx, newTeam().quota().Hard("pods", "500m").Obj(), client.DryRunAll)
}

// operatorBinary returns the operator to test.
func operatorBinary(ctx context.Context) string {
	GinkgoHelper()
	binary, err := harness.OperatorBinary(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	return binary
}

// freeAddress returns a loopback address that nobody listens on.
func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}
