// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// lookahead is how long before its end a certificate is renewed.
const lookahead = 90 * 24 * time.Hour

// These specs have operators of their own, with no more rights than the
// installation gives them. The suite's one is away meanwhile.
var _ = Describe("The webhook's certificate", longest, Ordered, ContinueOnFailure, func() {
	var kubeconfig string
	BeforeAll(func(ctx SpecContext) {
		install(ctx)
		kubeconfig = suite.Kubeconfig(cluster)
		away(running.Stop)
		DeferCleanup(deleteIfThere, builders.Namespace(suite.Namespace).Obj())
	})
	// options are those of a replica behind the balancer.
	options := func(balancer *harness.Balancer) harness.OperatorOptions {
		return harness.OperatorOptions{
			Binary: settings.Binary, Kubeconfig: kubeconfig, LeaderElect: true, CertSecret: suite.CertSecret,
			WebhookURL: strings.Replace(balancer.URL(), "127.0.0.1", "localhost", 1),
			Args: []string{
				"--namespace", suite.Namespace, "--status-interval", "100ms", "--reservation-ttl", reservationTTL.String(),
			},
		}
	}

	Context("that is kept in a Secret", func() {
		var replicas []*harness.Operator
		var first *corev1.Secret
		BeforeAll(func(ctx SpecContext) {
			forgetCertificates(ctx)
			balancer := startBalancer()
			replicas = startAtOnce(ctx, balancer, options(balancer), 2)
			first = readCertSecret(ctx)
		})

		It("is made by one of the replicas that start at once, for all of them", func(ctx SpecContext) {
			made := 0
			for _, replica := range replicas {
				made += strings.Count(suite.LogOf(replica.Process), "renewed the webhook's certificate")
				Expect(presented(replica.WebhookPort)).To(PEMOf(first.Data["tls.crt"]))
			}
			Expect(made).To(Equal(1))
			Expect(first.Type).To(Equal(corev1.SecretTypeTLS))
			Expect(bundle(ctx)).To(Equal(string(first.Data["ca.crt"])))

			quota := enforce(ctx, newTeam().quota().Hard("pods", "0"))
			namespace := builders.Namespace(quota.Name+"-n").Label(teamLabel, quota.Name).Obj()
			mustCreate(ctx, namespace)
			Expect(api.Create(ctx, builders.Pod(namespace.Name, "p1").Obj(), client.DryRunAll)).To(
				BeRefused(exceeded(quota.Name, "pods", "1", "0", "0")))
		})

		DescribeTable("is replaced without a request that fails, where the Secret",
			func(ctx SpecContext, harm func(ctx context.Context, secret *corev1.Secret), newAuthority bool) {
				namespace := limitedNamespace(ctx)
				before := readCertSecret(ctx)
				goOn(ctx, namespace, replicas, func() {
					harmed := before.DeepCopy()
					harm(ctx, harmed)
					var now *corev1.Secret
					Eventually(ctx, func(g Gomega, ctx context.Context) {
						now = &corev1.Secret{}
						g.Expect(api.Get(ctx, client.ObjectKeyFromObject(before), now)).To(Succeed())
						g.Expect(now.Data["tls.crt"]).NotTo(Or(Equal(before.Data["tls.crt"]), Equal(harmed.Data["tls.crt"])))
						for _, replica := range replicas {
							g.Expect(presented(replica.WebhookPort)).To(PEMOf(now.Data["tls.crt"]))
						}
					}).Should(Succeed())
					Expect(bundle(ctx)).To(HavePrefix(string(now.Data["ca.crt"])), "the new authority comes first")
					Expect(bundle(ctx)).To(ContainSubstring(string(before.Data["ca.crt"])), "the old one stays trusted")
					if newAuthority {
						Expect(now.Data["ca.crt"]).NotTo(Equal(before.Data["ca.crt"]))
					} else {
						Expect(now.Data["ca.crt"]).To(Equal(before.Data["ca.crt"]))
					}
				})
			},
			Entry("is deleted", func(ctx context.Context, secret *corev1.Secret) { mustDelete(ctx, secret) }, true),
			Entry("is emptied", func(ctx context.Context, secret *corev1.Secret) {
				secret.Data = map[string][]byte{"tls.crt": nil, "tls.key": nil} // its type asks for these
				Expect(api.Update(ctx, secret)).To(Succeed())
			}, true),
			Entry("has garbage for a certificate", func(ctx context.Context, secret *corev1.Secret) {
				secret.Data["tls.crt"] = []byte("garbage")
				Expect(api.Update(ctx, secret)).To(Succeed())
			}, false),
			Entry("has the certificate of another host", func(ctx context.Context, secret *corev1.Secret) {
				secret.Data = issue("elsewhere", lookahead+time.Hour)
				Expect(api.Update(ctx, secret)).To(Succeed())
			}, true),
			Entry("has a certificate that has ended", func(ctx context.Context, secret *corev1.Secret) {
				secret.Data = issue("localhost", -time.Minute)
				Expect(api.Update(ctx, secret)).To(Succeed())
			}, true),
			// It is taken up itself at first.
			Entry("has one that comes near its end", func(ctx context.Context, secret *corev1.Secret) {
				secret.Data = issue("localhost", lookahead+20*time.Second)
				Expect(api.Update(ctx, secret)).To(Succeed())
				for _, replica := range replicas {
					Eventually(ctx, func() (*x509.Certificate, error) { return presented(replica.WebhookPort) }).
						Should(PEMOf(secret.Data["tls.crt"]))
				}
			}, true),
		)
	})

	It("that lies in a directory is taken up from there without a request that fails, and so is its authority", func(ctx SpecContext) {
		forgetCertificates(ctx)
		balancer := startBalancer()
		given := options(balancer)
		given.CertSecret, given.WebhookURL = "", balancer.URL()
		var err error
		given.CertDir, err = cluster.Certificate()
		Expect(err).NotTo(HaveOccurred())
		replicas := startAtOnce(ctx, balancer, given, 2)
		before := bundle(ctx)
		another, err := cluster.Certificate()
		Expect(err).NotTo(HaveOccurred())
		content := map[string][]byte{}
		for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
			content[name], err = os.ReadFile(filepath.Join(another, name))
			Expect(err).NotTo(HaveOccurred())
		}

		goOn(ctx, limitedNamespace(ctx), replicas, func() {
			for name, text := range content {
				Expect(os.WriteFile(filepath.Join(given.CertDir, name), text, 0o600)).To(Succeed())
			}
			for _, replica := range replicas {
				Eventually(ctx, func() (*x509.Certificate, error) { return presented(replica.WebhookPort) }).
					Should(PEMOf(content["tls.crt"]))
			}
			Expect(bundle(ctx)).To(Equal(string(content["ca.crt"]) + before))
		})
	})

	It("that the API server would not accept keeps a replica from being ready", func(ctx SpecContext) {
		forgetCertificates(ctx)
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: suite.Namespace, Name: "shared-quota-operator"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To("somebody"), LeaseDurationSeconds: ptr.To[int32](3600),
				AcquireTime: ptr.To(metav1.NowMicro()), RenewTime: ptr.To(metav1.NowMicro()),
			},
		}
		deleteIfThere(ctx, lease)
		mustCreate(ctx, lease)
		balancer := startBalancer()
		alone := options(balancer)
		alone.HealthPort = freePort()
		started := suite.Async(ctx, func(ctx context.Context) *harness.Operator {
			return startAtOnce(ctx, balancer, alone, 1)[0]
		})
		webhooks := func(ctx context.Context) (string, error) {
			return get(ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz/webhooks", alone.HealthPort))
		}
		By("having no leader that tells the API server about it")
		Eventually(ctx, webhooks).Should(ContainSubstring("there is no ValidatingWebhookConfiguration shared-quota"))

		By("being called by an API server that trusts another authority")
		mustCreate(ctx, trusting(alone.WebhookURL, issue("localhost", time.Hour)["ca.crt"]))
		Eventually(ctx, webhooks).Should(ContainSubstring(
			`the ValidatingWebhookConfiguration shared-quota does not trust the webhook's certificate for "localhost"`))
		Expect(started).NotTo(Receive())

		By("becoming the leader")
		mustDelete(ctx, lease)
		Eventually(ctx, started).Should(Receive(Not(BeNil())))
		Expect(webhooks(ctx)).To(Equal("ok"))
		Expect(bundle(ctx)).To(HavePrefix(string(readCertSecret(ctx).Data["ca.crt"])))
	})
})

