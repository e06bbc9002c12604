// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// retry is the time after which a Secret that another replica has just written is
// read again, in case its event came before.
const retry = time.Second

// Source is where the certificate comes from.
type Source interface {
	// Load returns the newest, and after how long to load again.
	Load(ctx context.Context) (*Material, time.Duration, error)
}

// Controller takes up certificates.
type Controller struct {
	reader       client.Reader
	certificates *Certificates
	source       Source
	// presented is told when the certificate that is presented ends.
	presented func(end time.Time)
}

// NewController makes the controller. The function presented is told when the certificate that is presented ends.
func NewController(reader client.Reader, certificates *Certificates, source Source, presented func(end time.Time)) *Controller {
	return &Controller{reader: reader, certificates: certificates, source: source, presented: presented}
}

// Name returns the controller's name.
func (*Controller) Name() string { return "certificates" }

// Register adds the controller to the manager. There is one thing to reconcile,
// which the webhook configuration, the Secret and time change.
func (c *Controller) Register(mgr ctrl.Manager) error {
	the := reconcile.Request{}
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{the}
	})
	atTheStart := func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(the)
		return nil
	}
	ours := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetName() == webhookconfig.ConfigurationName })
	building := ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, all, builder.WithPredicates(ours)).
		WatchesRawSource(source.Func(atTheStart)).
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)})
	if _, kept := c.source.(*Secret); kept {
		building = building.Watches(&corev1.Secret{}, all) // the cache holds no other Secret
	}
	return building.Complete(c)
}

// Reconcile takes up the newest certificate, as far as the API server would
// accept it.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	material, again, err := c.source.Load(ctx)
	if errors.Is(err, errElsewhere) {
		return reconcile.Result{RequeueAfter: retry}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("loading the webhook's certificate: %w", err)
	}
	calls, err := Calls(ctx, c.reader)
	if err != nil {
		return reconcile.Result{}, err
	}
	progress := c.certificates.Update(material, calls)
	if progress.Exchanged {
		log.FromContext(ctx).Info("presenting another certificate", "notAfter", material.NotAfter())
	}
	c.presented(c.certificates.NotAfter())
	if progress.Again > 0 {
		again = min(again, progress.Again)
	}
	return reconcile.Result{RequeueAfter: max(again, retry)}, nil
}
