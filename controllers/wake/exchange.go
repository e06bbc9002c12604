// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create;update;delete;list;watch,namespace=shared-quota-system

const (
	// partLabel is on the ConfigMaps of all replicas, and partPrefix begins their names. partKey is the key of a
	// ConfigMap that has its replica's news.
	partLabel, partPrefix, partKey = "quota.sharedquota.dev/waiting", "shared-quota-waiting-", "owners"

	// lookEvery is how often the replica looks whether there is something to publish, and retryEvery the least time to
	// a write after one that failed.
	lookEvery, retryEvery = time.Second, 5 * time.Second
	// publishRate bounds the writes over time, in bytes a second: etcd keeps all of it for minutes.
	publishRate = 256 << 10
	// refreshEvery is how often a replica writes its ConfigMap without a change, and goneAfter the age without a write
	// after which the replica is taken to have gone.
	refreshEvery, goneAfter = 5 * time.Minute, 11 * time.Minute
	// sweepEvery is how often owners without news are forgotten.
	sweepEvery = 10 * time.Second
)

// ExchangeParts are the dependencies of an Exchange.
type ExchangeParts struct {
	Clock clock.WithTicker
	// ConfigMaps are those of the operator's own namespace; nil if it has none. Then a replica knows only its own news.
	ConfigMaps corev1client.ConfigMapInterface
	List       *waiting.List
	// Process is a name that no other process has.
	Process string
	// Elected is closed once this replica leads.
	Elected <-chan struct{}
}

// Exchange publishes this replica's own news of waiting workloads, and follows the other replicas' publications.
type Exchange struct {
	ExchangeParts

	// name is that of the own ConfigMap.
	name string
	// stored: it exists, as far as is known. encoded and published are the content of the last write, and the list's
	// version of that, and writtenAt and version when it was written, by the clock and as a resourceVersion.
	stored    bool
	encoded   []byte
	published uint64
	writtenAt time.Time
	version   uint64
	// next is when it may be written again, and trouble why it couldn't be; empty if it could.
	next    time.Time
	trouble string

	// mu guards the fields below.
	mu sync.Mutex
	// seenOwn is the resourceVersion of the own ConfigMap, and hasOwn its content. lostOwn says that it was deleted.
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
	ticker := e.Clock.NewTicker(lookEvery)
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

// publish writes this replica's news, if it has changed or must be refreshed.
func (e *Exchange) publish(ctx context.Context, now time.Time) {
	if !e.isOutdated(now) {
		return
	}
	size, err := e.write(ctx, now)
	e.next = now.Add(max(lookEvery, time.Second*time.Duration(size)/publishRate))
	if err == nil {
		e.trouble = ""
		return
	}
	e.next = now.Add(retryEvery)
	if e.trouble != err.Error() {
		log.FromContext(ctx).Error(err, "The other replicas don't learn which workloads wait here. It is tried again")
	}
	e.trouble = err.Error()
}

func (e *Exchange) isOutdated(now time.Time) bool {
	return e.ConfigMaps != nil &&
		(e.List.Version() != e.published || e.stored && (now.Sub(e.writtenAt) >= refreshEvery || e.isDisturbed()))
}

// isDisturbed reports, once, whether another client deleted the own ConfigMap or changed its content. It is called
// while no own write is under way, so everything newer than the last one is another client's.
func (e *Exchange) isDisturbed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	disturbed := e.lostOwn || e.seenOwn > e.version && !bytes.Equal(e.hasOwn, e.encoded)
	e.lostOwn = false
	return disturbed
}

// write writes this replica's news, and returns how many bytes that took.
func (e *Exchange) write(ctx context.Context, now time.Time) (size int, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	encoded, version, err := e.List.Publish()
	if err != nil {
		return 0, fmt.Errorf("encoding which workloads wait: %w", err)
	}
	if len(encoded) == 0 {
		if e.stored {
			if err := e.ConfigMaps.Delete(ctx, e.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return 0, fmt.Errorf("deleting ConfigMap %s: %w", e.name, err)
			}
		}
		e.stored, e.published = false, version
		return 0, nil
	}
	written, err := e.store(ctx, e.part(encoded))
	if err != nil {
		return 0, fmt.Errorf("storing ConfigMap %s: %w", e.name, err)
	}
	e.encoded, e.published, e.writtenAt, e.version = encoded, version, now, ledger.ParseVersion(written.ResourceVersion)
	return len(encoded), nil
}

func (e *Exchange) part(encoded []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: e.name, Labels: map[string]string{partLabel: "true"}},
		BinaryData: map[string][]byte{partKey: encoded},
	}
}

