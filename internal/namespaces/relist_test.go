// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// relisting is an API server that breaks off its first watch, and has forgotten the events since.
type relisting struct {
	client.WithWatch
	lists  func(first bool) client.ObjectList
	listed atomic.Int32
	broken chan struct{}
}

func (r *relisting) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch from := r.lists(r.listed.Add(1) == 1).(type) {
	case *quotav1.ClusterResourceQuotaList:
		from.DeepCopyInto(into.(*quotav1.ClusterResourceQuotaList))
	case *metav1.PartialObjectMetadataList:
		from.DeepCopyInto(into.(*metav1.PartialObjectMetadataList))
	}
	return nil
}

func (r *relisting) Watch(_ context.Context, _ client.ObjectList, options ...client.ListOption) (apiwatch.Interface, error) {
	if streams := options[0].(*client.ListOptions).Raw.SendInitialEvents; streams != nil && *streams {
		return nil, errors.New("lists are not streamed")
	}
	watching := apiwatch.NewRaceFreeFake()
	if r.listed.Load() == 1 {
		go func() {
			<-r.broken
			watching.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
		}()
	}
	return watching, nil
}

// follow follows until the second list is taken. Meanwhile a function is called again and again.
func (r *relisting) follow(t *testing.T, list client.ObjectList, expected client.Object, store toolscache.ReflectorStore, taken func() bool, look func()) {
	t.Helper()
	r.broken = make(chan struct{})
	go reflector(r, list, expected, store).RunWithContext(t.Context())
	for broken := false; r.listed.Load() < 2 || !taken(); look() {
		if r.listed.Load() == 1 && !broken {
			close(r.broken)
			broken = true
		}
		if t.Context().Err() != nil {
			t.Fatal("no second list")
		}
	}
}

func versionOf(first bool) string {
	if first {
		return "9"
	}
	return "5000"
}

// many is how many objects a list has.
const many = 3000

// The first object of the second list is the newest. If it were shown before the last one, a replica that is asked
// about epoch 4000 would answer by the last one's old spec.
func TestAListOfQuotasIsTakenAtOnce(t *testing.T) {
	memory := NewIndex(clock.RealClock{}, nil).Memory
	server := &relisting{lists: func(first bool) client.ObjectList {
		list := &quotav1.ClusterResourceQuotaList{}
		list.ResourceVersion = versionOf(first)
		for i := range many {
			object := quotav1.ClusterResourceQuota{}
			object.Name, object.UID, object.Generation, object.ResourceVersion = fmt.Sprint(i), types.UID(fmt.Sprint(i)), 1, "9"
			if !first {
				object.Generation, object.ResourceVersion = 2, fmt.Sprint(5000-i)
			}
			list.Items = append(list.Items, object)
		}
		return list
	}}
	last := fmt.Sprint(many - 1)
	server.follow(t, &quotav1.ClusterResourceQuotaList{}, &quotav1.ClusterResourceQuota{}, memory.Quotas(),
		func() bool { return memory.quotas.seen.Load() >= 5000 },
		func() {
			seen := memory.quotas.seen.Load()
			if known := memory.quotas.version(last); seen >= 4000 && known == 9 {
				t.Fatalf("all quotas are said to be known up to %d, and the last one is known in version %d", seen, known)
			}
		})
}

func TestAListOfNamespacesIsTakenAtOnce(t *testing.T) {
	memory := NewIndex(clock.RealClock{}, nil).Memory
	server := &relisting{lists: func(first bool) client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.ResourceVersion = versionOf(first)
		for i := range many {
			object := emptyNamespace()
			object.Name, object.ResourceVersion = fmt.Sprint(i), "9"
			if !first {
				object.ResourceVersion = fmt.Sprint(5000 - i)
			}
			list.Items = append(list.Items, *object)
		}
		return list
	}}
	last := fmt.Sprint(many - 1)
	server.follow(t, emptyNamespaces(), emptyNamespace(), memory.Namespaces(),
		func() bool { return memory.namespaces.upTo() >= 5000 },
		func() {
			if known := memory.namespaces.state(last, webhookconfig.Question{}); known.seen >= 4000 && known.namespace.version == 9 {
				t.Fatalf("all namespaces are said to be known up to %d, and the last one is known in version 9", known.seen)
			}
		})
}
