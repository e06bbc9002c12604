// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/utils/clock"
)

// startTimeout bounds the first read, which takes far less where there is an
// etcd at all.
const startTimeout = 15 * time.Second

// Start follows etcd from now on, until ctx ends or Stop. What lives already
// is counted, and is no violation.
func Start(ctx context.Context, etcdURL string) (*Judge, error) {
	client, err := dial(etcdURL)
	if err != nil {
		return nil, err
	}
	layout := layout{builtIns: builtIns()}
	j := &Judge{
		client: client,
		done:   make(chan struct{}),
		reader: newReader(layout),
		books:  newBooks(clock.RealClock{}, layout),
	}
	if err := j.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("reading etcd at %s: %w", etcdURL, err), client.Close())
	}
	j.watch(ctx)
	return j, nil
}

func dial(etcdURL string) (*clientv3.Client, error) {
	parsed, err := url.Parse(etcdURL)
	if err != nil || parsed.Scheme != "http" || parsed.Host == "" {
		return nil, fmt.Errorf("etcd's URL is %q: want http://HOST:PORT", etcdURL)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcdURL}, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd at %s: %w", etcdURL, err)
	}
	return client, nil
}

// load reads everything at one revision, quotas last: what is there already
// is not judged, but counted when its quota comes.
func (j *Judge) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	stored, err := j.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	if len(stored.Kvs) == 0 {
		return fmt.Errorf("nothing is stored below %s: is it the etcd of a cluster?", prefix)
	}
	j.revision = stored.Header.Revision
	var last []event
	for _, kv := range stored.Kvs {
		e, followed, err := j.reader.read(&clientv3.Event{Type: clientv3.EventTypePut, Kv: kv})
		switch {
		case err != nil:
			return err
		case followed && e.at.resource == quotas:
			last = append(last, e)
		case followed:
			err = j.books.apply(e)
		}
		if err != nil {
			return err
		}
	}
	for _, e := range last {
		if err := j.books.apply(e); err != nil {
			return err
		}
	}
	return j.books.problems()
}