// installation are the kinds of config/default that concern its own namespace
// and its own rights. What concerns everybody would meet the suite's operator,
// which is another user.
var installation = regexp.MustCompile(
	`(?m)^kind: (Namespace|ServiceAccount|Role|RoleBinding|ClusterRole|ClusterRoleBinding|Service|Deployment)$`)

func install(ctx context.Context) {
	GinkgoHelper()
	rendered := suite.Kubectl(ctx, cluster, "kustomize", "config/default")
	manifests := slices.DeleteFunc(strings.Split(rendered, "\n---\n"), func(manifest string) bool {
		return !installation.MatchString(manifest)
	})
	applied, err := cluster.Kubectl(ctx, strings.NewReader(strings.Join(manifests, "\n---\n")), "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
	Expect(applied.ExitCode).To(BeZero(), applied.Stderr)
}

// forgetCertificates lets the operators that start next begin with nothing.
func forgetCertificates(ctx context.Context) {
	GinkgoHelper()
	for _, object := range []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "shared-quota"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: suite.Namespace, Name: suite.CertSecret}},
	} {
		deleteIfThere(ctx, object)
	}
}

// startBalancer starts a balancer that ends with the spec or the container.
func startBalancer() *harness.Balancer {
	GinkgoHelper()
	balancer, err := harness.NewBalancer()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(balancer.Close)
	return balancer
}

