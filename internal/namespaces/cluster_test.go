// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// cluster is an API server with quotas and namespaces, and an Index that follows
// it. The watches show events only when the test lets them.
type cluster struct {
	index *Index

	mu         sync.Mutex // guards the fields below
	revision   uint64
	quotas     map[string]*quotav1.ClusterResourceQuota
	namespaces map[string]*metav1.PartialObjectMetadata
	// reads are the live reads, as in "list quotas" and "get namespace shop".
	reads []string
	// takes is how long a read takes, and fails its error.
	takes time.Duration
	fails error
	// interrupt is called after the API server has made the next answer.
	interrupt func()

	quotaWatch, namespaceWatch queue
}

// queue has the events that a watch has yet to show.
type queue struct{ pending []func() }

// next shows so many events.
func (w *queue) next(count int) {
	for ; count > 0 && len(w.pending) > 0; count-- {
		w.pending[0]()
		w.pending = w.pending[1:]
	}
}

func (w *queue) all() { w.next(len(w.pending)) }

func newCluster(tb testing.TB) *cluster {
	tb.Helper()
	c := &cluster{revision: 100, quotas: map[string]*quotav1.ClusterResourceQuota{}, namespaces: map[string]*metav1.PartialObjectMetadata{}}
	c.index = NewIndex(clock.RealClock{}, c)
	c.index.Quotas().List(nil, 1)
	c.index.Namespaces().List(nil, 1)
	return c
}

// label creates a namespace or gives it other labels, as in "team=shop".
func (c *cluster) label(name string, labels ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision++
	object := emptyNamespace()
	object.Name, object.ResourceVersion, object.Labels = name, strconv.FormatUint(c.revision, 10), map[string]string{}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		object.Labels[key] = value
	}
	c.namespaces[name] = object
	c.namespaceWatch.pending = append(c.namespaceWatch.pending, func() { c.index.Namespaces().Set(object) })
}

func (c *cluster) deleteNamespace(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision++
	gone := c.revision
	delete(c.namespaces, name)
	c.namespaceWatch.pending = append(c.namespaceWatch.pending, func() { c.index.Namespaces().Remove(name, gone) })
}

// quota creates a quota that selects by labels, or changes its spec.
func (c *cluster) quota(name, pods string, labels ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision++
	object := &quotav1.ClusterResourceQuota{}
	object.Name, object.UID, object.Generation = name, types.UID(name+strconv.FormatUint(c.revision, 10)), 1
	if known := c.quotas[name]; known != nil {
		object.UID, object.Generation = known.UID, known.Generation+1
	}
	object.ResourceVersion = strconv.FormatUint(c.revision, 10)
	object.Spec.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		object.Spec.Selector.LabelSelector.MatchLabels[key] = value
	}
	object.Spec.Quota.Hard = corev1.ResourceList{"pods": resource.MustParse(pods)}
	c.lockedChange(object)
}

// touch writes a quota's status, or begins its deletion.
func (c *cluster) touch(name string, change func(*quotav1.ClusterResourceQuota)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision++
	object := c.quotas[name].DeepCopy()
	object.ResourceVersion = strconv.FormatUint(c.revision, 10)
	change(object)
	c.lockedChange(object)
}

func (c *cluster) lockedChange(object *quotav1.ClusterResourceQuota) {
	c.quotas[object.Name] = object
	c.quotaWatch.pending = append(c.quotaWatch.pending, func() { c.index.Quotas().Set(object) })
}

func (c *cluster) deleteQuota(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision++
	gone := c.revision
	delete(c.quotas, name)
	c.quotaWatch.pending = append(c.quotaWatch.pending, func() { c.index.Quotas().Remove(name, gone) })
}

// watched shows all that has happened.
func (c *cluster) watched() {
	c.quotaWatch.all()
	c.namespaceWatch.all()
}

// asked is the question of an entry for a namespace's labels, as the leader would
// write it now.
func (c *cluster) asked(namespace string) webhookconfig.Question {
	c.mu.Lock()
	defer c.mu.Unlock()
	question := webhookconfig.Question{Witness: webhookconfig.WitnessNone, Specs: "specs"}
	var uids []types.UID
	for _, name := range slices.Sorted(maps.Keys(c.quotas)) {
		object := c.quotas[name]
		if !object.DeletionTimestamp.IsZero() {
			continue
		}
		version, err := strconv.ParseUint(object.ResourceVersion, 10, 64)
		if err != nil {
			panic(err)
		}
		question.Epoch = max(question.Epoch, version)
		if selects(object, c.namespaces[namespace].Labels) {
			uids = append(uids, object.UID)
		}
	}
	if len(uids) > 0 {
		question.Witness, question.Quotas = webhookconfig.WitnessExact, webhookconfig.QuotaSet(uids)
	}
	return question
}

// selects knows only of equality.
func selects(object *quotav1.ClusterResourceQuota, labels map[string]string) bool {
	for key, value := range object.Spec.Selector.LabelSelector.MatchLabels {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// read notes a read and lets its time pass. The API server answers in the middle.
func (c *cluster) read(ctx context.Context, what string) error {
	c.mu.Lock()
	c.reads = append(c.reads, what)
	takes, fails := c.takes, c.fails
	c.mu.Unlock()
	if takes == 0 {
		return fails
	}
	select {
	case <-clock.RealClock{}.After(takes):
		return fails
	case <-ctx.Done():
		return ctx.Err()
	}
}

// whatWasRead returns the live reads since it was last called.
func (c *cluster) whatWasRead() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	reads := c.reads
	c.reads = nil
	return reads
}

// answered runs the changes that must happen while an answer is on its way.
func (c *cluster) answered() {
	c.mu.Lock()
	interrupt := c.interrupt
	c.interrupt = nil
	c.mu.Unlock()
	if interrupt != nil {
		interrupt()
	}
}

// Get implements client.Reader.
func (c *cluster) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	defer c.answered()
	metadata, isMetadata := into.(*metav1.PartialObjectMetadata)
	kind := "whole quota"
	if isMetadata {
		kind = map[string]string{"Namespace": "namespace", "ClusterResourceQuota": "quota"}[metadata.Kind]
	}
	if err := c.read(ctx, "get "+kind+" "+key.Name); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind == "namespace" {
		if c.namespaces[key.Name] == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
		}
		c.namespaces[key.Name].DeepCopyInto(metadata)
		return nil
	}
	if c.quotas[key.Name] == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "clusterresourcequotas"}, key.Name)
	}
	if isMetadata {
		metadata.ObjectMeta = *c.quotas[key.Name].ObjectMeta.DeepCopy()
		return nil
	}
	c.quotas[key.Name].DeepCopyInto(into.(*quotav1.ClusterResourceQuota))
	return nil
}

// List implements client.Reader.
func (c *cluster) List(ctx context.Context, into client.ObjectList, _ ...client.ListOption) error {
	list, isMetadata := into.(*metav1.PartialObjectMetadataList)
	if !isMetadata || list.Kind != "ClusterResourceQuotaList" {
		return errors.New("only quotas are listed, by their metadata")
	}
	if err := c.read(ctx, "list quotas"); err != nil {
		return err
	}
	defer c.answered()
	c.mu.Lock()
	defer c.mu.Unlock()
	list.ResourceVersion = strconv.FormatUint(c.revision, 10)
	for _, object := range c.quotas {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: *object.ObjectMeta.DeepCopy()})
	}
	return nil
}
