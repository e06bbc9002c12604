// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	etcdName      = "etcd"
	apiServerName = "kube-apiserver"
)

func (c *Cluster) startControlPlane(ctx context.Context) error {
	// envtest takes no context. When ctx ends, the watchdog kills what has
	// started and lets nothing more start; envtest then fails at once.
	disarm := context.AfterFunc(ctx, func() { _ = c.watchdog.release() })
	defer disarm()

	if err := c.configureControlPlane(); err != nil {
		return err
	}
	if err := c.plane.Start(); err != nil {
		return c.controlPlaneError(ctx, "starting the control plane", err)
	}
	if err := c.addAdmin(); err != nil {
		return err
	}
	if err := c.waitForDefaultNamespace(ctx); err != nil {
		return c.controlPlaneError(ctx, "waiting for the namespace default", err)
	}
	if err := c.installCRDs(ctx, c.options.CRDDirs...); err != nil {
		return c.controlPlaneError(ctx, "preparing the control plane", err)
	}
	return nil
}

// configureControlPlane says what is to run, and where its files are.
func (c *Cluster) configureControlPlane() error {
	etcdLog, err := c.createLog(etcdName)
	if err != nil {
		return err
	}
	apiServerLog, err := c.createLog(apiServerName)
	if err != nil {
		return errors.Join(err, etcdLog.Close())
	}
	c.planeLogs = []*os.File{etcdLog, apiServerLog}

	etcd := &envtest.Etcd{
		DataDir: filepath.Join(c.dir, "etcd"),
		Out:     etcdLog, Err: etcdLog,
		StartTimeout: defaultStartTimeout, StopTimeout: defaultGracePeriod,
	}
	apiServer := &envtest.APIServer{
		CertDir: c.certDir(),
		Out:     apiServerLog, Err: apiServerLog,
		StartTimeout: defaultStartTimeout, StopTimeout: defaultGracePeriod,
	}
	if c.options.Production {
		// Without a route to anywhere it finds no address of its own to advertise.
		apiServer.Configure().Set("enable-aggregator-routing", "true").Set("advertise-address", apiServerAddress)
	}
	for flag, value := range c.options.APIServerFlags {
		apiServer.Configure().Set(flag, value)
	}
	for _, dir := range []string{etcd.DataDir, apiServer.CertDir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	// envtest starts its processes itself: give it scripts that let the watchdog know.
	if etcd.Path, err = c.watchdog.script(etcdName, c.asset(etcdName)); err != nil {
		return err
	}
	if apiServer.Path, err = c.watchdog.script(apiServerName, c.asset(apiServerName)); err != nil {
		return err
	}
	c.plane = &envtest.ControlPlane{Etcd: etcd, APIServer: apiServer, KubectlPath: c.asset(kubectlName)}
	return nil
}

// RestartAPIServer ends kube-apiserver with SIGKILL, as a crash would, and
// returns once it answers again, at the same address and with the same data.
func (c *Cluster) RestartAPIServer() error {
	if err := c.killAPIServer(); err != nil {
		return err
	}
	return c.startAPIServer()
}

func (c *Cluster) killAPIServer() error {
	pid, err := c.watchdog.pid(apiServerName)
	if err != nil {
		return err
	}
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing kube-apiserver: %w", err)
	}
	if err := c.plane.APIServer.Stop(); err != nil {
		return fmt.Errorf("stopping kube-apiserver: %w", err)
	}
	return nil
}

func (c *Cluster) startAPIServer() error {
	if err := c.plane.APIServer.Start(); err != nil {
		return fmt.Errorf("starting kube-apiserver again: %w\n%s", err, tail(c.logPath(apiServerName), tailLines))
	}
	return nil
}

// CopyEtcd copies etcd's data as they would be after a crash, and returns the copy's directory. etcd is paused meanwhile.
func (c *Cluster) CopyEtcd() (string, error) {
	pid, err := c.watchdog.pid(etcdName)
	if err != nil {
		return "", err
	}
	if err := syscall.Kill(-pid, syscall.SIGSTOP); err != nil {
		return "", fmt.Errorf("pausing etcd: %w", err)
	}
	backup := filepath.Join(c.dir, c.uniqueName("backup"))
	return backup, errors.Join(os.CopyFS(backup, os.DirFS(c.plane.Etcd.DataDir)), syscall.Kill(-pid, syscall.SIGCONT))
}