// startAtOnce starts replicas behind the balancer, and returns when all are
// ready. They end with the spec or the container.
func startAtOnce(ctx context.Context, balancer *harness.Balancer, options harness.OperatorOptions, count int) []*harness.Operator {
	GinkgoHelper()
	replicas, errs := make([]*harness.Operator, count), make([]error, count)
	var starting sync.WaitGroup
	for i := range replicas {
		starting.Go(func() { replicas[i], errs[i] = cluster.StartOperator(ctx, options) })
	}
	starting.Wait()
	ports := make([]int, 0, count)
	for i, replica := range replicas {
		Expect(errs[i]).NotTo(HaveOccurred())
		DeferCleanup(replica.Stop)
		ports = append(ports, replica.WebhookPort)
	}
	balancer.SetBackends(ports...)
	return replicas
}

// limitedNamespace returns a namespace of a quota that has room.
func limitedNamespace(ctx context.Context) string {
	GinkgoHelper()
	team := newTeam()
	enforce(ctx, team.quota().Hard("pods", "1000"))
	return team.namespace(ctx)
}

// goOn asks for pods, and connects to each replica as the API server would that
// is configured as it is then, for as long as during takes. Nothing may fail.
func goOn(ctx context.Context, namespace string, replicas []*harness.Operator, during func()) {
	GinkgoHelper()
	var asked, connected atomic.Int64
	failed := make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	var clients sync.WaitGroup
	repeat := func(count *atomic.Int64, try func() error) {
		clients.Go(func() {
			for ctx.Err() == nil {
				if err := try(); err == nil {
					count.Add(1)
				} else if ctx.Err() == nil {
					select {
					case failed <- fmt.Errorf("%s: %w", time.Now().Format(time.StampMilli), err):
					default: // the first says enough
					}
				}
			}
		})
	}
	for range 2 {
		repeat(&asked, func() error {
			return api.Create(ctx, builders.Pod(namespace, "app").Generated().Obj(), client.DryRunAll)
		})
	}
	for _, replica := range replicas {
		repeat(&connected, func() error { return connect(ctx, replica.WebhookPort) })
	}
	defer func() {
		stop()
		clients.Wait()
	}()
	during()
	Expect(failed).NotTo(Receive())
	Expect(asked.Load()).NotTo(BeZero())
	Expect(connected.Load()).NotTo(BeZero())
	AddReportEntry("while the certificate was replaced",
		fmt.Sprintf("%d requests, %d handshakes, none failed", asked.Load(), connected.Load()))
}

