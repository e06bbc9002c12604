/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package harness

import (
	"cmp"
	"context"
	"os"
	"time"
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
	// StartTimeout is how long that may take; 0 means 60 s.
	StartTimeout time.Duration
}

// StartProgram runs a program and returns once it is ready. Cluster.Stop stops it.
func (c *Cluster) StartProgram(ctx context.Context, options ProgramOptions) (*Process, error) {
	return c.startProcess(ctx, processSpec{
		name:     c.uniqueName(options.Name),
		path:     options.Path,
		args:     options.Args,
		env:      append(os.Environ(), options.Env...),
		readyURL: options.ReadyURL,
		timeout:  cmp.Or(options.StartTimeout, defaultStartTimeout),
		grace:    defaultGracePeriod,
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