// RestoreEtcd kills kube-apiserver, as a crash would, stops etcd and puts a copy of its data back. It returns a
// function that starts the API server again; etcd runs by then.
func (c *Cluster) RestoreEtcd(backup string) (start func() error, err error) {
	if err := c.killAPIServer(); err != nil {
		return nil, err
	}
	etcd := c.plane.Etcd
	if err := etcd.Stop(); err != nil {
		return nil, fmt.Errorf("stopping etcd: %w", err)
	}
	if err := errors.Join(os.RemoveAll(etcd.DataDir), os.CopyFS(etcd.DataDir, os.DirFS(backup))); err != nil {
		return nil, fmt.Errorf("putting back a copy of etcd's data: %w", err)
	}
	if err := etcd.Start(); err != nil {
		return nil, fmt.Errorf("starting etcd again: %w\n%s", err, tail(c.logPath(etcdName), tailLines))
	}
	return c.startAPIServer, nil
}

// EtcdURL is where etcd serves clients, without authentication.
func (c *Cluster) EtcdURL() string {
	return c.plane.Etcd.URL.String()
}

func (c *Cluster) stopControlPlane() error {
	var errs []error
	if c.plane != nil {
		if err := c.plane.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("stopping the control plane: %w", err))
		}
	}
	for _, log := range c.planeLogs {
		errs = append(errs, log.Close())
	}
	return errors.Join(errs...)
}

func (c *Cluster) addAdmin() error {
	user, err := c.plane.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, &rest.Config{QPS: -1})
	if err != nil {
		return fmt.Errorf("creating the admin user: %w", err)
	}
	c.admin = user.Config()
	if err := os.WriteFile(c.caFile(), c.admin.CAData, 0o600); err != nil {
		return err
	}
	_, err = c.WriteKubeconfig("admin", c.admin)
	return err
}

// waitForDefaultNamespace waits until the API server has created it: the last
// thing that it does before it is of use.
func (c *Cluster) waitForDefaultNamespace(ctx context.Context) error {
	reader, err := client.New(c.admin, client.Options{})
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, defaultStartTimeout, true, func(ctx context.Context) (bool, error) {
		last = reader.Get(ctx, types.NamespacedName{Name: corev1.NamespaceDefault}, &corev1.Namespace{})
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// installCRDs creates or updates the CRDs in the files of the given
// directories, and returns once the API server serves them.
func (c *Cluster) installCRDs(ctx context.Context, dirs ...string) error {
	// envtest's wait takes no context, so that it is made in short turns.
	options := envtest.CRDInstallOptions{Paths: dirs, ErrorIfPathMissing: true, MaxTime: time.Second, PollInterval: 50 * time.Millisecond}
	if err := envtest.ReadCRDFiles(&options); err != nil {
		return fmt.Errorf("reading CRDs: %w", err)
	}
	if err := envtest.CreateCRDs(c.admin, options.CRDs); err != nil {
		return fmt.Errorf("installing CRDs: %w", err)
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, options.PollInterval, defaultStartTimeout, true, func(context.Context) (bool, error) {
		last = envtest.WaitForCRDs(c.admin, options.CRDs, options)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for CRDs to be served: %w", errors.Join(err, last))
	}
	return nil
}

// controlPlaneError says why err came about: because ctx ended, or else what
// the logs say.
func (c *Cluster) controlPlaneError(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	return fmt.Errorf("%s: %w\n%s%s", doing, err, tail(c.logPath(etcdName), tailLines), tail(c.logPath(apiServerName), tailLines))
}

func (c *Cluster) certDir() string {
	return filepath.Join(c.dir, "certs")
}

// caFile holds the certificate of the authority that signed the API server's.
func (c *Cluster) caFile() string {
	return filepath.Join(c.certDir(), "ca.crt")
}
