// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// replicaLabel says which replica an EndpointSlice is for.
const replicaLabel = "replica"

// port is at the end of an argument that says where to listen.
var port = regexp.MustCompile(`\d+$`)

// replica is a pod of the Deployment, as a process.
type replica struct {
	*harness.Process
	// ports are name or number of a port of the container -> where the process
	// listens instead.
	ports map[string]int
}

// startReplica runs what a pod of the Deployment would run.
func startReplica(ctx context.Context, b bundle, binary, kubeconfig string) replica {
	GinkgoHelper()
	container := b.template().Spec.Containers[0]
	ports, moved := map[string]int{}, map[string]string{}
	for _, declared := range container.Ports {
		free, err := harness.FreePort()
		Expect(err).NotTo(HaveOccurred())
		number := strconv.Itoa(int(declared.ContainerPort))
		ports[declared.Name], ports[number] = free, free
		moved[number] = strconv.Itoa(free)
	}
	environment := environmentOf(b, container)
	probe := container.ReadinessProbe.HTTPGet
	process, err := cluster.StartProgram(ctx, harness.ProgramOptions{
		Name: "replica",
		Path: binary,
		// In a pod the token is found where it is mounted.
		Args:     append(argumentsOf(container, environment, moved), "--kubeconfig="+kubeconfig),
		Env:      environment,
		ReadyURL: fmt.Sprintf("http://127.0.0.1:%d%s", ports[probe.Port.String()], probe.Path),
	})
	Expect(err).NotTo(HaveOccurred())
	return replica{Process: process, ports: ports}
}

// fields are what a container's environment may take from its pod.
var fields = map[string]string{"metadata.namespace": namespace, "metadata.name": "replica"}

// environmentOf is what the kubelet makes of a container's environment, and what
// OLM adds to it.
func environmentOf(b bundle, container corev1.Container) []string {
	GinkgoHelper()
	environment := []string{"OPERATOR_CONDITION_NAME=" + b.csv.Name}
	for _, variable := range container.Env {
		value := variable.Value
		if variable.ValueFrom != nil {
			Expect(variable.ValueFrom.FieldRef).NotTo(BeNil(), variable.Name)
			value = fields[variable.ValueFrom.FieldRef.FieldPath]
			Expect(value).NotTo(BeEmpty(), variable.Name)
		}
		environment = append(environment, variable.Name+"="+value)
	}
	return environment
}

// argumentsOf are the container's, with variables expanded and with other ports.
func argumentsOf(container corev1.Container, environment []string, moved map[string]string) []string {
	Expect(container.Command).To(BeEmpty(), "the image's entry point is the operator")
	args := make([]string, 0, len(container.Args))
	for _, arg := range container.Args {
		for _, variable := range environment {
			name, value, _ := strings.Cut(variable, "=")
			arg = strings.ReplaceAll(arg, "$("+name+")", value)
		}
		args = append(args, port.ReplaceAllStringFunc(arg, func(declared string) string {
			if elsewhere, ok := moved[declared]; ok {
				return elsewhere
			}
			return declared
		}))
	}
	return args
}

// route makes the replica an endpoint of every Service of the bundle that selects
// it, as Kubernetes does once its pod is ready.
func route(ctx context.Context, b bundle, to replica) {
	GinkgoHelper()
	routed := 0
	for _, service := range services(ctx) {
		if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(b.template().Labels)) {
			continue
		}
		routed++
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, GenerateName: service.Name + "-",
				Labels: map[string]string{discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: "the-test", replicaLabel: to.Name()},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{address()}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
			}},
		}
		for _, declared := range service.Spec.Ports {
			// By the name of the container's port, or by its number.
			Expect(to.ports).To(HaveKey(declared.TargetPort.String()), "%s", service.Name)
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{
				Name: ptr.To(declared.Name), Port: ptr.To(int32(to.ports[declared.TargetPort.String()])),
			})
		}
		Expect(admin.Create(ctx, slice)).To(Succeed())
	}
	Expect(routed).NotTo(BeZero(), "some Service selects the operator")
}

// unroute takes the replica back, as Kubernetes does when its pod ends.
func unroute(ctx context.Context, from replica) {
	GinkgoHelper()
	Expect(admin.DeleteAllOf(ctx, &discoveryv1.EndpointSlice{}, inNamespace, client.MatchingLabels{replicaLabel: from.Name()})).To(Succeed())
}

func services(ctx context.Context) []corev1.Service {
	GinkgoHelper()
	list := &corev1.ServiceList{}
	Expect(admin.List(ctx, list, inNamespace)).To(Succeed())
	return list.Items
}

// address is this machine's.
func address() string {
	GinkgoHelper()
	addresses, err := net.InterfaceAddrs()
	Expect(err).NotTo(HaveOccurred())
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	Fail("this machine has no IPv4 address but loopback")
	return ""
}

// identity is the ServiceAccount, by a token as the kubelet gets it for a pod.
func identity(ctx context.Context, b bundle) *rest.Config {
	GinkgoHelper()
	token := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: b.account()}}
	Expect(admin.SubResource("token").Create(ctx, account, token)).To(Succeed())
	config := rest.AnonymousClientConfig(cluster.Config())
	config.BearerToken = token.Status.Token
	return config
}
