// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// cloned are the ways into a network namespace: by one's own rights, or by those of
// whom owns a new user namespace.
func cloned() []*syscall.SysProcAttr {
	return []*syscall.SysProcAttr{
		{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL},
		{
			Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		},
	}
}

// configureLoopback brings the loopback device up, which gives it 127.0.0.1, and adds
// the others to it.
func configureLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	errs := []error{bringUp(socket, "lo"), addAddress(socket, "lo:api", apiServerAddress)}
	for i := range Addresses {
		errs = append(errs, addAddress(socket, fmt.Sprintf("lo:%d", i), Address(i)))
	}
	return errors.Join(append(errs, unix.Close(socket))...)
}

func bringUp(socket int, device string) error {
	request, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

// addAddress gives a device an address under a label, for that address alone: the rest
// of its network is not here.
func addAddress(socket int, label, address string) error {
	request, err := unix.NewIfreq(label)
	if err != nil {
		return err
	}
	if err := request.SetInet4Addr(net.ParseIP(address).To4()); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFADDR, request); err != nil {
		return fmt.Errorf("adding %s: %w", address, err)
	}
	if err := request.SetInet4Addr(net.CIDRMask(32, 32)); err != nil {
		return err
	}
	return unix.IoctlIfreq(socket, unix.SIOCSIFNETMASK, request)
}
