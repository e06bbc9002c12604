// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sharedquota/shared-quota-operator/internal/resourceversion"
)

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create;update;delete;list;watch,namespace=system

// Content is what the replicas tell each other. All methods may be called concurrently.
type Content interface {
	// Publish returns what this replica knows itself, to be published, and the version of that; nothing if it knows nothing.
	Publish() (encoded []byte, version uint64, err error)
	// Version is that of Publish.
	Version() uint64
	// Pause returns the least time between two writes, given the version that was published last.
	Pause(published uint64) time.Duration
	// Receive takes what another replica published, in place of what it published before; nothing if it deleted that.
	Receive(replica string, encoded []byte) error
	// Adopt makes what another replica published this one's own: that one has gone. It may be called again for the same
	// replica, until its part is deleted.
	Adopt(replica string)
	// Sweep forgets what is too old.
	Sweep(now time.Time)
}

// Topic says what an Exchange is about.
type Topic struct {
	// About is for logs, as in "which workloads wait".
	About string
	// Label is on the ConfigMaps of all replicas, and Prefix begins their names. Key is where a ConfigMap has its part.
	Label, Prefix, Key string
}

// writtenAnnotation is when a ConfigMap was written.
const writtenAnnotation = "quota.sharedquota.dev/written"

const (
	// lookEvery is how often is looked whether there is something to publish, and retryEvery the least time to a write after
	// one that failed.
	lookEvery, retryEvery = time.Second, 5 * time.Second
	// publishRate bounds in bytes a second what is written over time: etcd keeps all of it for minutes.
	publishRate = 256 << 10
	// refreshEvery is how often a replica writes what hasn't changed, and goneAfter for how long one that has
	// gone did not.
	refreshEvery, goneAfter = 5 * time.Minute, 11 * time.Minute
	// keptFor is how long a part is kept that this release can't decode: nothing in it is of use for longer.
	keptFor = 31 * 24 * time.Hour
	// sweepEvery is how often what is too old is forgotten.
	sweepEvery = 10 * time.Second
	// partTimeout bounds one write.
	partTimeout = 5 * time.Second
)

// Parts are what an Exchange works with.
type Parts struct {
	Topic Topic
	Clock clock.WithTicker
	// ConfigMaps are those of the operator's own namespace; nil if it has none. Then a replica knows only what it
	// heard itself.
	ConfigMaps corev1client.ConfigMapInterface
	Content    Content
	// Process is a name that no other process has.
	Process string
	// Elected is closed once this replica leads.
	Elected <-chan struct{}
}

// Exchange publishes what this replica knows, and follows what others publish.
type Exchange struct {
	Parts

	// name is that of the own ConfigMap.
	name string
	// stored: it exists, as far as is known. published is the version of what it has, and writtenAt when it
	// was written.
	stored    bool
	published uint64
	writtenAt time.Time
	// version is the resourceVersion of what was written last.
	version uint64
	// encoded is what was written last.
	encoded []byte
	// synced: all that others had published at some time is known.
	synced atomic.Bool
	// next is when it may be written again, and trouble why it couldn't be; empty if it could.
	next    time.Time
	trouble string

	// mu guards what follows.
	mu sync.Mutex
	// seenOwn is the resourceVersion of the own ConfigMap, and hasOwn what it has. lostOwn says that it was deleted.
	seenOwn uint64
	hasOwn  []byte
	lostOwn bool
	// name of another's ConfigMap -> when it was written last, by this replica's clock
	seen map[string]seen
}

type seen struct {
	uid     types.UID
	version string
	at      time.Time
	// written is when its replica says that it wrote it.
	written time.Time
	// unreadable: this release can't decode it. A newer one may have written it, before a rollback.
	unreadable bool
	// kept: it was told that it is kept.
	kept bool
}

var _ manager.LeaderElectionRunnable = &Exchange{}

// New makes an Exchange.
func New(parts Parts) *Exchange {
	return &Exchange{Parts: parts, name: parts.Topic.Prefix + parts.Process, seen: map[string]seen{}}
}

// Synced reports whether all that others had published when this replica started is known.
func (e *Exchange) Synced() bool { return e.ConfigMaps == nil || e.synced.Load() }

// NeedLeaderElection says that every replica runs it.
func (*Exchange) NeedLeaderElection() bool { return false }

// Start exchanges until the context ends, and then publishes a last time.
func (e *Exchange) Start(ctx context.Context) error {
	var following sync.WaitGroup
	defer following.Wait()
	if e.ConfigMaps != nil {
		following.Go(func() { e.follow(ctx) })
	}
	ticker := e.Clock.NewTicker(lookEvery)
	defer ticker.Stop()
	swept := e.Clock.Now()
	for {
		select {
		case <-ctx.Done():
			if now := e.Clock.Now(); e.isOutdated(now) {
				e.publishNow(context.WithoutCancel(ctx), now)
			}
			return nil
		case <-ticker.C():
		}
		now := e.Clock.Now()
		if now.Sub(swept) >= sweepEvery {
			swept = now
			e.Content.Sweep(now)
			e.takeOver(ctx, now)
		}
		if !now.Before(e.next) {
			e.publish(ctx, now)
		}
	}
}

// publish writes what this replica knows, if that has changed or must be refreshed.
func (e *Exchange) publish(ctx context.Context, now time.Time) {
	if e.isDue(now) {
		e.publishNow(ctx, now)
	}
}

