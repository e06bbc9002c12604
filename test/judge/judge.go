// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// progressInterval is how often etcd is asked how far the watch is: it doesn't
// answer while the watch lags behind.
const progressInterval = 10 * time.Millisecond

var errStopped = errors.New("the judge was stopped")

// Judge follows etcd. Its methods may be called from several goroutines.
type Judge struct {
	client *clientv3.Client
	cancel context.CancelFunc
	// done is closed when nothing more is followed.
	done chan struct{}

	// mu guards the rest.
	mu       sync.Mutex
	reader   *reader
	books    *books
	revision int64
	// err is why nothing more is followed.
	err error
}

// watch starts to follow what comes after the books.
func (j *Judge) watch(ctx context.Context) {
	ctx, j.cancel = context.WithCancel(ctx)
	go j.follow(ctx, j.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(j.revision+1)))
}

func (j *Judge) follow(ctx context.Context, responses clientv3.WatchChan) {
	defer close(j.done)
	defer j.cancel()
	for response := range responses {
		if err := j.take(response); err != nil {
			j.fail(err)
			return
		}
	}
	if ctx.Err() != nil {
		j.fail(errStopped)
		return
	}
	j.fail(errors.New("etcd ended the watch"))
}

func (j *Judge) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.err = err
}

// take enters what etcd tells. Between two revisions there is nothing where
// etcd says that it has got further.
func (j *Judge) take(response clientv3.WatchResponse) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := response.Err(); err != nil {
		return fmt.Errorf("watching etcd from revision %d: %w", j.revision+1, err)
	}
	for _, committed := range response.Events {
		if err := j.enter(committed); err != nil {
			return err
		}
		j.revision = committed.Kv.ModRevision
	}
	if response.IsProgressNotify() {
		j.revision = max(j.revision, response.Header.Revision)
	}
	return nil
}

func (j *Judge) enter(committed *clientv3.Event) error {
	if err := j.reader.follows(committed); err != nil {
		return fmt.Errorf("noticing a gap: %w", err)
	}
	e, followed, err := j.reader.read(committed)
	if err != nil || !followed {
		return err
	}
	return j.books.apply(e)
}

// Stop ends following. It returns why following had ended before, if it had.
func (j *Judge) Stop() error {
	j.cancel()
	<-j.done
	err := j.failure()
	if errors.Is(err, errStopped) {
		err = nil
	}
	return errors.Join(err, j.client.Close())
}

func (j *Judge) failure() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Report tells about everything that was committed before the call. Where a
// quota can't be judged, the error says so and the report has the others.
func (j *Judge) Report(ctx context.Context) (Report, error) {
	if err := j.catchUp(ctx); err != nil {
		return Report{}, fmt.Errorf("following etcd: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.books.age(); err != nil {
		return Report{}, err
	}
	quotas, err := j.books.report()
	return Report{Revision: j.revision, Quotas: quotas}, err
}

// catchUp returns when everything that is committed now is in the books.
func (j *Judge) catchUp(ctx context.Context) error {
	if err := j.failure(); err != nil {
		return err
	}
	// Any read tells the revision that etcd is at.
	now, err := j.client.Get(ctx, prefix, clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	for {
		reached, err := j.hasReached(now.Header.Revision)
		if reached || err != nil {
			return err
		}
		if err := j.client.RequestProgress(ctx); err != nil {
			return errors.Join(err, j.failure())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-j.done:
		case <-time.After(progressInterval):
		}
	}
}

func (j *Judge) hasReached(revision int64) (bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err == nil && j.revision >= revision, j.err
}