// connect shakes hands with a replica as the webhook configuration, read just
// before, has the API server do.
func connect(ctx context.Context, port int) error {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := api.Get(ctx, client.ObjectKey{Name: "shared-quota"}, configuration); err != nil {
		return err
	}
	for _, webhook := range configuration.Webhooks {
		called, err := url.Parse(*webhook.ClientConfig.URL)
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(webhook.ClientConfig.CABundle)
		dialer := &tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: called.Hostname(), RootCAs: roots}}
		connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return err
		}
		_ = connection.Close()
	}
	return nil
}

// presented returns the certificate that is served on a port.
func presented(port int) (*x509.Certificate, error) {
	dialer := &net.Dialer{Timeout: deadline}
	connection, err := tls.DialWithDialer(dialer, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		&tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0], nil
}

// PEMOf matches the certificate that comes first in a text of PEM.
func PEMOf(text []byte) gomegatypes.GomegaMatcher {
	block, _ := pem.Decode(text)
	if block == nil {
		return WithTransform(func(*x509.Certificate) []byte { return nil }, Equal([]byte("a certificate")))
	}
	return WithTransform(func(certificate *x509.Certificate) []byte { return certificate.Raw }, Equal(block.Bytes))
}

func readCertSecret(ctx context.Context) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: suite.Namespace, Name: suite.CertSecret}, secret)).To(Succeed())
	return secret
}

// bundle is whom the API server is told to trust, which all entries agree on.
func bundle(ctx context.Context) string {
	GinkgoHelper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Expect(api.Get(ctx, client.ObjectKey{Name: "shared-quota"}, configuration)).To(Succeed())
	Expect(configuration.Webhooks).NotTo(BeEmpty())
	first := string(configuration.Webhooks[0].ClientConfig.CABundle)
	for _, webhook := range configuration.Webhooks {
		Expect(string(webhook.ClientConfig.CABundle)).To(Equal(first), webhook.Name)
	}
	return first
}

// issue makes what the operator's Secret holds, with a life of its own.
func issue(host string, life time.Duration) map[string][]byte {
	GinkgoHelper()
	begin, end := time.Now().Add(-24*time.Hour), time.Now().Add(life)
	var authority *x509.Certificate
	var signer *ecdsa.PrivateKey
	issued := map[string][]byte{}
	for _, made := range []struct{ file, name string }{{"ca", "shared-quota-webhook-ca"}, {"tls", host}} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		Expect(err).NotTo(HaveOccurred())
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: made.name}, DNSNames: []string{made.name},
			NotBefore: begin, NotAfter: end, IsCA: authority == nil, BasicConstraintsValid: true,
		}
		if authority == nil {
			authority, signer = template, key
		}
		raw, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), signer)
		Expect(err).NotTo(HaveOccurred())
		issued[made.file+".crt"] = pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw})
		issued[made.file+".key"], err = keyutil.MarshalPrivateKeyToPEM(key)
		Expect(err).NotTo(HaveOccurred())
	}
	return issued
}

// trusting is a webhook configuration that calls the URL about nothing.
func trusting(where string, authority []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	_, err := cert.ParseCertsPEM(authority)
	Expect(err).NotTo(HaveOccurred())
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "shared-quota"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "nothing.quota.sharedquota.dev",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: ptr.To(where + "/none"), CABundle: authority},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// get returns what is answered at a URL, whatever the status.
func get(ctx context.Context, where string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
