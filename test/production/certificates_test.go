// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package production

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
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
	"k8s.io/apimachinery/pkg/util/rand"
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

// serverName is what the certificate is for.
const serverName = suite.WebhookService + "." + suite.Namespace + ".svc"

var _ = Describe("The webhook's certificate", Ordered, ContinueOnFailure, func() {
	Context("that is kept in a Secret", func() {
		var first *corev1.Secret
		BeforeAll(func(ctx SpecContext) {
			forgetCertificates(ctx)
			replicas.Args, replicas.Config = []string{"--status-interval=100ms"}, nil
			replicas.Scale(ctx, 2)
			first = readCertSecret(ctx)
		})

		It("is made by one of the replicas that start at once, for all of them", func(ctx SpecContext) {
			made := 0
			for _, replica := range replicas.Running {
				made += strings.Count(suite.LogOf(replica.Process), "renewed the webhook's certificate")
				Expect(presented(replica)).To(PEMOf(first.Data["tls.crt"]))
			}
			Expect(made).To(Equal(1))
			Expect(first.Type).To(Equal(corev1.SecretTypeTLS))
			Expect(bundle(ctx)).To(Equal(string(first.Data["ca.crt"])))

			limited(ctx, builders.Quota("certified").Hard("pods", "0"))
			Expect(admin.Create(ctx, builders.Pod("certified", "p1").Obj(), client.DryRunAll)).To(suite.BeExceeded("certified", "pods"))
		})

		DescribeTable("is replaced without a request that fails, where the Secret",
			func(ctx SpecContext, harm func(ctx context.Context, secret *corev1.Secret), newAuthority bool) {
				before := readCertSecret(ctx)
				goOn(ctx, func() {
					harmed := before.DeepCopy()
					harm(ctx, harmed)
					var now *corev1.Secret
					Eventually(ctx, func(g Gomega, ctx context.Context) {
						now = &corev1.Secret{}
						g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(before), now)).To(Succeed())
						g.Expect(now.Data["tls.crt"]).NotTo(Or(Equal(before.Data["tls.crt"]), Equal(harmed.Data["tls.crt"])))
						for _, replica := range replicas.Running {
							g.Expect(presented(replica)).To(PEMOf(now.Data["tls.crt"]))
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
			Entry("is deleted", func(ctx context.Context, secret *corev1.Secret) { Expect(admin.Delete(ctx, secret)).To(Succeed()) }, true),
			Entry("is emptied", func(ctx context.Context, secret *corev1.Secret) {
				secret.Data = map[string][]byte{"tls.crt": nil, "tls.key": nil} // its type asks for these
				Expect(admin.Update(ctx, secret)).To(Succeed())
			}, true),
			Entry("has garbage for a certificate", func(ctx context.Context, secret *corev1.Secret) {
				secret.Data["tls.crt"] = []byte("garbage")
				Expect(admin.Update(ctx, secret)).To(Succeed())
			}, false),
			Entry("has the certificate of another host", func(ctx context.Context, secret *corev1.Secret) {
				secret.Data = issue("elsewhere", lookahead+time.Hour)
				Expect(admin.Update(ctx, secret)).To(Succeed())
			}, true),
			Entry("has a certificate that has ended", func(ctx context.Context, secret *corev1.Secret) {
				secret.Data = issue(serverName, -time.Minute)
				Expect(admin.Update(ctx, secret)).To(Succeed())
			}, true),
			// It is taken up itself at first.
			Entry("has one that comes near its end", func(ctx context.Context, secret *corev1.Secret) {
				secret.Data = issue(serverName, lookahead+20*time.Second)
				Expect(admin.Update(ctx, secret)).To(Succeed())
				for _, replica := range replicas.Running {
					Eventually(ctx, func() (*x509.Certificate, error) { return presented(replica) }).
						Should(PEMOf(secret.Data["tls.crt"]))
				}
			}, true),
		)
	})

	It("that lies in a directory is taken up from there without a request that fails, and so is its authority", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		write := func(content map[string][]byte) {
			GinkgoHelper()
			for name, text := range content {
				Expect(os.WriteFile(filepath.Join(dir, name), text, 0o600)).To(Succeed())
			}
		}
		write(issue(serverName, time.Hour))
		forgetCertificates(ctx)
		replicas.Args = []string{"--cert-dir=" + dir}
		replicas.Scale(ctx, 2)
		before := bundle(ctx)
		another := issue(serverName, time.Hour)

		goOn(ctx, func() {
			write(another)
			for _, replica := range replicas.Running {
				Eventually(ctx, func() (*x509.Certificate, error) { return presented(replica) }).
					Should(PEMOf(another["tls.crt"]))
			}
			Expect(bundle(ctx)).To(Equal(string(another["ca.crt"]) + before))
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
		Expect(client.IgnoreNotFound(admin.Delete(ctx, lease.DeepCopy()))).To(Succeed())
		Expect(admin.Create(ctx, lease)).To(Succeed())
		health := "http://" + net.JoinHostPort(replicas.NextAddress(), "8081") + "/readyz/webhooks"
		webhooks := func(ctx context.Context) (string, error) { return get(ctx, health) }
		replicas.Args = nil
		started := suite.Async(ctx, replicas.Add)
		By("having no leader that tells the API server about it")
		Eventually(ctx, webhooks).Should(ContainSubstring("there is no ValidatingWebhookConfiguration shared-quota"))

		By("being called by an API server that trusts another authority")
		Expect(admin.Create(ctx, trusting(issue(serverName, time.Hour)["ca.crt"]))).To(Succeed())
		Eventually(ctx, webhooks).Should(ContainSubstring("does not trust the webhook's certificate for %q", serverName))
		Expect(started).NotTo(Receive())

		By("becoming the leader")
		Expect(admin.Delete(ctx, lease)).To(Succeed())
		Eventually(ctx, started).Should(Receive(Not(BeNil())))
		Expect(webhooks(ctx)).To(Equal("ok"))
		Expect(bundle(ctx)).To(HavePrefix(string(readCertSecret(ctx).Data["ca.crt"])))
	})
})

// forgetCertificates ends the replicas, and lets those that start next begin with nothing.
func forgetCertificates(ctx context.Context) {
	GinkgoHelper()
	replicas.StopAll()
	for _, object := range []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "shared-quota"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: suite.Namespace, Name: suite.CertSecret}},
	} {
		Expect(client.IgnoreNotFound(admin.Delete(ctx, object))).To(Succeed())
	}
}

// goOn asks for pods, and connects to each replica as the API server would that
// is configured as it is then, for as long as during takes. Nothing may fail.
func goOn(ctx context.Context, during func()) {
	GinkgoHelper()
	namespace := "renewed-" + rand.String(5)
	limited(ctx, builders.Quota(namespace).Hard("pods", "1000"))
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
			return admin.Create(ctx, builders.Pod(namespace, "app").Generated().Obj(), client.DryRunAll)
		})
	}
	for _, replica := range replicas.Running {
		repeat(&connected, func() error { return connect(ctx, replica) })
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
func connect(ctx context.Context, replica *harness.Operator) error {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := admin.Get(ctx, client.ObjectKey{Name: "shared-quota"}, configuration); err != nil {
		return err
	}
	for _, webhook := range configuration.Webhooks {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(webhook.ClientConfig.CABundle)
		dialer := &tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName, RootCAs: roots}}
		connection, err := dialer.DialContext(ctx, "tcp", at(replica))
		if err != nil {
			return err
		}
		_ = connection.Close()
	}
	return nil
}