// store writes the own ConfigMap over any present content.
func (e *Exchange) store(ctx context.Context, part *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	if e.stored {
		written, err := e.ConfigMaps.Update(ctx, part, metav1.UpdateOptions{})
		if !apierrors.IsNotFound(err) {
			return written, err //nolint:wrapcheck // the caller names the object
		}
	}
	e.stored = true // if the reply is lost
	written, err := e.ConfigMaps.Create(ctx, part, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // the reply to its creation was lost
		written, err = e.ConfigMaps.Update(ctx, part, metav1.UpdateOptions{})
	}
	return written, err //nolint:wrapcheck // the caller names the object
}

// takeOver lets the leader adopt the publications of replicas that have gone.
func (e *Exchange) takeOver(ctx context.Context, now time.Time) {
	select {
	case <-e.Elected:
	default:
		return
	}
	gone := e.gone(now)
	if len(gone) == 0 {
		return
	}
	for name := range gone {
		e.List.Adopt(name)
	}
	if _, err := e.write(ctx, now); err != nil {
		log.FromContext(ctx).Error(err, "Can't take over which workloads wait from replicas that have gone")
		return
	}
	for name, part := range gone {
		if err := e.delete(ctx, name, part); err != nil {
			log.FromContext(ctx).Error(err, "Can't delete what a replica published that has gone", "configMap", name)
		}
	}
}

// delete deletes another's ConfigMap, if it is as it was seen.
func (e *Exchange) delete(ctx context.Context, name string, gone seen) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := e.ConfigMaps.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID: ptr.To(gone.uid), ResourceVersion: ptr.To(gone.version),
	}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err //nolint:wrapcheck // it is logged with the name
}

// follow watches the other replicas' ConfigMaps, until the context ends. Nothing of it is kept but the list.
func (e *Exchange) follow(ctx context.Context) {
	lister := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = partLabel
			return e.ConfigMaps.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = partLabel
			return e.ConfigMaps.Watch(ctx, options)
		},
	}
	source := cache.ToListWatcherWithWatchListSemantics(lister, e.ConfigMaps)
	cache.NewReflectorWithOptions(source, &corev1.ConfigMap{}, partStore{e, ctx}, cache.ReflectorOptions{
		Name: partLabel, TypeDescription: "configmaps",
	}).RunWithContext(ctx)
}

// partStore hands objects from a reflector to the Exchange, and keeps none of
// them.
type partStore struct {
	*Exchange

	ctx context.Context //nolint:containedctx // the reflector's, for its logger
}

// Add implements cache.ReflectorStore. A ConfigMap that can't be read is logged: another release may have written it.
func (s partStore) Add(object any) error {
	if part, ok := object.(*corev1.ConfigMap); ok {
		if err := s.saw(part); err != nil {
			log.FromContext(s.ctx).Error(err, "Ignored which workloads wait at another replica", "configMap", part.Name)
		}
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s partStore) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s partStore) Delete(object any) error {
	if part, ok := object.(*corev1.ConfigMap); ok {
		s.lost(part.Name)
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (s partStore) Replace(objects []any, _ string) error {
	present := map[string]bool{}
	for _, object := range objects {
		if part, ok := object.(*corev1.ConfigMap); ok {
			present[part.Name] = true
		}
	}
	for _, name := range s.known() {
		if !present[name] {
			s.lost(name)
		}
	}
	for _, object := range objects {
		_ = s.Add(object) // it returns no error
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (partStore) Resync() error { return nil }

var errEmpty = errors.New("it is empty")

// saw takes a replica's publication.
func (e *Exchange) saw(part *corev1.ConfigMap) error {
	encoded := part.BinaryData[partKey]
	e.mu.Lock()
	if part.Name == e.name {
		e.seenOwn, e.hasOwn = ledger.ParseVersion(part.ResourceVersion), encoded
		e.mu.Unlock()
		return nil
	}
	if e.seen[part.Name].version != part.ResourceVersion {
		e.seen[part.Name] = seen{uid: part.UID, version: part.ResourceVersion, at: e.Clock.Now()}
	}
	e.mu.Unlock()
	if len(encoded) == 0 { // its replica is about to write it again
		return errEmpty
	}
	return e.List.Receive(part.Name, encoded)
}

// lost forgets the publication of a replica that has deleted it.
func (e *Exchange) lost(name string) {
	e.mu.Lock()
	delete(e.seen, name)
	e.lostOwn = e.lostOwn || name == e.name
	e.mu.Unlock()
	e.List.Follow(name, nil)
}

// known are the names of the ConfigMaps that may be there, the own one among them.
func (e *Exchange) known() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append(slices.Collect(maps.Keys(e.seen)), e.name)
}

// gone returns the ConfigMaps that have not been written for long.
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
