// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import type { KubeEvent, LocalQuota, WaitingOwner } from './types';
import { refusalWords } from './words';

export interface Refusal {
  key: string;
  at: string;
  namespace: string;
  // The quota, or the workload, that the event is about.
  about: string;
  // What became of it, and why.
  why: string;
  message: string;
  count: number;
}

// refusalsOf are the events that tell of requests that didn't fit, the newest first.
export function refusalsOf(events: KubeEvent[]): Refusal[] {
  return events
    .filter(event => event.reason !== undefined && event.reason in refusalWords)
    .map(event => ({
      key: event.metadata.uid,
      at: event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp ?? event.metadata.creationTimestamp ?? '',
      namespace: event.metadata.namespace ?? '',
      about: event.involvedObject.name ?? '',
      why: refusalWords[event.reason ?? ''] ?? '',
      message: event.message ?? '',
      count: event.series?.count ?? event.count ?? 1,
    }))
    .sort((a, b) => b.at.localeCompare(a.at) || a.key.localeCompare(b.key));
}

export interface Waiting extends WaitingOwner {
  namespace: string;
  quota: string;
}

// waitingIn are the workloads that wait for room, those first that have waited longest.
export function waitingIn(views: LocalQuota[]): Waiting[] {
  return views
    .flatMap(view =>
      (view.status?.waiting ?? []).map(owner => ({
        ...owner,
        namespace: view.metadata.namespace ?? '',
        quota: view.metadata.name,
      }))
    )
    .sort((a, b) => a.since.localeCompare(b.since) || a.name.localeCompare(b.name));
}

// amounts writes quantities as kubectl crq does: "pods: 3, requests.cpu: 1400m".
export function amounts(quantities: Record<string, string> | undefined): string {
  return Object.entries(quantities ?? {})
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([name, value]) => `${name}: ${value}`)
    .join(', ');
}
