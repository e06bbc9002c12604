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

package ledgers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/groupcommit"
)

// Decode reads a stored ledger.
type Decode func(*quotav1.QuotaLedger) (groupcommit.Snapshot, error)

// Controller follows the ledgers.
type Controller struct {
	client  client.Reader
	group   *groupcommit.Group
	decode  Decode
	changed func(quotas []string)
}

// NewController makes the controller. The function changed is told of every
// ledger that was written, by whomever.
func NewController(
	client client.Reader, group *groupcommit.Group, decode Decode, changed func(quotas []string),
) *Controller {
	return &Controller{client: client, group: group, decode: decode, changed: changed}
}

// Name returns the controller's name.
func (*Controller) Name() string { return "ledgers" }

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		For(&quotav1.QuotaLedger{}).
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)}).
		Complete(c)
}

// Reconcile hands one ledger to its committer.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// Whoever counts looks whether the ledger still agrees, or is still there.
	defer c.changed([]string{request.Name})
	object := &quotav1.QuotaLedger{}
	err := c.client.Get(ctx, request.NamespacedName, object)
	if apierrors.IsNotFound(err) {
		c.group.Gone(request.Name)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading ledger %s: %w", request.Name, err)
	}
	if c.group.Knows(request.Name, object.ResourceVersion) {
		return reconcile.Result{}, nil // nearly always this process wrote it
	}
	snapshot, err := c.decode(object)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	c.group.Observe(request.Name, snapshot)
	return reconcile.Result{}, nil
}
