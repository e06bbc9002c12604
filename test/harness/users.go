// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// User makes a user who authenticates with a client certificate, and returns
// their configuration. The user has the rights that RBAC gives them, at first
// only those of system:authenticated.
func (c *Cluster) User(name string, groups ...string) (*rest.Config, error) {
	user, err := c.plane.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		return nil, fmt.Errorf("creating the user %s: %w", name, err)
	}
	return user.Config(), nil
}

// As returns the configuration of admin impersonating the user.
func (c *Cluster) As(name string, groups ...string) *rest.Config {
	config := c.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	return config
}

// WriteKubeconfig writes config, as User, As or Config returned it, or with the
// token of a ServiceAccount, to the cluster's directory as a kubeconfig file, and
// returns its path. A file that was written under the same name is replaced.
func (c *Cluster) WriteKubeconfig(name string, config *rest.Config) (string, error) {
	const entry = "shared-quota"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[entry] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos[entry] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
		Impersonate:           config.Impersonate.UserName,
		ImpersonateGroups:     config.Impersonate.Groups,
	}
	kubeconfig.Contexts[entry] = &clientcmdapi.Context{Cluster: entry, AuthInfo: entry}
	kubeconfig.CurrentContext = entry

	path := c.kubeconfigPath(name)
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", name, err)
	}
	return path, nil
}

func (c *Cluster) kubeconfigPath(name string) string {
	return filepath.Join(c.dir, name+".kubeconfig")
}
