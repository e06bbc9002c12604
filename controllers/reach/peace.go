// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/internal/resourceversion"
)

// cacheDelay is for how long the cache may not have what this controller has created.
const cacheDelay = time.Second

// snapshot is what one reconcile has seen.
type snapshot struct {
	settings reach.Settings
	// current is the configuration in the cluster, and found the same taken apart. Without one,
	// missing is true and both are empty.
	current *admissionregistrationv1.ValidatingWebhookConfiguration
	found   reach.Found
	missing bool
	quotas  []reach.Quota
	// coverages are those of the quotas, and takes says what takes namespaces out.
	coverages []reach.Coverage
	takes     []string
	// narrowed: what others have added takes namespaces out.
	narrowed bool
}

// dispute is what there is between this controller and others who edit the configuration.
type dispute struct {
	// wrote is the configuration as it was written last, or as it was found to be right;
	// nil before. spoiled: somebody else has edited it since.
	wrote   *admissionregistrationv1.ValidatingWebhookConfiguration
	wroteAt time.Time
	spoiled bool
	brake   reach.Brake
	// changes are the words for the edit, and concerned those for the quotas that are no
	// longer covered because of it.
	changes   string
	concerned map[types.UID]string
}

// look reads all that a reconcile needs.
func (c *Controller) look(ctx context.Context) (*snapshot, error) {
	seen := &snapshot{settings: c.options.Settings(), current: &admissionregistrationv1.ValidatingWebhookConfiguration{}}
	err := c.client.Get(ctx, client.ObjectKey{Name: reach.ConfigurationName}, seen.current)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the webhook configuration: %w", err)
	}
	seen.missing = err != nil
	if seen.quotas, err = c.quotas(ctx, seen.settings); err != nil {
		return nil, err
	}
	seen.found = seen.settings.Find(seen.current, reach.Keys(seen.quotas, c.dispute.wrote))
	c.versions.Date(seen.settings, seen.found.Own, seen.quotas)
	// From here on, namespaces that change ask for a reconcile. Those that have changed
	// before are in the list.
	c.narrowing.Store(len(seen.found.Added) > 0)
	var outside []reach.Namespace
	if len(seen.found.Added) > 0 {
		namespaces, err := c.namespaces(ctx)
		if err != nil {
			return nil, err
		}
		outside = seen.found.Outside(namespaces)
	}
	for _, quota := range seen.quotas {
		coverage, takes := seen.settings.Cover(seen.found, quota, outside)
		seen.coverages, seen.takes = append(seen.coverages, coverage), append(seen.takes, takes)
		seen.narrowed = seen.narrowed || takes != ""
	}
	return seen, nil
}

// namespaces are those in the cache.
func (c *Controller) namespaces(ctx context.Context) ([]reach.Namespace, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := c.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	namespaces := make([]reach.Namespace, 0, len(list.Items))
	for i := range list.Items {
		item := &list.Items[i]
		namespaces = append(namespaces, reach.Namespace{Name: item.Name, Labels: item.Labels, Annotations: item.Annotations})
	}
	return namespaces, nil
}

// behind returns how long to wait for the cache, because it has an older configuration
// than this controller has written. Others would seem to have taken that back.
func (c *Controller) behind(seen *snapshot) time.Duration {
	wrote := c.dispute.wrote
	switch {
	case wrote == nil:
		return 0
	case seen.missing:
		return max(0, cacheDelay-c.clock.Since(c.dispute.wroteAt))
	case resourceversion.Parse(seen.current.ResourceVersion) < resourceversion.Parse(wrote.ResourceVersion):
		return cacheDelay
	default:
		return 0
	}
}

// judge finds out whether somebody else has edited the configuration so that it has to be
// repaired, and which quotas that concerns.
func (c *Controller) judge(ctx context.Context, seen *snapshot) {
	d, now := &c.dispute, c.clock.Now()
	if d.wrote == nil {
		return
	}
	intact := !seen.missing && alike(seen.found.Own, d.wrote)
	d.spoiled = d.spoiled || !intact || seen.narrowed
	if !d.spoiled {
		if d.brake.Trial(now) == 0 {
			d.concerned = nil
		}
		return
	}
	first := d.brake.Edited(now)
	if !intact || seen.narrowed {
		d.changes = reach.Changes(seen.current, d.wrote, fieldOwner)
	}
	if first {
		log.FromContext(ctx).Info("The webhook configuration has to be repaired", "why", d.brake.Words(d.changes))
	}
	d.concern(seen)
}

// concern notes the quotas that the edit leaves uncovered. Those whose own spec is newer
// than what was written are not among them.
func (d *dispute) concern(seen *snapshot) {
	if d.concerned == nil {
		d.concerned = map[types.UID]string{}
	}
	for i, quota := range seen.quotas {
		if seen.coverages[i] == reach.Missing && seen.settings.Coverage(d.wrote, quota) != reach.Missing {
			d.concerned[quota.UID] = seen.takes[i]
		}
	}
}

// edition returns the one of which the configuration in the cluster is, if it may stay
// that: what others have added since takes nothing out.
func (c *Controller) edition(seen *snapshot) (reach.Edition, bool) {
	edition, current := seen.settings.Edition(seen.current)
	if c.dispute.spoiled || seen.narrowed || edition == (reach.Edition{}) {
		return edition, false
	}
	if wrote := c.dispute.wrote; wrote != nil {
		last, _ := seen.settings.Edition(wrote)
		return edition, edition == last
	}
	return edition, current || seen.found.Touched()
}

// standings are how the configuration stands to each quota.
func (c *Controller) standings(seen *snapshot) []reach.Standing {
	standings := make([]reach.Standing, 0, len(seen.quotas))
	for i, quota := range seen.quotas {
		standing := reach.Standing{Coverage: seen.coverages[i]}
		if takes, found := c.dispute.concerned[quota.UID]; found {
			changes := c.dispute.changes
			if takes != "" {
				changes += ", and " + takes
			}
			standing.Dispute = c.dispute.brake.Words(changes)
		}
		standings = append(standings, standing)
	}
	return standings
}

// noteWritten notes what was written.
func (c *Controller) noteWritten(wanted *admissionregistrationv1.ValidatingWebhookConfiguration, version string) {
	now := c.clock.Now()
	written := wanted.DeepCopy()
	written.ResourceVersion = version
	c.dispute.wrote, c.dispute.wroteAt, c.dispute.spoiled = written, now, false
	c.dispute.brake.Repaired(now)
}
