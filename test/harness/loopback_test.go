// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"net"
	"runtime"
	"strconv"
	"testing"
)

func TestClaimedPort(t *testing.T) {
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if claim(ports[0]) == nil {
		t.Errorf("port %d can be claimed again", ports[0])
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(ports[0])))
	if err != nil {
		t.Fatalf("who asked for the port can't listen on it: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}

func TestPortSomebodyListensOn(t *testing.T) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	for range 2 { // The first attempt must not leave a claim that makes the second fail.
		if claim(port) == nil {
			t.Errorf("port %d was claimed", port)
		}
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := claim(port); err != nil {
		t.Errorf("port %d is free: %v", port, err)
	}
}
