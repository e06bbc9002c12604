// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// patience is what any change of a ledger may take.
const patience = 5 * time.Minute

// usage is what is compared of a ledger.
type usage struct {
	pods, milliCPU int64
	// custom is how many custom resources are counted.
	custom int
}

// plus adds the pod of an index, or takes it away.
func (f usage) plus(index int, pods int64) usage {
	f.pods, f.milliCPU = f.pods+pods, f.milliCPU+pods*milliCPU(index)
	return f
}

// expected is what the ledger of each quota should come to, by its name.
func (w *scaleWorld) expected() map[string]usage {
	expected := map[string]usage{}
	for namespace := range w.options.namespaces {
		quota := w.options.quotaOf(namespace)
		used := expected[quota]
		for i := range w.options.share(namespace, w.loaded) {
			used = used.plus(i, 1)
		}
		expected[quota] = used
	}
	w.options.customExpected(expected)
	return expected
}

// ledgers follows what the ledgers in the API say is used.
type ledgers struct {
	client client.WithWatch
	events watch.Interface
	// quota name -> usage
	used map[string]usage
}

func (w *scaleWorld) followLedgers(ctx context.Context) (*ledgers, error) {
	l := &ledgers{client: w.quotas, used: map[string]usage{}}
	if err := l.follow(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// follow begins to follow, from what the ledgers say now.
func (l *ledgers) follow(ctx context.Context) error {
	list := &quotav1.QuotaLedgerList{}
	if err := l.client.List(ctx, list); err != nil {
		return fmt.Errorf("listing ledgers: %w", err)
	}
	clear(l.used)
	for i := range list.Items {
		l.take(&list.Items[i])
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	events, err := l.client.Watch(ctx, &quotav1.QuotaLedgerList{}, from)
	if err != nil {
		return fmt.Errorf("watching ledgers: %w", err)
	}
	l.events = events
	return nil
}

func (l *ledgers) take(ledger *quotav1.QuotaLedger) {
	pods, cpu := ledger.Entries.Used[corev1.ResourcePods], ledger.Entries.Used[corev1.ResourceRequestsCPU]
	current := usage{pods: pods.Value(), milliCPU: cpu.MilliValue()}
	for name := range ledger.Entries.Used {
		if strings.HasPrefix(string(name), "count/") {
			current.custom++
		}
	}
	l.used[ledger.Name] = current
}

// await returns once all ledgers say so.
func (l *ledgers) await(ctx context.Context, want map[string]usage) error {
	return l.until(ctx, func() bool { return maps.Equal(l.used, want) })
}

// awaitOne returns once the ledger of a quota says so.
func (l *ledgers) awaitOne(ctx context.Context, quota string, want usage) error {
	return l.until(ctx, func() bool { return l.used[quota] == want })
}

func (l *ledgers) until(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for ledgers, which say %v: %w", l.used, ctx.Err())
		case event, open := <-l.events.ResultChan():
			if !open { // an API server ends watches that can't keep up
				if err := l.follow(ctx); err != nil {
					return err
				}
				continue
			}
			if ledger, ok := event.Object.(*quotav1.QuotaLedger); ok {
				l.take(ledger)
			}
		}
	}
	return nil
}
