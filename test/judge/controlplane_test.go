// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// plane is a real control plane without the operator, and a judge of it.
type plane struct {
	cluster *harness.Cluster
	api     client.Client
	judge   *Judge
}

func TestOnAControlPlane(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	p := startPlane(ctx, t)
	t.Run("the judge goes on over a restart of the API server", func(t *testing.T) { p.restart(ctx, t) })
	t.Run("every resource is found where it is stored", func(t *testing.T) { p.everyResource(ctx, t) })
	t.Run("figures that agree, and that don't", func(t *testing.T) { p.agrees(ctx, t) })
	t.Run("a judge that starts later counts what is there", func(t *testing.T) { p.later(ctx, t) })
	t.Run("a report is of everything before it", func(t *testing.T) { p.reportsAll(ctx, t) })
	t.Run("what was compacted before it was read is missed", func(t *testing.T) { p.compacts(ctx, t) })
	t.Run("a judge can be stopped, and says so", func(t *testing.T) { p.stops(ctx, t) })
}

func startPlane(ctx context.Context, t *testing.T) *plane {
	t.Helper()
	cluster, err := harness.Start(ctx, harness.Options{})
	must(t, err)
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
	})
	types := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(types), apiextensionsv1.AddToScheme(types), quotav1.AddToScheme(types)))
	api, err := client.New(cluster.Config(), client.Options{Scheme: types})
	must(t, err)
	judge, err := Start(ctx, cluster.EtcdURL())
	must(t, err)
	t.Cleanup(func() { _ = judge.Stop() })
	return &plane{cluster: cluster, api: api, judge: judge}
}

func (p *plane) restart(ctx context.Context, t *testing.T) {
	p.create(ctx, t, ns("a", "red"), ns("b", "red"), ns("c", "blue"))
	p.create(ctx, t, team().Hard("pods", "2").Obj())
	first, second, third := builders.Pod("a", "x").Obj(), builders.Pod("b", "x").Obj(), builders.Pod("b", "y").Obj()
	p.create(ctx, t, first, builders.Pod("c", "x").Obj(), second, third)
	must(t, p.api.Delete(ctx, first))

	must(t, p.cluster.RestartAPIServer())
	fourth := builders.Pod("a", "z").Obj()
	p.create(ctx, t, fourth)

	want := seen{
		Lives: "pods=3", Peak: "pods=3", Admitted: 4, Slices: map[string]string{"a": "pods=1", "b": "pods=2"},
		Violations: []string{
			fmt.Sprintf("revision %s: /registry/pods/b/y raised pods under quota team to 3, above 2", third.ResourceVersion),
			fmt.Sprintf("revision %s: /registry/pods/a/z raised pods under quota team to 3, above 2", fourth.ResourceVersion),
		},
	}
	if diff := cmp.Diff(want, summary(p.report(ctx, t).Quotas["team"])); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

// everyResource creates one object of each resource that the judge says it
// follows, and wants them all counted.
func (p *plane) everyResource(ctx context.Context, t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	p.create(ctx, t, builders.CustomResource(kind, "widgets"), ns("all", "all"))
	quota := builders.Quota("all").Label("team", "all").Hard("count/widgets.example.com", "9")
	want := corev1.ResourceList{}
	for _, counted := range builtIns() {
		if counted != namespaces && counted != deviceClasses {
			quota.Hard(corev1.ResourceName("count/"+counted.String()), "9")
		}
	}
	p.create(ctx, t, quota.Obj())
	p.create(ctx, t, oneOfEach("all")...)
	// Right after its definition a custom resource is not served yet.
	eventually(ctx, t, func() error { return p.api.Create(ctx, builders.Custom(kind, "all", "x")) })

	got := p.report(ctx, t).Quotas["all"]
	for name := range quota.Obj().Spec.Quota.Hard {
		want[name] = resource.MustParse("1")
	}
	if diff := cmp.Diff(text(want), text(got.Lives)); diff != "" {
		t.Errorf("what lives (-want,+got):\n%s", diff)
	}
}

func oneOfEach(namespace string) []client.Object {
	service := builders.Service(namespace, "x").Type(corev1.ServiceTypeClusterIP, 80).Obj()
	return []client.Object{
		builders.Pod(namespace, "x").Obj(), service, builders.VolumeClaim(namespace, "x").Obj(),
		builders.ConfigMap(namespace, "x"), builders.Secret(namespace, "x"), builders.ResourceQuota(namespace, "x"),
		builders.ReplicationController(namespace, "x"), builders.PodTemplate(namespace, "x"),
		builders.LimitRange(namespace, "x", nil), builders.Deployment(namespace, "x", 0), builders.ReplicaSet(namespace, "x"),
		builders.StatefulSet(namespace, "x"), builders.Job(namespace, "x"), builders.CronJob(namespace, "x"),
		builders.NetworkPolicy(namespace, "x"), builders.Role(namespace, "x"), builders.HorizontalPodAutoscaler(namespace, "x"),
		&corev1.ServiceAccount{ObjectMeta: builders.Meta(namespace, "x")},
		&corev1.Endpoints{ObjectMeta: builders.Meta(namespace, "x")}, //nolint:staticcheck // It is stored in a place of its own.
		&discoveryv1.EndpointSlice{ObjectMeta: builders.Meta(namespace, "x"), AddressType: discoveryv1.AddressTypeIPv4},
		&policyv1.PodDisruptionBudget{ObjectMeta: builders.Meta(namespace, "x")},
		&appsv1.ControllerRevision{
			ObjectMeta: builders.Meta(namespace, "x"), Revision: 1, Data: runtime.RawExtension{Raw: []byte("{}")},
		},
		&appsv1.DaemonSet{ObjectMeta: builders.Meta(namespace, "x"), Spec: appsv1.DaemonSetSpec{
			Selector: builders.Deployment(namespace, "x", 0).Spec.Selector,
			Template: builders.Deployment(namespace, "x", 0).Spec.Template,
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: builders.Meta(namespace, "x"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "x"},
		},
		&networkingv1.Ingress{ObjectMeta: builders.Meta(namespace, "x"), Spec: networkingv1.IngressSpec{
			DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
				Name: "x", Port: networkingv1.ServiceBackendPort{Number: 80},
			}},
		}},
	}
}

