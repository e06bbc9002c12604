// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// event is one commit, as the books take it.
type event struct {
	revision int64
	key      string
	at       place
	deleted  bool
	// object is nil where it is deleted, or only counted.
	object runtime.Object
}

// reader makes events of what etcd tells.
type reader struct {
	layout layout
	// versions of the keys that exist, to notice a gap.
	versions map[string]int64 // key -> how often it was written since it was created
}

func newReader(layout layout) *reader {
	return &reader{layout: layout, versions: map[string]int64{}}
}

// read returns the event; false for one that concerns nobody.
func (r *reader) read(committed *clientv3.Event) (event, bool, error) {
	key := string(committed.Kv.Key)
	at, followed := r.layout.place(key)
	if !followed {
		return event{}, false, nil
	}
	e := event{revision: committed.Kv.ModRevision, key: key, at: at, deleted: committed.Type == clientv3.EventTypeDelete}
	if e.deleted {
		delete(r.versions, key)
		return e, true, nil
	}
	r.versions[key] = committed.Kv.Version
	if !matters(at.resource) {
		return e, true, nil
	}
	object, err := decode(at.resource, committed.Kv.Value)
	if err != nil {
		return event{}, false, fmt.Errorf("decoding %s at revision %d: %w", key, e.revision, err)
	}
	e.object = object
	return e, true, nil
}

// follows returns an error unless the event is the next one of its key.
func (r *reader) follows(committed *clientv3.Event) error {
	key := string(committed.Kv.Key)
	if _, followed := r.layout.place(key); !followed {
		return nil
	}
	held := r.versions[key]
	if committed.Type == clientv3.EventTypeDelete {
		if held == 0 {
			return fmt.Errorf("%s was deleted at revision %d, but its creation was not seen", key, committed.Kv.ModRevision)
		}
		return nil
	}
	if committed.Kv.Version != held+1 {
		return fmt.Errorf("%s is at version %d at revision %d, but %d is the last that was seen",
			key, committed.Kv.Version, committed.Kv.ModRevision, held)
	}
	return nil
}

// matters tells whether more matters of an object than that it is there.
func matters(resource schema.GroupResource) bool {
	switch resource {
	case pods, services, volumeClaims, namespaces, deviceClasses, quotas:
		return true
	}
	return false
}

// decode reads what is stored: protobuf of Kubernetes' own resources, JSON of
// custom ones.
func decode(resource schema.GroupResource, stored []byte) (runtime.Object, error) {
	if resource == quotas {
		quota := &quotav1.ClusterResourceQuota{}
		return quota, json.Unmarshal(stored, quota)
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(stored, nil, nil)
	return object, err
}