// at is where a replica serves its webhooks.
func at(replica *harness.Operator) string {
	return net.JoinHostPort(replica.Address, strconv.Itoa(replica.WebhookPort))
}

// presented returns the certificate that a replica serves.
func presented(replica *harness.Operator) (*x509.Certificate, error) {
	connection, err := tls.DialWithDialer(&net.Dialer{Timeout: suite.Deadline}, "tcp", at(replica), &tls.Config{InsecureSkipVerify: true})
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
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: suite.Namespace, Name: suite.CertSecret}, secret)).To(Succeed())
	return secret
}

// bundle is whom the API server is told to trust, which all entries agree on.
func bundle(ctx context.Context) string {
	GinkgoHelper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: "shared-quota"}, configuration)).To(Succeed())
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
		key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
		Expect(err).NotTo(HaveOccurred())
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: made.name}, DNSNames: []string{made.name},
			NotBefore: begin, NotAfter: end, IsCA: authority == nil, BasicConstraintsValid: true,
		}
		if authority == nil {
			authority, signer = template, key
		}
		raw, err := x509.CreateCertificate(cryptorand.Reader, template, authority, key.Public(), signer)
		Expect(err).NotTo(HaveOccurred())
		issued[made.file+".crt"] = pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw})
		issued[made.file+".key"], err = keyutil.MarshalPrivateKeyToPEM(key)
		Expect(err).NotTo(HaveOccurred())
	}
	return issued
}

// trusting is a webhook configuration that calls the Service about nothing.
func trusting(authority []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	_, err := cert.ParseCertsPEM(authority)
	Expect(err).NotTo(HaveOccurred())
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "shared-quota"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "nothing.quota.sharedquota.dev",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: authority, Service: &admissionregistrationv1.ServiceReference{
				Namespace: suite.Namespace, Name: suite.WebhookService, Path: ptr.To("/none"),
			}},
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
