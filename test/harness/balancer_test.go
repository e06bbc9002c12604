// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// echo is a backend that answers each line with its own name.
func echo(t *testing.T, name string) int {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				lines := bufio.NewScanner(connection)
				for lines.Scan() {
					_, _ = fmt.Fprintln(connection, name) // The caller notices.
				}
				_ = connection.Close()
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

func newBalancer(t *testing.T) *Balancer {
	t.Helper()
	b, err := NewBalancer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// caller is a connection to a Balancer.
type caller struct {
	net.Conn
	lines *bufio.Reader
}

func call(t *testing.T, b *Balancer) caller {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(b.URL(), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return caller{Conn: connection, lines: bufio.NewReader(connection)}
}

// ask returns the name of who answers.
func (c caller) ask() (string, error) {
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(c, "who?"); err != nil {
		return "", err
	}
	line, err := c.lines.ReadString('\n')
	return strings.TrimSpace(line), err
}

func mustAsk(t *testing.T, c caller) string {
	t.Helper()
	name, err := c.ask()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestBalancerTakesTurns(t *testing.T) {
	b := newBalancer(t)
	b.SetBackends(echo(t, "one"), echo(t, "two"))
	answers := map[string]int{}
	for range 6 {
		answers[mustAsk(t, call(t, b))]++
	}
	if answers["one"] != 3 || answers["two"] != 3 {
		t.Errorf("answers are %v, want three of each", answers)
	}
	same := call(t, b)
	if first, second := mustAsk(t, same), mustAsk(t, same); first != second {
		t.Errorf("one connection was handed to %s and then %s", first, second)
	}
}

func TestBalancerPassesOverWhatIsDown(t *testing.T) {
	down, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	b := newBalancer(t)
	b.SetBackends(down[0], echo(t, "up"))
	for range 4 {
		if got := mustAsk(t, call(t, b)); got != "up" {
			t.Errorf("%s answers, want up", got)
		}
	}
}

func TestBalancerCutsTheConnectionsOfWhatIsTakenOut(t *testing.T) {
	b := newBalancer(t)
	one, two := echo(t, "one"), echo(t, "two")
	b.SetBackends(one)
	toOne := call(t, b)
	mustAsk(t, toOne)
	b.SetBackends(two)
	if got, err := toOne.ask(); err == nil {
		t.Errorf("%s answers on a connection to a backend that was taken out", got)
	}
	toTwo := call(t, b)
	if got := mustAsk(t, toTwo); got != "two" {
		t.Errorf("%s answers, want two", got)
	}
	b.SetBackends(one, two)
	if got := mustAsk(t, toTwo); got != "two" {
		t.Errorf("%s answers on a connection to a backend that stays, want two", got)
	}
}

func TestBalancerCutsAllAndKeepsItsBackends(t *testing.T) {
	b := newBalancer(t)
	b.SetBackends(echo(t, "one"))
	before := call(t, b)
	mustAsk(t, before)
	b.Cut()
	if got, err := before.ask(); err == nil {
		t.Errorf("%s answers on a connection that was cut", got)
	}
	if got := mustAsk(t, call(t, b)); got != "one" {
		t.Errorf("%s answers, want one", got)
	}
}

func TestBalancerWithoutBackendEndsConnections(t *testing.T) {
	b := newBalancer(t)
	if got, err := call(t, b).ask(); err == nil {
		t.Errorf("%s answers, want an error", got)
	}
}

func TestBalancerURLNamesItsAddress(t *testing.T) {
	b := newBalancer(t)
	parsed, err := url.Parse(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	if port, err := strconv.Atoi(parsed.Port()); parsed.Scheme != "https" || parsed.Hostname() != loopback || err != nil || port == 0 {
		t.Errorf("the URL is %s, want https on %s", b.URL(), loopback)
	}
}
