// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const turnedAway = "sharedquota_serving_turned_away_total"

var _ = Describe("A pod that reaches the operator's port", Ordered, func() {
	var t *target
	BeforeAll(func(ctx SpecContext) {
		t = install(ctx, harness.Options{}, []int{0, 1})
	}, NodeTimeout(suite.BuildTimeout))

	It("reserves nothing with a forged request", func(ctx SpecContext) {
		token := suite.CallersToken(ctx, t.admin)
		guessed := strings.Repeat("0", len(token))
		paths := []string{
			"/", webhooks, webhooks + "/any/1-0123456789abcdef", "/" + guessed + webhooks, "/" + token[1:] + webhooks, webhooks + "/" + token,
			"/validate-quotas", "/probe/1-0123456789abcdef",
		}
		turned := t.gauge(ctx, turnedAway)
		for _, path := range paths {
			status, _, err := t.post(ctx, path, forged())
			Expect(err).NotTo(HaveOccurred())
			Expect(status).To(Equal(http.StatusNotFound), path)
		}
		Expect(t.reserved(ctx)).To(BeZero())
		Expect(t.gauge(ctx, turnedAway)).To(BeNumerically("==", turned+float64(len(paths))))

		By("showing what it could do with the token")
		status, allowed, err := t.post(ctx, "/"+token+webhooks, forged())
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusOK))
		Expect(allowed).To(BeTrue())
		Expect(t.reserved(ctx)).To(Equal(1))
	})

	It("is turned away before it has sent anything", func(ctx SpecContext) {
		connection := t.dial(ctx)
		defer connection.Close()
		began := time.Now()
		announce(connection, webhooks, 1<<40)
		Expect(connection.SetReadDeadline(time.Now().Add(suite.Deadline))).To(Succeed())
		answer := make([]byte, 64)
		n, err := connection.Read(answer)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(answer[:n])).To(HavePrefix("HTTP/1.1 404 "))
		Expect(time.Since(began)).To(BeNumerically("<", 2*time.Second))
	})

	It("takes little memory with many large requests that it sends slowly, whatever it knows", func(ctx SpecContext) {
		const connections, size, least, bound = 100, 7_000_000, 20 << 20, 100 << 20
		token := suite.CallersToken(ctx, t.admin)
		before, turned := t.gauge(ctx, "go_memstats_heap_inuse_bytes"), t.gauge(ctx, turnedAway)
		slow, end := context.WithCancel(ctx)
		var sending sync.WaitGroup
		defer sending.Wait()
		defer end()
		for range connections {
			sending.Go(func() {
				defer GinkgoRecover()
				connection := t.dial(ctx)
				defer connection.Close()
				context.AfterFunc(slow, func() { _ = connection.Close() })
				announce(connection, "/"+token+webhooks, size)
				_, _ = connection.Write(make([]byte, size-1000)) // until the operator has had enough
				<-slow.Done()
			})
		}
		highest, answered := 0.0, 0
		// A machine that is busy takes longer to receive as much as shows something.
		enough := func(took time.Duration) bool { return took > 4*time.Second && highest > least || took > 30*time.Second }
		for began := time.Now(); !enough(time.Since(began)); answered++ {
			highest = max(highest, t.gauge(ctx, "go_memstats_heap_inuse_bytes")-before)
			Expect(t.admin.Create(ctx, builders.ConfigMap(namespace, fmt.Sprintf("honest-%d", answered)))).To(Succeed())
		}
		AddReportEntry("MiB that it took", fmt.Sprintf("%.0f, while %d honest requests were answered", highest/(1<<20), answered))
		Expect(highest).To(BeNumerically("<", bound))
		Expect(highest).To(BeNumerically(">", least), "an attack that is turned away shows nothing")
		Expect(t.gauge(ctx, turnedAway)).To(BeNumerically("==", turned))
	})

	It("loses the token that it has stolen when the Secret is deleted, and no client notices", func(ctx SpecContext) {
		stolen, before := suite.CallersToken(ctx, t.admin), t.presented(ctx)
		var clients sync.WaitGroup
		done, calls := make(chan struct{}), make([]int, 4)
		for i := range calls {
			clients.Go(func() {
				defer GinkgoRecover()
				for ; ; calls[i]++ {
					select {
					case <-done:
						return
					default:
						Expect(t.admin.Create(ctx, builders.ConfigMap(namespace, fmt.Sprintf("c%d-%d", i, calls[i])))).To(Succeed())
					}
				}
			})
		}
		suite.Kubectl(ctx, t.cluster, "delete", "secret", suite.CertSecret, "-n", suite.Namespace)
		Eventually(ctx, func(ctx context.Context) string { return suite.CallersToken(ctx, t.admin) }).ShouldNot(Equal(stolen))
		Eventually(ctx, t.presented).ShouldNot(Equal(before))
		close(done)
		clients.Wait()
		AddReportEntry("calls while it was replaced", fmt.Sprint(calls))
		status := func(ctx context.Context) (int, error) {
			status, _, err := t.post(ctx, "/"+stolen+webhooks, forged())
			return status, err
		}

		By("starting a replica anew, which serves an API server that hasn't loaded the new token")
		t.restart(ctx, 0)
		Expect(status(ctx)).To(Equal(http.StatusOK))
		Eventually(ctx, status).WithTimeout(90 * time.Second).WithPolling(time.Second).Should(Equal(http.StatusNotFound))
	})
})

// presented is the certificate of the attacked replica.
func (t *target) presented(ctx context.Context) []byte {
	GinkgoHelper()
	connection := t.dial(ctx)
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0].Raw
}

// dial connects to the attacked replica.
func (t *target) dial(ctx context.Context) *tls.Conn {
	GinkgoHelper()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(ctx, "tcp", t.at(0))
	Expect(err).NotTo(HaveOccurred())
	return connection.(*tls.Conn)
}

// announce sends the head of a request with a body of this size.
func announce(connection *tls.Conn, path string, size int) {
	GinkgoHelper()
	_, err := fmt.Fprintf(connection, "POST %s?timeout=10s HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, size)
	Expect(err).NotTo(HaveOccurred())
}
