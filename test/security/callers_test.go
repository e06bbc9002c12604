// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const turnedAway = "sharedquota_serving_turned_away_total"

var _ = Describe("A pod that reaches the operator's port", Label("attacks"), Ordered, func() {
	const name = "attacked"
	var attacked *harness.Operator
	BeforeAll(func(ctx SpecContext) { attacked = attackable(ctx, name) })

	It("reserves nothing with a forged request", func(ctx SpecContext) {
		token := suite.CallersToken(ctx, admin)
		guessed := strings.Repeat("0", len(token))
		paths := []string{
			"/", webhooks, webhooks + "/any/1-0123456789abcdef", "/" + guessed + webhooks, "/" + token[1:] + webhooks, webhooks + "/" + token,
			"/validate-quotas", "/probe/1-0123456789abcdef",
		}
		turned := gauge(ctx, attacked, turnedAway)
		for _, path := range paths {
			status, _, err := post(ctx, attacked, path, forged(name))
			Expect(err).NotTo(HaveOccurred())
			Expect(status).To(Equal(http.StatusNotFound), path)
		}
		Expect(reserved(ctx, name)).To(BeZero())
		Expect(gauge(ctx, attacked, turnedAway)).To(BeNumerically("==", turned+float64(len(paths))))

		By("showing what it could do with the token")
		status, allowed, err := post(ctx, attacked, "/"+token+webhooks, forged(name))
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusOK))
		Expect(allowed).To(BeTrue())
		Expect(reserved(ctx, name)).To(Equal(1))
	})

	It("is turned away before it has sent anything", func(ctx SpecContext) {
		connection := dial(ctx, attacked)
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
		// 700 MB are sent. The bodies at work are 60 MiB at most, and the collector lets 96 MiB of garbage pile up.
		const connections, size, least, bound = 100, 7_000_000, 20 << 20, (60 + 96) << 20
		token := suite.CallersToken(ctx, admin)
		before, turned := gauge(ctx, attacked, "go_memstats_heap_inuse_bytes"), gauge(ctx, attacked, turnedAway)
		slow, end := context.WithCancel(ctx)
		var sending sync.WaitGroup
		defer sending.Wait()
		defer end()
		for range connections {
			sending.Go(func() {
				defer GinkgoRecover()
				connection := dial(ctx, attacked)
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
			highest = max(highest, gauge(ctx, attacked, "go_memstats_heap_inuse_bytes")-before)
			Expect(admin.Create(ctx, builders.ConfigMap(name, fmt.Sprintf("honest-%d", answered)))).To(Succeed())
		}
		AddReportEntry("MiB that it took", fmt.Sprintf("%.0f, while %d honest requests were answered", highest/(1<<20), answered))
		Expect(highest).To(BeNumerically("<", bound))
		Expect(highest).To(BeNumerically(">", least), "an attack that is turned away shows nothing")
		Expect(gauge(ctx, attacked, turnedAway)).To(BeNumerically("==", turned))
	})

	It("keeps few of very many idle connections, and answers all others", func(ctx SpecContext) {
		const addresses, each, kept = 4, 750, 400
		memory := func() float64 {
			return gauge(ctx, attacked, "go_memstats_heap_inuse_bytes") + gauge(ctx, attacked, "go_memstats_stack_inuse_bytes")
		}
		var slowest time.Duration
		created := 0
		create := func() {
			began := time.Now()
			Expect(admin.Create(ctx, builders.ConfigMap(name, fmt.Sprintf("beside-%d", created)))).To(Succeed())
			slowest = max(slowest, time.Since(began))
			created++
		}
		for range 50 {
			create()
		}
		before, slowestBefore := memory(), slowest
		slowest = 0
		var opening sync.WaitGroup
		connections := make([]*tls.Conn, addresses*each)
		for i := range addresses {
			dialer := &tls.Dialer{
				NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i))}}, Config: &tls.Config{InsecureSkipVerify: true},
			}
			opening.Go(func() {
				defer GinkgoRecover()
				for j := range each {
					// The operator may close it before the handshake is over.
					if connection, err := dialer.DialContext(ctx, "tcp", at(attacked)); err == nil {
						connections[i*each+j] = connection.(*tls.Conn)
					}
				}
			})
		}
		open := make(chan struct{})
		go func() { opening.Wait(); close(open) }()
		highest := 0.0
		for opened := false; !opened; {
			select {
			case <-open:
				opened = true
			default:
			}
			create()
			highest = max(highest, memory()-before)
		}
		AddReportEntry("very many idle connections", fmt.Sprintf("%d took %.0f MiB at most; %d honest requests took at most %s, %s before",
			len(connections), highest/(1<<20), created, slowest, slowestBefore))
		Expect(stillOpen(connections)).To(BeNumerically("<=", kept), "how much memory is garbage depends on the collector")
		By("closing them all")
		for _, connection := range connections {
			if connection != nil {
				Expect(connection.SetReadDeadline(time.Now().Add(suite.Deadline))).To(Succeed())
				_, err := connection.Read(make([]byte, 1))
				Expect(os.IsTimeout(err)).To(BeFalse(), "%v", err)
				_ = connection.Close()
			}
		}
	})

	It("loses the token that it has stolen when the Secret is deleted, and no client notices", func(ctx SpecContext) {
		stolen, before := suite.CallersToken(ctx, admin), presented(ctx, attacked)
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
						Expect(admin.Create(ctx, builders.ConfigMap(name, fmt.Sprintf("c%d-%d", i, calls[i])))).To(Succeed())
					}
				}
			})
		}
		suite.Kubectl(ctx, cluster, "delete", "secret", suite.CertSecret, "-n", suite.Namespace)
		Eventually(ctx, func(ctx context.Context) string { return suite.CallersToken(ctx, admin) }).ShouldNot(Equal(stolen))
		Eventually(ctx, presented).WithArguments(attacked).ShouldNot(Equal(before))
		close(done)
		clients.Wait()
		AddReportEntry("calls while it was replaced", fmt.Sprint(calls))
		status := func(ctx context.Context) (int, error) {
			status, _, err := post(ctx, attacked, "/"+stolen+webhooks, forged(name))
			return status, err
		}

		By("starting a replica anew, which serves an API server that hasn't loaded the new token")
		replicas.Stop(attacked)
		attacked = replicas.Add(ctx)
		Expect(status(ctx)).To(Equal(http.StatusOK))
		Eventually(ctx, status).WithTimeout(90 * time.Second).WithPolling(time.Second).Should(Equal(http.StatusNotFound))
	})
})

// presented is a replica's certificate.
func presented(ctx context.Context, by *harness.Operator) []byte {
	GinkgoHelper()
	connection := dial(ctx, by)
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0].Raw
}

// dial connects to a replica.
func dial(ctx context.Context, to *harness.Operator) *tls.Conn {
	GinkgoHelper()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(ctx, "tcp", at(to))
	Expect(err).NotTo(HaveOccurred())
	return connection.(*tls.Conn)
}

// announce sends the head of a request with a body of this size.
func announce(connection *tls.Conn, path string, size int) {
	GinkgoHelper()
	_, err := fmt.Fprintf(connection, "POST %s?timeout=10s HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, size)
	Expect(err).NotTo(HaveOccurred())
}

// stillOpen returns how many connections their other side has not closed.
func stillOpen(connections []*tls.Conn) int {
	var open atomic.Int64
	var reading sync.WaitGroup
	for _, connection := range connections {
		if connection == nil {
			continue
		}
		reading.Go(func() {
			defer GinkgoRecover()
			Expect(connection.SetReadDeadline(time.Now().Add(500 * time.Millisecond))).To(Succeed())
			if _, err := connection.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				open.Add(1)
			}
		})
	}
	reading.Wait()
	return int(open.Load())
}