// agrees goes on from what restart left behind.
func (p *plane) agrees(ctx context.Context, t *testing.T) {
	must(t, p.api.Delete(ctx, builders.Quota("all").Obj()))
	quota := &quotav1.ClusterResourceQuota{}
	must(t, p.api.Get(ctx, client.ObjectKey{Name: "team"}, quota))
	said := saidOf(quota, p.report(ctx, t).Quotas["team"])
	p.create(ctx, t, said.ledgers["team"])
	for _, view := range said.views["team"] {
		p.create(ctx, t, view)
	}
	quota.Status = said.quotas["team"].Status
	must(t, p.api.Status().Update(ctx, quota))
	if err := p.judge.Agrees(ctx, p.api); err != nil {
		t.Errorf("what agrees is said not to: %v", err)
	}

	late := builders.Pod("c", "late").Obj()
	p.create(ctx, t, late)
	if err := p.judge.Agrees(ctx, p.api); err != nil {
		t.Errorf("a pod in a namespace that isn't selected makes a difference: %v", err)
	}
	p.create(ctx, t, builders.Pod("a", "late").Obj())
	err := p.judge.Agrees(ctx, p.api)
	if want := "quota team: ledger: used: pods is 3, want 4\n"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
}

// later compares with a judge that has seen everything.
func (p *plane) later(ctx context.Context, t *testing.T) {
	late, err := Start(ctx, p.cluster.EtcdURL())
	must(t, err)
	defer func() { must(t, late.Stop()) }()
	report, err := late.Report(ctx)
	must(t, err)
	got, want := report.Quotas["team"], p.report(ctx, t).Quotas["team"]
	if len(got.Violations) > 0 || got.Admitted > 0 {
		t.Errorf("what happened before is judged: %+v", got)
	}
	want.Violations, want.Admitted = nil, 0
	if diff := cmp.Diff(summary(want), summary(got)); diff != "" {
		t.Errorf("(-before,+after):\n%s", diff)
	}
}

func (p *plane) reportsAll(ctx context.Context, t *testing.T) {
	p.create(ctx, t, ns("many", "many"), builders.Quota("many").Label("team", "many").Hard("count/configmaps", "1000").Obj())
	for number := range 50 {
		object := builders.ConfigMap("many", fmt.Sprintf("x-%d", number))
		p.create(ctx, t, object)
		report := p.report(ctx, t)
		if lives := report.Quotas["many"].Lives["count/configmaps"]; lives.CmpInt64(int64(number)+1) != 0 {
			t.Fatalf("%s live after %d were created", lives.String(), number+1)
		}
	}
}

func (p *plane) compacts(ctx context.Context, t *testing.T) {
	client, err := dial(p.cluster.EtcdURL())
	must(t, err)
	behind := newJudge()
	behind.client, behind.done = client, make(chan struct{})
	_, err = client.Compact(ctx, p.report(ctx, t).Revision)
	must(t, err)
	behind.watch(ctx)
	<-behind.done
	if _, err := behind.Report(ctx); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("a judge that was left behind reports, with error %v", err)
	}
	if err := behind.Stop(); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("a judge that was left behind stops with error %v", err)
	}
	p.report(ctx, t) // The one that was not goes on.
}

func (p *plane) stops(ctx context.Context, t *testing.T) {
	must(t, p.judge.Stop())
	if _, err := p.judge.Report(ctx); !errors.Is(err, errStopped) {
		t.Errorf("a stopped judge reports, with error %v", err)
	}
}

func (p *plane) report(ctx context.Context, t *testing.T) Report {
	t.Helper()
	report, err := p.judge.Report(ctx)
	must(t, err)
	return report
}

// create makes the objects, one after the other. The connection may be one to
// an API server that was killed meanwhile.
func (p *plane) create(ctx context.Context, t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		eventually(ctx, t, func() error {
			err := p.api.Create(ctx, object)
			if apierrors.IsAlreadyExists(err) {
				return p.api.Get(ctx, client.ObjectKeyFromObject(object), object)
			}
			return err
		})
	}
}

func eventually(ctx context.Context, t *testing.T, try func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	must(t, errors.Join(err, last))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