func (e *Exchange) publishNow(ctx context.Context, now time.Time) {
	size, err := e.write(ctx, now)
	e.next = now.Add(max(lookEvery, time.Second*time.Duration(size)/publishRate))
	if err != nil {
		e.next = now.Add(retryEvery)
		if e.trouble != err.Error() {
			log.FromContext(ctx).Error(err, "The other replicas don't learn "+e.Topic.About+" here. It is tried again")
		}
		e.trouble = err.Error()
		return
	}
	e.trouble = ""
}

// isDue reports whether the own part must be written now.
func (e *Exchange) isDue(now time.Time) bool {
	return now.Sub(e.writtenAt) >= e.Content.Pause(e.published) && e.isOutdated(now)
}

func (e *Exchange) isOutdated(now time.Time) bool {
	return e.ConfigMaps != nil &&
		(e.Content.Version() != e.published || e.stored && (now.Sub(e.writtenAt) >= refreshEvery || e.isDisturbed()))
}

// isDisturbed reports, once, whether somebody else deleted the own ConfigMap or changed what it says. It is called while
// no own write is under way, so everything newer than the last one is somebody else's.
func (e *Exchange) isDisturbed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	disturbed := e.lostOwn || e.seenOwn > e.version && !bytes.Equal(e.hasOwn, e.encoded)
	e.lostOwn = false
	return disturbed
}

// write writes what this replica knows, and returns how many bytes that took.
func (e *Exchange) write(ctx context.Context, now time.Time) (size int, err error) {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	encoded, version, err := e.Content.Publish()
	if err != nil {
		return 0, fmt.Errorf("encoding %s: %w", e.Topic.About, err)
	}
	if len(encoded) == 0 {
		if err := e.remove(ctx); err != nil {
			return 0, err
		}
		e.stored, e.published = false, version
		return 0, nil
	}
	written, err := e.store(ctx, e.part(encoded, now))
	if err != nil {
		return 0, err
	}
	e.stored, e.published, e.writtenAt, e.version = true, version, now, resourceversion.Parse(written.ResourceVersion)
	e.encoded = encoded
	return len(encoded), nil
}

func (e *Exchange) part(encoded []byte, now time.Time) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: e.name, Labels: map[string]string{e.Topic.Label: "true"},
			Annotations: map[string]string{writtenAnnotation: now.UTC().Format(time.RFC3339Nano)},
		},
		BinaryData: map[string][]byte{e.Topic.Key: encoded},
	}
}

// store writes the own ConfigMap, whatever it has now.
func (e *Exchange) store(ctx context.Context, part *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	if e.stored {
		written, err := e.ConfigMaps.Update(ctx, part, metav1.UpdateOptions{})
		if !apierrors.IsNotFound(err) {
			return written, wrap(err, "updating", e.name)
		}
	}
	e.stored = true // if the reply is lost
	written, err := e.ConfigMaps.Create(ctx, part, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // the reply to its creation was lost
		written, err = e.ConfigMaps.Update(ctx, part, metav1.UpdateOptions{})
	}
	return written, wrap(err, "creating", e.name)
}

func (e *Exchange) remove(ctx context.Context) error {
	if !e.stored {
		return nil
	}
	if err := e.ConfigMaps.Delete(ctx, e.name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		return wrap(err, "deleting", e.name)
	}
	return nil
}

func wrap(err error, doing, name string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s ConfigMap %s: %w", doing, name, err)
}

// takeOver lets the leader make its own what replicas published that have gone.
func (e *Exchange) takeOver(ctx context.Context, now time.Time) {
	select {
	case <-e.Elected:
	default:
		return
	}
	gone, kept := e.gone(now)
	for _, name := range kept {
		log.FromContext(ctx).Info("Kept "+e.Topic.About+" by a replica that has gone, because this release can't decode it: one that can "+
			"takes it over. Delete the ConfigMap if no such release is going to run", "configMap", name)
	}
	if len(gone) == 0 {
		return
	}
	for name := range gone {
		e.Content.Adopt(name)
	}
	if _, err := e.write(ctx, now); err != nil {
		log.FromContext(ctx).Error(err, "Can't take over "+e.Topic.About+" by replicas that have gone")
		return
	}
	for name, part := range gone {
		err := e.delete(ctx, name, part)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			log.FromContext(ctx).Error(err, "Can't delete what a replica published that has gone", "configMap", name)
		}
	}
}

func (e *Exchange) delete(ctx context.Context, name string, gone seen) error {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	err := e.ConfigMaps.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID: ptr.To(gone.uid), ResourceVersion: ptr.To(gone.version),
	}})
	return wrap(err, "deleting", name)
}

// follow watches what others publish, until the context ends. Nothing of it is kept but the list.
func (e *Exchange) follow(ctx context.Context) {
	labelled := func(options metav1.ListOptions) metav1.ListOptions {
		options.LabelSelector = e.Topic.Label
		return options
	}
	lister := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return e.ConfigMaps.List(ctx, labelled(options))
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watchInterface, error) {
			return e.ConfigMaps.Watch(ctx, labelled(options))
		},
	}
	store := &partStore{exchange: e, logger: log.FromContext(ctx)}
	source := cache.ToListWatcherWithWatchListSemantics(lister, e.ConfigMaps)
	cache.NewReflectorWithOptions(source, &corev1.ConfigMap{}, store, cache.ReflectorOptions{
		Name: e.Topic.Label, TypeDescription: "configmaps",
	}).RunWithContext(ctx)
}

var (
	errPart  = errors.New("it isn't a ConfigMap")
	errEmpty = errors.New("it is empty")
)
