// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { unknown } from './bars';
import { parse, share } from './quantity';
import type { ClusterQuota } from './types';

export interface NamespaceUse {
  namespace: string;
  used: string;
  // Its part of the limit, for a bar, and of what all use; null if it isn't counted.
  ofHard: number | null;
  ofUsed: number | null;
}

// useOf says which namespaces use how much of a resource, the largest first.
export function useOf(quota: ClusterQuota, resource: string): NamespaceUse[] {
  const hard = parse(quota.spec.quota.hard?.[resource])?.nano ?? 0n;
  const rows = (quota.status?.namespaces ?? []).map(({ namespace, status }) => {
    const used = status.used?.[resource];
    return { namespace, used: used ?? unknown, nano: parse(used)?.nano ?? -1n };
  });
  const all = rows.reduce((sum, row) => sum + (row.nano > 0n ? row.nano : 0n), 0n);
  return rows
    .sort((a, b) => (a.nano === b.nano ? a.namespace.localeCompare(b.namespace) : a.nano < b.nano ? 1 : -1))
    .map(({ namespace, used, nano }) => ({
      namespace,
      used,
      ofHard: nano < 0n ? null : Math.min(share(nano, hard), 1),
      ofUsed: nano < 0n ? null : share(nano, all),
    }));
}

// selectorOf writes a selector as kubectl get crq does, if the status doesn't have it yet.
export function selectorOf(quota: ClusterQuota): string {
  if (quota.status?.selector) {
    return quota.status.selector;
  }
  const { labels, annotations } = quota.spec.selector;
  const pairs = (map: Record<string, string> | null | undefined) => Object.entries(map ?? {}).map(([key, value]) => `${key}=${value}`);
  const expressions = (labels?.matchExpressions ?? []).map(({ key, operator, values }) =>
    values?.length ? `${key} ${operator} (${values.join(',')})` : `${key} ${operator}`
  );
  return [...pairs(labels?.matchLabels), ...expressions, ...pairs(annotations)].join(',');
}
