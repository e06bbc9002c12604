// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
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
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create;update;delete;list;watch,namespace=system

const (
	// partLabel is on the ConfigMaps of all replicas, and partPrefix begins their names.
	partLabel  = "quota.sharedquota.dev/waiting"
	partPrefix = "shared-quota-waiting-"
	// partKey is where a ConfigMap has the owners that wait, and writtenAnnotation when it was written.
	partKey           = "owners"
	writtenAnnotation = "quota.sharedquota.dev/written"
)

const (
	// publishEvery is the least time between two writes, and retryEvery that after one that failed.
	publishEvery, retryEvery = time.Second, 5 * time.Second
	// publishRate bounds in bytes a second what is written over time: etcd keeps all of it for minutes.
	publishRate = 256 << 10
	// refreshEvery is how often a replica writes what hasn't changed, and goneAfter for how long one that has
	// gone did not.
	refreshEvery, goneAfter = 5 * time.Minute, 11 * time.Minute
	// sweepEvery is how often what is too old is forgotten.
	sweepEvery = 10 * time.Second
	// partTimeout bounds one write.
	partTimeout = 5 * time.Second
)

// ExchangeParts are what an Exchange works with.
type ExchangeParts struct {
	Clock clock.WithTicker
	// ConfigMaps are those of the operator's own namespace; nil if it has none. Then a replica knows only what it
	// heard itself.
	ConfigMaps corev1client.ConfigMapInterface
	List       *waiting.List
	// Process is a name that no other process has.
	Process string
	// Elected is closed once this replica leads.
	Elected <-chan struct{}
}

// Exchange publishes who waits by what this replica heard, and follows what others publish.
type Exchange struct {
	ExchangeParts

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
}

var _ manager.LeaderElectionRunnable = &Exchange{}

// NewExchange makes an Exchange.
func NewExchange(parts ExchangeParts) *Exchange {
	return &Exchange{ExchangeParts: parts, name: partPrefix + parts.Process, seen: map[string]seen{}}
}

// NeedLeaderElection says that every replica runs it.
func (*Exchange) NeedLeaderElection() bool { return false }

// Start exchanges until the context ends, and then publishes a last time.
func (e *Exchange) Start(ctx context.Context) error {
	var following sync.WaitGroup
	defer following.Wait()
	if e.ConfigMaps != nil {
		following.Go(func() { e.follow(ctx) })
	}
	ticker := e.Clock.NewTicker(publishEvery)
	defer ticker.Stop()
	swept := e.Clock.Now()
	for {
		select {
		case <-ctx.Done():
			e.publish(context.WithoutCancel(ctx), e.Clock.Now())
			return nil
		case <-ticker.C():
		}
		now := e.Clock.Now()
		if now.Sub(swept) >= sweepEvery {
			swept = now
			e.List.Sweep(now)
			e.takeOver(ctx, now)
		}
		if !now.Before(e.next) {
			e.publish(ctx, now)
		}
	}
}

// publish writes what this replica heard, if that has changed or must be refreshed.
func (e *Exchange) publish(ctx context.Context, now time.Time) {
	if e.ConfigMaps == nil || !e.isDue(now) {
		return
	}
	size, err := e.write(ctx, now)
	e.next = now.Add(max(publishEvery, time.Second*time.Duration(size)/publishRate))
	if err != nil {
		e.next = now.Add(retryEvery)
		if e.trouble != err.Error() {
			log.FromContext(ctx).Error(err, "The other replicas don't learn which workloads wait here. It is tried again")
		}
		e.trouble = err.Error()
		return
	}
	e.trouble = ""
}

func (e *Exchange) isDue(now time.Time) bool {
	return e.List.Version() != e.published || e.stored && (now.Sub(e.writtenAt) >= refreshEvery || e.isDisturbed())
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

// write writes what this replica heard, and returns how many bytes that took.
func (e *Exchange) write(ctx context.Context, now time.Time) (size int, err error) {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	records, version := e.List.Own()
	if len(records) == 0 {
		if err := e.remove(ctx); err != nil {
			return 0, err
		}
		e.stored, e.published = false, version
		return 0, nil
	}
	encoded, err := waiting.Encode(records)
	if err != nil {
		return 0, err
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
			Name: e.name, Labels: map[string]string{partLabel: "true"},
			Annotations: map[string]string{writtenAnnotation: now.UTC().Format(time.RFC3339Nano)},
		},
		BinaryData: map[string][]byte{partKey: encoded},
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
	for name, gone := range e.gone(now) {
		e.List.Adopt(name)
		if _, err := e.write(ctx, now); err != nil {
			log.FromContext(ctx).Error(err, "Can't take over which workloads waited at a replica that has gone", "configMap", name)
			return
		}
		err := e.delete(ctx, name, gone)
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

// gone returns the ConfigMaps that nobody has written for long.
func (e *Exchange) gone(now time.Time) map[string]seen {
	e.mu.Lock()
	defer e.mu.Unlock()
	gone := map[string]seen{}
	for name, last := range e.seen {
		if now.Sub(last.at) > goneAfter {
			gone[name] = last
		}
	}
	return gone
}

// follow watches what others publish, until the context ends. Nothing of it is kept but the list.
func (e *Exchange) follow(ctx context.Context) {
	labelled := func(options metav1.ListOptions) metav1.ListOptions {
		options.LabelSelector = partLabel
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
		Name: "waiting", TypeDescription: "configmaps",
	}).RunWithContext(ctx)
}

// saw takes what another replica published.
func (e *Exchange) saw(part *corev1.ConfigMap) error {
	if part.Name == e.name {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.seenOwn, e.hasOwn = resourceversion.Parse(part.ResourceVersion), part.BinaryData[partKey]
		return nil
	}
	e.note(part)
	records, err := waiting.Decode(part.BinaryData[partKey])
	if err == nil || len(records) > 0 {
		e.List.Follow(part.Name, records)
	}
	return wrap(err, "decoding", part.Name)
}

func (e *Exchange) note(part *corev1.ConfigMap) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen[part.Name].version != part.ResourceVersion {
		e.seen[part.Name] = seen{uid: part.UID, version: part.ResourceVersion, at: e.Clock.Now()}
	}
}

// lost forgets what a replica published that has deleted it.
func (e *Exchange) lost(name string) {
	e.mu.Lock()
	_, known := e.seen[name]
	delete(e.seen, name)
	e.lostOwn = e.lostOwn || name == e.name
	e.mu.Unlock()
	if known {
		e.List.Follow(name, nil)
	}
}

// others are the names of the ConfigMaps that are known.
func (e *Exchange) others() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	names := make([]string, 0, len(e.seen))
	for name := range e.seen {
		names = append(names, name)
	}
	return names
}

var errPart = errors.New("it isn't a ConfigMap")
