// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { describe, expect, it } from 'vitest';
import { amounts, refusalsOf, waitingIn } from './refusals';
import { ago, staleOperator } from './staleness';
import type { ClusterQuota, KubeEvent, LocalQuota } from './types';
import { selectorOf, useOf } from './use';

function event(uid: string, reason: string, more: Partial<KubeEvent>): KubeEvent {
  return { metadata: { name: uid, uid, namespace: 'shop' }, reason, message: 'why', involvedObject: { name: 'payments' }, ...more };
}

describe('refusals', () => {
  it('are the newest first, and nothing else', () => {
    const found = refusalsOf([
      event('old', 'QuotaExceeded', { lastTimestamp: '2026-01-01T00:00:00Z', count: 3 }),
      event('level', 'NearLimit', { lastTimestamp: '2026-01-02T00:00:00Z' }),
      event('new', 'RequestIncomplete', { eventTime: '2026-01-03T00:00:00.000000Z', series: { count: 5, lastObservedTime: '2026-01-04T00:00:00Z' } }),
    ]);
    expect(found.map(({ key, count, about }) => [key, count, about])).toEqual([
      ['new', 5, 'payments'],
      ['old', 3, 'payments'],
    ]);
    expect(found[0]?.why).toContain('doesn’t say how much');
  });
});

describe('who waits', () => {
  it('is listed by how long', () => {
    const view = (name: string, since: string): LocalQuota => ({
      metadata: { name, namespace: 'shop', uid: name },
      status: { waiting: [{ kind: 'ReplicaSet', name: 'web', since, short: { pods: '3', cpu: '1' } }] },
    });
    const found = waitingIn([view('late', '2026-01-02T00:00:00Z'), view('early', '2026-01-01T00:00:00Z'), { metadata: { name: 'none', uid: 'n' } }]);
    expect(found.map(({ quota }) => quota)).toEqual(['early', 'late']);
    expect(amounts(found[0]?.short)).toBe('cpu: 1, pods: 3');
    expect(amounts(undefined)).toBe('');
  });
});

describe('use by namespaces', () => {
  const quota: ClusterQuota = {
    metadata: { name: 'payments', uid: 'u' },
    spec: { selector: { labels: { matchLabels: { team: 'payments' }, matchExpressions: [{ key: 'tier', operator: 'In', values: ['a', 'b'] }] }, annotations: { x: 'y' } }, quota: { hard: { pods: '8' } } },
    status: {
      namespaces: [
        { namespace: 'a', status: { used: { pods: '1' } } },
        { namespace: 'b', status: { used: { pods: '3' } } },
        { namespace: 'c', status: {} },
        { namespace: 'd', status: { used: { pods: '1' } } },
      ],
    },
  };

  it('has the largest first, and what isn’t known last', () => {
    expect(useOf(quota, 'pods')).toEqual([
      { namespace: 'b', used: '3', ofHard: 0.375, ofUsed: 0.6 },
      { namespace: 'a', used: '1', ofHard: 0.125, ofUsed: 0.2 },
      { namespace: 'd', used: '1', ofHard: 0.125, ofUsed: 0.2 },
      { namespace: 'c', used: '?', ofHard: null, ofUsed: null },
    ]);
  });

  it('names the selector before the operator has', () => {
    expect(selectorOf(quota)).toBe('team=payments,tier In (a,b),x=y');
    expect(selectorOf({ ...quota, status: { selector: 'as in the status' } })).toBe('as in the status');
  });
});

describe('staleness', () => {
  const now = Date.parse('2026-01-01T00:10:00Z');
  const lease = (renewTime?: string) => ({ metadata: { name: 'l', uid: 'l' }, spec: { renewTime } });

  it('of the operator is told by its lease', () => {
    expect(staleOperator([lease('2026-01-01T00:09:30.000000Z')], now)).toBeNull();
    expect(staleOperator([lease('2026-01-01T00:05:00.000000Z')], now)).toBe('2026-01-01T00:05:00.000Z');
    expect(staleOperator([lease('2026-01-01T00:05:00Z'), lease('2026-01-01T00:09:59Z')], now)).toBeNull();
  });

  it('is not claimed without a lease', () => {
    expect(staleOperator([], now)).toBeNull();
    expect(staleOperator([lease(undefined)], now)).toBeNull();
  });

  it.each([
    ['2026-01-01T00:09:59Z', '1s'],
    ['2026-01-01T00:08:01Z', '119s'],
    ['2026-01-01T00:08:00Z', '2m'],
    ['2025-12-31T20:10:00Z', '4h'],
    ['2025-12-20T00:00:00Z', '12d'],
    ['2026-01-01T00:11:00Z', '0s'],
    ['never', 'unknown'],
  ])('%s was %s ago', (at, age) => {
    expect(ago(at, now)).toBe(age);
  });
});
