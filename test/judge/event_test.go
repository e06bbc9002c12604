// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	clocktesting "k8s.io/utils/clock/testing"
)

func newJudge() *Judge {
	layout := layout{builtIns: builtIns()}
	return &Judge{reader: newReader(layout), books: newBooks(clocktesting.NewFakeClock(start), layout), revision: 4}
}

func written(key string, revision, version int64) *clientv3.Event {
	return &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: revision, Version: version}}
}

func removed(key string, revision int64) *clientv3.Event {
	return &clientv3.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: revision}}
}

func TestGapsAreErrors(t *testing.T) {
	const (
		key     = "/registry/configmaps/a/x"
		ignored = "/registry/leases/a/x"
	)
	for name, test := range map[string]struct {
		events []*clientv3.Event
		want   string
	}{
		"none": {
			events: []*clientv3.Event{
				written(key, 5, 1), written(key, 6, 2), removed(key, 7), written(key, 8, 1), written(ignored, 9, 17), removed(ignored, 10),
			},
		},
		"before the first": {
			[]*clientv3.Event{written(key, 5, 2)},
			"noticing a gap: /registry/configmaps/a/x is at version 2 at revision 5, but 0 is the last that was seen",
		},
		"between two": {
			[]*clientv3.Event{written(key, 5, 1), written(key, 7, 3)},
			"noticing a gap: /registry/configmaps/a/x is at version 3 at revision 7, but 1 is the last that was seen",
		},
		"of a deletion": {
			[]*clientv3.Event{written(key, 5, 1), written(key, 7, 1)},
			"noticing a gap: /registry/configmaps/a/x is at version 1 at revision 7, but 1 is the last that was seen",
		},
		"of a creation": {
			[]*clientv3.Event{removed(key, 7)},
			"noticing a gap: /registry/configmaps/a/x was deleted at revision 7, but its creation was not seen",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := newJudge().take(clientv3.WatchResponse{Events: test.events})
			if got := message(err); got != test.want {
				t.Errorf("got error %q, want %q", got, test.want)
			}
		})
	}
}

func TestCompactionIsAnError(t *testing.T) {
	err := newJudge().take(clientv3.WatchResponse{CompactRevision: 40, Canceled: true})
	if !errors.Is(err, rpctypes.ErrCompacted) || !strings.HasPrefix(err.Error(), "watching etcd from revision 5: ") {
		t.Errorf("got error %v", err)
	}
}

func TestAnUndecodableObjectIsAnError(t *testing.T) {
	for _, key := range []string{"/registry/pods/a/x", "/registry/quota.sharedquota.dev/clusterresourcequotas/team"} {
		event := written(key, 5, 1)
		event.Kv.Value = []byte("k8s:enc:aescbc:v1:")
		err := newJudge().take(clientv3.WatchResponse{Events: []*clientv3.Event{event}})
		if !strings.HasPrefix(message(err), "decoding "+key+" at revision 5: ") {
			t.Errorf("got error %v", err)
		}
	}
}

func TestRevisionIsThatOfTheLastEventOrOfProgress(t *testing.T) {
	j := newJudge()
	for _, step := range []struct {
		response clientv3.WatchResponse
		want     int64
	}{
		{clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: 9}, Events: []*clientv3.Event{written("/registry/pods", 6, 1)}}, 6},
		{clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: 8}}, 8},
		{clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: 7}}, 8},
	} {
		if err := j.take(step.response); err != nil || j.revision != step.want {
			t.Errorf("at revision %d with error %v, want %d", j.revision, err, step.want)
		}
	}
}

func TestStartNeedsAnEtcd(t *testing.T) {
	for url, want := range map[string]string{
		"":                       `etcd's URL is "": want http://HOST:PORT`,
		"127.0.0.1:2379":         `etcd's URL is "127.0.0.1:2379": want http://HOST:PORT`,
		"https://127.0.0.1:2379": `etcd's URL is "https://127.0.0.1:2379": want http://HOST:PORT`,
		"http://127.0.0.1:1":     "reading etcd at http://127.0.0.1:1: ",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, err := Start(ctx, url)
		cancel()
		if !strings.HasPrefix(message(err), want) {
			t.Errorf("%q: got error %v, want %q", url, err, want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
