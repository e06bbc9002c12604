// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"os"
)

// ProgramOptions say how to run a program of a test's own.
type ProgramOptions struct {
	// Name starts the name of its log.
	Name string
	// Path of the binary.
	Path string
	// Args of the program.
	Args []string
	// Env are further environment variables, each NAME=VALUE.
	Env []string
	// ReadyURL answers 200 once the program is ready.
	ReadyURL string
}

// StartProgram runs a program and returns once it is ready. Cluster.Stop stops it.
func (c *Cluster) StartProgram(ctx context.Context, options ProgramOptions) (*Process, error) {
	return c.startProcess(ctx, processSpec{
		name:     c.uniqueName(options.Name),
		path:     options.Path,
		args:     options.Args,
		env:      append(os.Environ(), options.Env...),
		readyURL: options.ReadyURL,
	})
}

// FreePort returns a loopback port that nobody listens on.
func FreePort() (int, error) {
	ports, err := freePorts(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}
