// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// defaultStartTimeout is how long each process may take until it answers.
	// They take a few seconds; a machine busy with builds takes longer.
	defaultStartTimeout = 60 * time.Second
	// defaultGracePeriod is how long a process has between SIGTERM and SIGKILL.
	defaultGracePeriod = 20 * time.Second
	// tailLines is how many lines of a log an error carries.
	tailLines = 20
)

// Options say how to start a Cluster. The zero value is what most tests want.
type Options struct {
	// AssetsDir holds etcd, kube-apiserver, kube-controller-manager and
	// kubectl. By default KUBEBUILDER_ASSETS where set, else bin/k8s below the
	// repository's root.
	AssetsDir string

	// PluginDir is the absolute path of a directory in which kubectl looks for
	// plugins before it looks in PATH. By default it looks in PATH alone.
	PluginDir string

	// CRDDirs are the directories of the CRDs to install. By default
	// config/crd/bases below the repository's root; none if empty and not nil.
	CRDDirs []string

	// APIServerFlags are further flags of kube-apiserver, flag name without
	// dashes -> value. They replace the harness's own.
	APIServerFlags map[string]string

	// Production lets the API server reach a Service at the addresses of its
	// EndpointSlices, as in a cluster. It needs InNamespace.
	Production bool

	// KeepDir leaves the directory, with all logs, in place after Stop.
	KeepDir bool
}

func (o Options) withDefaults() (Options, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return o, err
	}
	if o.CRDDirs == nil {
		o.CRDDirs = []string{filepath.Join(root, "config", "crd", "bases")}
	}
	o.AssetsDir = cmp.Or(o.AssetsDir, os.Getenv("KUBEBUILDER_ASSETS"), filepath.Join(root, "bin", "k8s"))
	o.AssetsDir, err = filepath.Abs(o.AssetsDir)
	return o, err
}

// Cluster is a running control plane and whatever was started against it.
// Its methods may be called from several goroutines.
type Cluster struct {
	options   Options
	dir       string
	watchdog  *watchdog
	plane     *envtest.ControlPlane
	planeLogs []*os.File
	admin     *rest.Config
	stop      func() error

	// mu guards processes and names.
	mu sync.Mutex
	// processes are those that Stop must stop, in the order of their start.
	processes []*Process
	// names maps a process's kind -> how many of them were started.
	names map[string]int
}

// Start runs etcd and kube-apiserver with RBAC, installs the CRDs, and returns
// when the API server serves them. It takes about five seconds; ctx bounds it.
// The caller must call Stop.
//
// Admission is Kubernetes' default without ServiceAccount, so that a pod can
// be created in a namespace that has no service account yet.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	if options.Production {
		if err := checkNamespace(); err != nil {
			return nil, fmt.Errorf("preparing the form of production: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "shared-quota-")
	if err != nil {
		return nil, fmt.Errorf("creating the cluster's directory: %w", err)
	}
	dog, err := startWatchdog(dir, options.KeepDir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c := &Cluster{options: options, dir: dir, watchdog: dog, names: map[string]int{}}
	c.stop = sync.OnceValue(c.stopAll)
	if err := c.startControlPlane(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// StopStarted stops everything that was started beside the control plane, the latest
// first. The error is that of Stop.
func (c *Cluster) StopStarted() error {
	var errs []error
	for _, process := range slices.Backward(c.started()) {
		errs = append(errs, process.Stop())
	}
	return errors.Join(errs...)
}

// Stop stops everything that was started, the latest first, and removes the
// cluster's directory. The error tells of started processes that had ended
// before, and of those that had to be killed. Calling it again does nothing.
func (c *Cluster) Stop() error {
	return c.stop()
}

func (c *Cluster) stopAll() error {
	return errors.Join(c.StopStarted(), c.stopControlPlane(), c.watchdog.release())
}

// Dir is the directory that holds everything of this cluster.
func (c *Cluster) Dir() string {
	return c.dir
}

// Config returns a copy of the configuration of the admin user, a member of
// system:masters. It sets no limit on the rate of requests.
func (c *Cluster) Config() *rest.Config {
	return rest.CopyConfig(c.admin)
}

// Kubeconfig is the path of the admin user's kubeconfig file.
func (c *Cluster) Kubeconfig() string {
	return c.kubeconfigPath("admin")
}

// started returns the processes started so far, in the order of their start.
func (c *Cluster) started() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.processes)
}

// uniqueName names the next process of a kind: operator, operator-2, ...
func (c *Cluster) uniqueName(kind string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names[kind]++
	if n := c.names[kind]; n > 1 {
		return fmt.Sprintf("%s-%d", kind, n)
	}
	return kind
}

func (c *Cluster) asset(name string) string {
	return filepath.Join(c.options.AssetsDir, name)
}
