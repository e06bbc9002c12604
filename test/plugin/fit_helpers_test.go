// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// place is a namespace, the quota that it alone is under, and its owner, who has
// the cluster's own role admin there, and nothing else.
type place struct {
	namespace, quota, kubeconfig string
}

// newPlace makes one. Its name is that of all three.
func newPlace(ctx context.Context, name string, hard corev1.ResourceList) place {
	GinkgoHelper()
	namespace(ctx, name, "fit", name)
	definition := builders.Quota(name).Label("fit", name)
	for resource, quantity := range hard {
		definition.Hard(resource, quantity.String())
	}
	enforced(ctx, definition.Obj())
	p := place{namespace: name, quota: name, kubeconfig: ownerOf(ctx, name)}
	shown(ctx, name, name)
	return p
}

// shown returns once the quota has a view in the namespace.
func shown(ctx context.Context, quota, namespace string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		return api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: quota}, &quotav1.LocalResourceQuota{})
	}).Should(Succeed())
}

func ownerOf(ctx context.Context, namespace string) string {
	GinkgoHelper()
	config, err := cluster.User("owner-of-" + namespace)
	Expect(err).NotTo(HaveOccurred())
	path, err := cluster.WriteKubeconfig("owner-of-"+namespace, config)
	Expect(err).NotTo(HaveOccurred())
	mustKubectl(ctx, "create", "rolebinding", "owner", "--clusterrole=admin", "--user=owner-of-"+namespace, "-n", namespace)
	Eventually(ctx, func(ctx context.Context) int {
		return kubectl(ctx, path, nil, "get", "localresourcequotas,deployments", "-n", namespace).status
	}).Should(BeZero())
	return path
}

// answer is what programs read.
type answer struct {
	Result string `json:"result"`
	Quotas []struct {
		Quota     string `json:"quota"`
		Resource  string `json:"resource"`
		Requested string `json:"requested"`
		Shortfall string `json:"shortfall"`
	} `json:"quotas"`
	Refusals []struct {
		Message string `json:"message"`
	} `json:"refusals"`
	Notes  []string `json:"notes"`
	status int
}

// of returns one column of the quota's rows.
func (a answer) of(quota string, shortfall bool) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, row := range a.Quotas {
		switch {
		case row.Quota != quota:
		case shortfall:
			list[corev1.ResourceName(row.Resource)] = resource.MustParse(row.Shortfall)
		default:
			list[corev1.ResourceName(row.Resource)] = resource.MustParse(row.Requested)
		}
	}
	return list
}

// fits asks, as the owner.
func (p place) fits(ctx context.Context, manifest string, args ...string) answer {
	GinkgoHelper()
	args = append([]string{"fit", "-f", file(manifest), "-n", p.namespace, "-o", "json"}, args...)
	got := crqAs(ctx, p.kubeconfig, args...)
	answered := answer{status: got.status}
	Expect(json.Unmarshal([]byte(got.stdout), &answered)).To(Succeed(), "%s%s", got.stdout, got.stderr)
	return answered
}

// settledFits asks once the answer rests on a view without reservations. Both may be
// outdated still: who has changed what is used waits with comesTo first.
func (p place) settledFits(ctx context.Context, manifest string, args ...string) answer {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		view := &quotav1.LocalResourceQuota{}
		g.Expect(api.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: p.quota}, view)).To(Succeed())
		g.Expect(quota.IsZero(view.Status.Reserved)).To(BeTrue())
		g.Expect(quota.Equals(view.Status.Total.Used, p.used(ctx))).To(BeTrue())
	}).Should(Succeed())
	return p.fits(ctx, manifest, args...)
}

func (p place) apply(ctx context.Context, manifest string) outcome {
	GinkgoHelper()
	return kubectl(ctx, p.kubeconfig, nil, "apply", "-n", p.namespace, "-f", file(manifest))
}

func (p place) mustApply(ctx context.Context, manifest string) {
	GinkgoHelper()
	mustSucceed(p.apply(ctx, manifest))
}

// used is what the quota's status says.
func (p place) used(ctx context.Context) corev1.ResourceList {
	GinkgoHelper()
	current := &quotav1.ClusterResourceQuota{}
	Expect(api.Get(ctx, client.ObjectKey{Name: p.quota}, current)).To(Succeed())
	return current.Status.Total.Used
}

// comesTo waits until exactly this is used, of these resources.
func (p place) comesTo(ctx context.Context, want corev1.ResourceList) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) string { return difference(want, p.used(ctx)) }).Should(BeEmpty())
}

// staysAt: it is reached, and then no more comes.
func (p place) staysAt(ctx context.Context, want corev1.ResourceList) {
	GinkgoHelper()
	p.comesTo(ctx, want)
	Consistently(ctx, func(ctx context.Context) string { return difference(want, p.used(ctx)) }, "1s").Should(BeEmpty())
}

// difference names the resources that are others than wanted.
func difference(want, got corev1.ResourceList) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if w, g := want[name], got[name]; w.Cmp(g) != 0 {
			text += string(name) + ": want " + w.String() + ", is " + g.String() + "; "
		}
	}
	return text
}

// raise adds to what the quota allows.
func (p place) raise(ctx context.Context, by corev1.ResourceList) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		current := &quotav1.ClusterResourceQuota{}
		if err := api.Get(ctx, client.ObjectKey{Name: p.quota}, current); err != nil {
			return err
		}
		current.Spec.Quota.Hard = quota.Add(current.Spec.Quota.Hard, by)
		return api.Update(ctx, current)
	}).Should(Succeed())
}

// refused waits until a controller has been refused.
func (p place) refused(ctx context.Context, message string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) []string {
		events := &corev1.EventList{}
		Expect(api.List(ctx, events, client.InNamespace(p.namespace))).To(Succeed())
		var messages []string
		for _, event := range events.Items {
			if event.Type == corev1.EventTypeWarning {
				messages = append(messages, event.Message)
			}
		}
		return messages
	}).Should(ContainElement(ContainSubstring(message)))
}

func file(content string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "manifest.yaml")
	Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

func list(pairs ...string) corev1.ResourceList {
	made := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		made[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return made
}
