// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// counting is a process that appends to a file for as long as it runs.
const counting = `touch ready; while :; do echo tick >>ticks; sleep 0.01; done`

func startCounting(t *testing.T) (c *Cluster, p *Process) {
	t.Helper()
	c = newProcessCluster(t)
	p, err := c.startProcess(t.Context(), shell(t, c, counting))
	if err != nil {
		t.Fatal(err)
	}
	return c, p
}

func ticks(t *testing.T, c *Cluster) int64 {
	t.Helper()
	file, err := os.Stat(filepath.Join(c.Dir(), "ticks"))
	if err != nil {
		t.Fatal(err)
	}
	return file.Size()
}

// waitForTicks returns once there are more than so many.
func waitForTicks(t *testing.T, c *Cluster, more int64) int64 {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(c.Dir(), "ticks")); err == nil && ticks(t, c) > more {
			return ticks(t, c)
		}
	}
	t.Fatalf("nothing happens after %d ticks", more)
	return 0
}

func TestAPausedProcessDoesNothingUntilItIsResumed(t *testing.T) {
	c, p := startCounting(t)
	waitForTicks(t, c, 0)
	p.Pause()
	<-time.After(100 * time.Millisecond) // What was under way ends.
	before := ticks(t, c)
	<-time.After(300 * time.Millisecond)
	if after := ticks(t, c); after != before {
		t.Errorf("%d more ticks of a process that is paused", after-before)
	}
	p.Resume()
	waitForTicks(t, c, before)
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

func TestAPausedProcessCanBeStoppedAndKilled(t *testing.T) {
	for name, end := range map[string]func(*Process) error{"stopped": (*Process).Stop, "killed": (*Process).Kill} {
		t.Run(name, func(t *testing.T) {
			c, p := startCounting(t)
			p.Pause()
			if err := end(p); err != nil {
				t.Error(err)
			}
			if left := mustPIDs(t, c.Dir()); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

func TestConsumptionGrows(t *testing.T) {
	c := newProcessCluster(t)
	p, err := c.startProcess(t.Context(), shell(t, c, `touch ready; while :; do :; done`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		used, err := p.Consumption()
		if err != nil {
			t.Fatal(err)
		}
		if used.CPU >= 50*time.Millisecond && used.Memory > 0 {
			return
		}
	}
	t.Error("a process that is busy has used no CPU")
}

func TestConsumptionOfAProcessThatHasEnded(t *testing.T) {
	_, p := startCounting(t)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if used, err := p.Consumption(); err == nil {
		t.Errorf("got %+v, want an error", used)
	}
}

func TestCertificateIsForLoopbackAndVerifiesItself(t *testing.T) {
	c := newProcessCluster(t)
	dir, err := c.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(authority) {
		t.Fatal("ca.crt holds no certificate")
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: loopback, Roots: trusted}); err != nil {
		t.Error(err)
	}
	if again, err := c.Certificate(); err != nil || again == dir {
		t.Errorf("another certificate is in %s (error %v), want a directory of its own", again, err)
	}
}

// A proxy on loopback is reached without TLS.
func TestKubeconfigOfAPlainServer(t *testing.T) {
	c := newProcessCluster(t)
	path, err := c.WriteKubeconfig("proxy", &rest.Config{Host: "http://127.0.0.1:1234"})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "http://127.0.0.1:1234" || rest.IsConfigTransportTLS(*config) {
		t.Errorf("the kubeconfig leads to %s, with TLS %t", config.Host, rest.IsConfigTransportTLS(*config))
	}
}
